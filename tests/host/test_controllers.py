from __future__ import annotations

import pytest

from tests.host.driver import Controller, HostUnderTest

JOB = "run/task/1"


def test_hello_tells_who_the_host_is(host: HostUnderTest, controller: Controller) -> None:
    answer = controller.hello(version="0", features=["any"], daemon_epoch="mine", later="ignored")

    assert (answer["protocol"], answer["pid"]) == (1, host.pid)
    assert answer["store_marker"] == host.paths.marker.read_text()
    assert {"version", "epoch", "boot_id", "jobs", "exits", "lost", "strays"} <= answer.keys()


def test_who_does_not_know_the_key_is_turned_away(lasting_host: HostUnderTest) -> None:
    for key in ("", "wrong", lasting_host.paths.key.read_text()[:-1] + "x", "\ud800"):
        stranger = lasting_host.stranger()
        assert stranger.refusal("hello", key=key) == "unauthenticated"
        assert stranger.hangs_up()


def test_who_does_not_say_hello_gets_nothing(host: HostUnderTest, controller: Controller) -> None:
    stranger = host.stranger()

    assert stranger.refusal("start", **controller.order(JOB, "/bin/true")) == "unauthenticated"
    assert stranger.hangs_up()
    assert controller.ask("list")["jobs"] == []


def test_the_files_of_the_host_are_for_its_user_only(
    host: HostUnderTest, controller: Controller
) -> None:
    controller.ask("ping")

    assert host.paths.root.stat().st_mode & 0o777 == 0o700
    for path in (host.paths.key, host.paths.socket, host.paths.journal, host.paths.info):
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_a_newer_controller_replaces_the_older(host: HostUnderTest, controller: Controller) -> None:
    controller.shell(JOB, "sleep 600")
    newer = host.controller()

    assert controller.receive() == {"news": "superseded"}
    assert controller.hangs_up()
    assert newer.ask("list")["jobs"][0]["job"] == JOB


def test_a_controller_that_comes_back_finds_jobs_offsets_and_exits(
    host: HostUnderTest, controller: Controller
) -> None:
    live = controller.shell("run/live/1", "echo 1; read line; echo $line; sleep 600", stdin=True)
    controller.wait("output", job="run/live/1")
    controller.shell("run/ending/1", "sleep 0.1; echo late; exit 9", keep_children=True)
    controller.send("write", job="run/live/1", seq=1, data="two\n")
    controller.close()

    later = host.controller()
    if not later.ask("list")["exits"]:
        later.wait_exit("run/ending/1")
    found = later.ask("list")

    (job,), (seen,) = found["jobs"], found["exits"]
    assert (job["job"], job["pid"], job["stdin_seq"]) == ("run/live/1", live, 1)
    assert (seen["job"], seen["exit_code"], seen["stdout"]) == ("run/ending/1", 9, 5)
    assert host.spooled("run/ending/1") == b"late\n"


def test_starts_that_wait_are_dropped_with_their_controller(
    host: HostUnderTest, controller: Controller
) -> None:
    """The next controller is told what runs, and may have decided otherwise about what does not."""
    orders = [controller.order(f"run/t{number}/1", "/bin/true") for number in range(400)]
    for order in orders:
        controller.send("start", **order)
    later = host.controller()

    known = later.ask("list")
    ended = {seen["job"] for seen in [*known["exits"], *known["jobs"]]}
    for order in orders:
        if order["job"] not in ended:
            assert later.ask("start", **{**order, "epoch": later.epoch})["ok"]
            later.wait_exit(str(order["job"]))
            break


@pytest.mark.parametrize(
    "raw", [b"{\n", b"[]\n", b"\xff\n", b"\n", b"[" * 100_000 + b"\n", b'{"id": 1e999}\n']
)
def test_what_is_no_request_costs_only_its_sender(
    lasting_host: HostUnderTest, asker: Controller, raw: bytes
) -> None:
    stranger = lasting_host.stranger()

    stranger.send_raw(raw)

    assert stranger.receive()["ok"] is False
    assert stranger.hangs_up()
    assert asker.ask("ping")["ok"]


@pytest.mark.parametrize(
    ("verb", "fields", "kind"),
    [
        ("dance", {}, "unknown_verb"),
        ("start", {}, "bad_request"),
        ("start", {"job": JOB, "argv": [1]}, "bad_request"),
        ("start", {"job": JOB, "argv": ["/bin/true"], "cwd": "/", "env": {"A": 1}}, "bad_request"),
        ("start", {"job": JOB, "argv": ["/bin/true"], "cwd": "/", "env": []}, "bad_request"),
        ("stop", {"job": JOB, "grace_ms": -1}, "bad_request"),
        ("stop", {"job": JOB, "grace_ms": 10**30}, "bad_request"),
        ("stop", {"job": JOB, "grace_ms": True}, "bad_request"),
        ("forget", {"jobs": "all"}, "bad_request"),
    ],
)
def test_a_bad_request_is_refused_by_name(
    asker: Controller, verb: str, fields: dict[str, object], kind: str
) -> None:
    assert asker.refusal(verb, **fields) == kind
    assert asker.ask("ping")["ok"]


def test_a_controller_that_does_not_read_is_not_waited_for(
    host: HostUnderTest, controller: Controller
) -> None:
    for number in range(20_000):
        controller.send("stop", job=f"run/{number}/{'x' * 400}", grace_ms=0)

    assert host.controller().ask("ping")["ok"]
