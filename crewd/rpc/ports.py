"""What the edge needs of the runtime and of the process it is part of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from crewd.core.redaction.masking import Masking
from crewd.core.stimuli import Command, Create
from crewd.core.units import Instant
from crewd.origin import Origin
from crewd.rpc.auth import Auth
from crewd.rpc.presence import Presence
from crewd.runtime.actor import Render, RequestKey
from crewd.runtime.feed import Feed
from crewd.runtime.jobs import JobKey
from crewd.store import ArtifactFiles, Reads
from crewd.workers.host_link import HostSnapshot


class RuntimeInfo(Protocol):
    """The runtime now. Of a host that was not reached yet all is empty or 0."""

    @property
    def host_status(self) -> str:
        """`connecting`, `ready` or `unreachable`."""
        ...

    @property
    def host_message(self) -> str: ...
    @property
    def host_version(self) -> str: ...
    @property
    def host_protocol(self) -> int: ...
    @property
    def host_pid(self) -> int: ...
    @property
    def running_workers(self) -> int: ...
    @property
    def max_workers(self) -> int: ...
    @property
    def paused(self) -> str:
        """Why nothing is stored now; empty while it is."""
        ...

    @property
    def draining(self) -> bool: ...


class Supervisor(Protocol):
    """Owns the runs. Its writes are durable before they return, and raise `CrewdError`."""

    async def create(self, create: Create, request: RequestKey | None, render: Render) -> bytes: ...

    async def command(
        self, run_id: str, command: Command, request: RequestKey | None, render: Render
    ) -> bytes:
        """Carry it out once: the same request again returns what the first call did."""
        ...

    def info(self) -> RuntimeInfo: ...

    def masking(self, job: JobKey, /) -> Masking:
        """Return what masks the secrets of an attempt's worker."""
        ...


class Drain(Protocol):
    """Makes the process end."""

    async def __call__(self, *, wait: bool) -> int:
        """Start nothing new; if told, wait for the workers. Then have the process end.

        Returns how many workers go on under the host. Calling it again is harmless.
        """
        ...


class HostView(Protocol):
    """The host itself, as far as the edge looks at it."""

    async def list(self) -> HostSnapshot:
        """Return what it has now. Raises HostGoneError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What `GetServerInfo` tells that never changes."""

    version: str
    instance_id: str
    store_id: str
    schema_version: int
    state_dir: Path
    socket: Path
    start_time: Instant
    origin: Origin
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What every service is connected to."""

    supervisor: Supervisor
    host: HostView
    drain: Drain
    reads: Reads
    feed: Feed
    auth: Auth
    identity: Identity
    transcripts: Path
    """The folder of all runs' transcripts."""
    artifacts: ArtifactFiles
    config_dir: Path
    """The user's own files: agents, teams, workflows, skills, what is trusted."""
    heartbeat_seconds: float = 15.0
    presence: Presence = field(default_factory=Presence)

    def status(self) -> str:
        """Tell what the daemon is doing: `recovering`, `serving` or `draining`."""
        if self.presence.draining is not None or self.supervisor.info().draining:
            return "draining"
        return "serving" if self.presence.recovered else "recovering"
