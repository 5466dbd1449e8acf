from __future__ import annotations

from crewd.host.protocol import STDIN_BYTES
from tests.host.driver import Controller, HostUnderTest

JOB = "run/task/1"
MESSAGE = "x" * (STDIN_BYTES // 4)


def test_messages_reach_the_worker_in_order(host: HostUnderTest, controller: Controller) -> None:
    controller.start(JOB, "/bin/cat", stdin=True)

    for number in range(1, 6):
        answer = controller.ask("write", job=JOB, seq=number, data=f"message {number} é\n")
        assert answer["stdin_seq"] == number
    controller.ask("close", job=JOB)

    assert controller.wait_exit(JOB)["exit_code"] == 0
    assert host.spooled(JOB).decode() == "".join(f"message {n} é\n" for n in range(1, 6))


def test_a_write_may_follow_its_start_at_once(host: HostUnderTest, controller: Controller) -> None:
    start = controller.send("start", **controller.order(JOB, "/bin/cat", stdin=True))
    write = controller.send("write", job=JOB, seq=1, data="early\n")
    close = controller.send("close", job=JOB)

    assert [controller.reply_to(request)["ok"] for request in (start, write, close)] == [True] * 3
    controller.wait_exit(JOB)
    assert host.spooled(JOB) == b"early\n"


def test_a_repeated_write_changes_nothing(host: HostUnderTest, controller: Controller) -> None:
    controller.start(JOB, "/bin/cat", stdin=True)
    controller.ask("write", job=JOB, seq=1, data="once\n")

    answer = controller.ask("write", job=JOB, seq=1, data="twice\n")

    assert (answer["ok"], answer["stdin_seq"]) == (True, 1)
    controller.ask("close", job=JOB)
    controller.wait_exit(JOB)
    assert host.spooled(JOB) == b"once\n"


def test_a_write_that_skips_a_number_is_refused(controller: Controller) -> None:
    controller.start(JOB, "/bin/cat", stdin=True)

    assert controller.refusal("write", job=JOB, seq=2, data="") == "gap"


def test_a_write_beyond_the_queue_is_refused_until_there_is_room(
    host: HostUnderTest, controller: Controller
) -> None:
    controller.shell(JOB, "read line; exec wc -c", stdin=True)
    accepted = 0
    while (answer := controller.ask("write", job=JOB, seq=accepted + 1, data=MESSAGE))["ok"]:
        accepted += 1
    assert answer["error"]["kind"] == "full"
    assert answer["error"]["stdin_seq"] == accepted
    assert controller.ask("list")["jobs"][0]["stdin_seq"] == accepted
    controller.ask("stop", job=JOB, grace_ms=0)
    controller.wait_exit(JOB)

    controller.shell("run/task/2", "sleep 0.3; exec wc -c", stdin=True)
    for number in range(1, accepted + 1):
        controller.ask("write", job="run/task/2", seq=number, data=MESSAGE)
    number = accepted + 1
    assert controller.refusal("write", job="run/task/2", seq=number, data=MESSAGE) == "full"
    controller.wait("stdin_room", job="run/task/2")
    assert controller.ask("write", job="run/task/2", seq=number, data=MESSAGE)["ok"]
    controller.ask("close", job="run/task/2")
    controller.wait_exit("run/task/2")
    assert int(host.spooled("run/task/2")) == number * len(MESSAGE)


def test_a_message_larger_than_the_queue_is_taken_when_nothing_waits(
    host: HostUnderTest, controller: Controller
) -> None:
    size = 2 * STDIN_BYTES
    controller.start(JOB, "/usr/bin/wc", "-c", stdin=True)

    assert controller.ask("write", job=JOB, seq=1, data="x" * size)["ok"]

    controller.ask("close", job=JOB)
    controller.wait_exit(JOB)
    assert int(host.spooled(JOB)) == size


def test_writes_that_cannot_arrive_are_refused(controller: Controller) -> None:
    assert controller.refusal("write", job="never/heard/1", seq=1, data="x") == "unknown"
    controller.shell("run/deaf/1", "sleep 600")
    assert controller.refusal("write", job="run/deaf/1", seq=1, data="x") == "closed"
    controller.shell(JOB, "exit 0", stdin=True)
    controller.wait_exit(JOB)
    assert controller.refusal("write", job=JOB, seq=1, data="x") == "closed"


def test_a_worker_that_closes_its_stdin_ends_as_it_likes(controller: Controller) -> None:
    controller.shell(JOB, "exec 0<&-; echo closed; sleep 0.2; exit 4", stdin=True)
    controller.wait("output", job=JOB)

    assert controller.ask("write", job=JOB, seq=1, data=MESSAGE)["ok"]

    assert controller.refusal("write", job=JOB, seq=2, data=MESSAGE) == "closed"
    assert controller.wait_exit(JOB)["exit_code"] == 4


def test_without_stdin_the_worker_reads_an_end(host: HostUnderTest, controller: Controller) -> None:
    controller.shell(JOB, "wc -c")

    controller.wait_exit(JOB)

    assert int(host.spooled(JOB)) == 0
