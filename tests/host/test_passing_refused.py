from __future__ import annotations

import os

from crewd.host.protocol import STDIN_BYTES
from tests.host.driver import HostUnderTest, Message, alive, eventually
from tests.host.echo import NEW, OLD, Echo


def test_a_process_with_others_is_not_passed(echo: Echo) -> None:
    child = echo.say(OLD, "child")
    assert f"{child} (/bin/sleep 600)" in echo.refusal()
    echo.say(OLD, "reap")

    stray = echo.say(OLD, "stray")
    assert f"{stray} (/bin/sleep 600)" in echo.refusal()
    os.kill(int(stray), 9)
    eventually(lambda: not alive(int(stray)))

    assert echo.hand_on()["ok"]
    assert echo.say(NEW, "two") == "two"


def test_what_is_not_live_is_not_passed(echo: Echo) -> None:
    controller = echo.controller
    assert echo.refusal("never/heard/1") == "no job never/heard/1"
    controller.shell("run/ended/1", "exit 0", stdin=True)
    controller.wait_exit("run/ended/1")
    assert echo.refusal("run/ended/1") == "run/ended/1 has ended"
    controller.shell("run/deaf/1", "trap '' TERM; echo ready; while :; do sleep 0.01; done")
    controller.wait("output", job="run/deaf/1")
    controller.ask("stop", job="run/deaf/1", grace_ms=60_000)
    assert echo.refusal("run/deaf/1") == "run/deaf/1 is being stopped"


def test_what_waits_for_its_start_is_not_passed_and_not_taken_over(echo: Echo) -> None:
    controller = echo.controller
    orders = [controller.order(f"run/{n}/1", "/bin/cat", stdin=True) for n in range(40)]
    for order in orders:
        controller.send("start", **order)
    last = str(orders[-1]["job"])
    asked = [
        controller.send("pass", **echo.order(last, NEW)),
        controller.send("pass", **echo.order(OLD, last)),
    ]

    told: dict[int, Message] = {}
    while not told.keys() >= {*asked, asked[0] - 1}:
        message = controller.receive()
        told[message.get("id", 0)] = message

    why = [told[request]["error"]["message"] for request in asked]
    assert why == [f"{last} is not started yet", f"{last} waits to be started"]
    assert told[asked[0] - 1]["ok"]


def test_what_cannot_be_told_anything_is_not_passed(echo: Echo) -> None:
    controller = echo.controller
    controller.shell("run/silent/1", "exec sleep 600")
    assert echo.refusal("run/silent/1") == "the stdin of run/silent/1 is closed"
    controller.shell("run/full/1", "exec sleep 600", stdin=True)
    controller.ask("write", job="run/full/1", seq=1, data="x" * STDIN_BYTES)
    assert "has not taken" in echo.refusal("run/full/1")
    controller.ask("close", job="run/full/1")
    assert echo.refusal("run/full/1") == "the stdin of run/full/1 is closed"
    echo.say(OLD, "deaf")
    assert echo.refusal() == f"the stdin of {OLD} is closed"


def test_only_a_new_job_can_have_the_process(echo: Echo) -> None:
    controller = echo.controller
    controller.shell("run/live/1", "exec cat", stdin=True)
    controller.shell("run/ended/1", "exit 0")
    controller.wait_exit("run/ended/1")

    assert echo.refusal(target="run/live/1") == "run/live/1 was started already"
    assert echo.refusal(target="run/ended/1") == "run/ended/1 was started already"
    assert echo.refusal(target=OLD) == f"{OLD} was started already"
    assert echo.refusal(target="no key") == "`to` must be run/task/attempt"
    assert echo.say(OLD, "still here") == "still here"


def test_a_request_of_another_epoch_is_refused(echo: Echo) -> None:
    assert echo.hand_on(epoch="another")["error"]["kind"] == "epoch"
    assert echo.controller.refusal("pass", **{"from": OLD}) == "bad_request"


def test_output_that_waits_for_the_disk_stays_with_its_job(host: HostUnderTest) -> None:
    host.start("--reserve", str(1 << 60))
    echo = Echo(host, host.controller())
    echo.tell(OLD, "one")
    echo.controller.wait("disk")

    assert echo.refusal() == f"the output of {OLD} waits for space on the disk"


def test_the_same_request_again_changes_nothing(echo: Echo) -> None:
    echo.hand_on()
    echo.say(NEW, "two")
    before = echo.known()

    again = echo.hand_on()
    assert (again["ok"], again["pid"], again["ended"]) == (True, echo.pid, False)
    assert echo.known() == before
    echo.controller.ask("forget", jobs=[OLD])
    assert echo.hand_on()["ok"]
    echo.tell(NEW, "end")
    echo.controller.wait_exit(NEW)
    assert echo.hand_on()["ended"]
    assert "was started already" in echo.refusal("run/other/1")
