"""The user units, where the user has them: of this crewd, and working."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from crewd.doctor.finding import Check, Finding, Place, error, info, ok, warning
from crewd.systemd.units import (
    HOST_UNIT,
    UNIT,
    Installed,
    differing,
    find_installed,
    find_installed_for,
    this_installation,
)
from crewd.systemd.user_manager import UnreachableError, UserManager

_FAILED: Final = "failed"


def units(place: Place) -> Iterator[Finding]:
    """Look at the files; those of another state directory are none of our business."""
    installed = find_installed(place.env)
    if installed is None:
        return
    details = {"folder": str(installed.folder), "state_dir": str(installed.state_dir or "")}
    if installed.state_dir != place.state_dir:
        whose = installed.state_dir or "an unknown state directory"
        yield info(
            id="service.unit",
            message=f"{UNIT} keeps the daemon of {whose}, not this one",
            details=details,
        )
        return
    yield _as_written(place, installed, details)
    if not installed.enabled:
        yield info(
            id="service.enabled",
            message=f"{UNIT} is not enabled: it does not start by itself, and `crewd ensure` "
            "starts a daemon without it",
            command=f"systemctl --user enable {UNIT}",
            details=details,
        )


def state(place: Place) -> Iterator[Finding]:
    """Ask the user's service manager how they are."""
    if find_installed_for(place.state_dir, place.env) is None:
        return
    try:
        manager = UserManager(place.env)
    except UnreachableError as problem:
        yield warning(
            id="service.manager",
            message=f"your service manager cannot be reached, so {UNIT} cannot be started: "
            f"{problem}",
            command=place.crewd("ensure"),
        )
        return
    for unit in (UNIT, HOST_UNIT):
        yield _how_it_is(manager, unit)


def _as_written(place: Place, installed: Installed, details: dict[str, str]) -> Finding:
    stale = differing(installed, this_installation(place.state_dir, place.env))
    if not stale:
        message = f"{UNIT} and {HOST_UNIT} are as this crewd writes them"
        return ok(id="service.unit", message=message, details=details)
    return warning(
        id="service.unit",
        message=f"not as this crewd would write it: {', '.join(stale)}, in {installed.folder}; it "
        "is of another version or installation, or was edited",
        command=place.crewd("service install"),
        details={**details, "stale": " ".join(stale)},
    )


def _how_it_is(manager: UserManager, unit: str) -> Finding:
    told = manager.properties(unit, "ActiveState", "Result", "NRestarts", "StatusText")
    if told["ActiveState"] == _FAILED:
        return error(
            id="service.state",
            message=f"{unit} has failed ({told['Result']}) and is not started again by itself",
            command=f"systemctl --user status {unit}",
            details={"unit": unit, **told},
        )
    restarts = "" if told["NRestarts"] in {"", "0"} else f", restarted {told['NRestarts']} times"
    return ok(
        id="service.state",
        message=f"{unit} is {told['ActiveState'] or 'unknown'}{restarts}",
        details={"unit": unit, **told},
    )


CHECKS: Final[tuple[Check, ...]] = (units, state)
