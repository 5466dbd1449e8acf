"""State directories, sockets and who holds them."""

from __future__ import annotations

import signal

import pytest

from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from tests.support.daemon import Daemon, alive
from tests.support.desk import Desk, plain, shell


async def test_two_daemons_under_one_runtime_directory_do_not_disturb_each_other(
    daemon: Daemon, desk: Desk
) -> None:
    other = Daemon(daemon.root, name="o")
    try:
        await other.start()
        its_desk = await other.desk()
        gate = f"wait {desk.root / 'gate'}"
        ours = await desk.submit(plain("a", gate))
        theirs = await its_desk.submit(plain("b", gate))
        await desk.happened(ours, "attempt_started")
        await its_desk.happened(theirs, "attempt_started")
        other.signal_host(signal.SIGKILL)
        await its_desk.happened(theirs, "attempt_started", attempt=2)
        await other.restart()
        (desk.root / "gate").touch()
        assert (await desk.ended(ours)).status == RUN_STATUS_COMPLETED
        assert (await its_desk.ended(theirs)).status == RUN_STATUS_COMPLETED
        assert (await desk.attempt(ours, "a")).number == 1
        assert (await desk.server()).socket != (await its_desk.server()).socket
    finally:
        await other.end()


@pytest.mark.parametrize("busy", [True, False])
async def test_a_second_daemon_is_refused_by_name(
    daemon: Daemon, desk: Desk, *, busy: bool
) -> None:
    server = await desk.server()
    if busy:
        await desk.submit(shell("a", "sleep 1000"))
    code, _, err = await daemon.crew("serve", program="crewd")
    assert code == 6
    assert f"pid {daemon.pid}, version {server.version}, socket {server.socket}" in err
    assert "Traceback" not in err
    assert alive(daemon.pid)
    assert (await desk.server()).instance_id == server.instance_id
