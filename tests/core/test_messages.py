from __future__ import annotations

import json

import pytest

from crewd.core.effects import CloseStdin, WriteWorker
from crewd.core.errors import CrewdError, Reason
from crewd.core.events import SteerUpdated
from crewd.core.marks import OutboxTaken
from crewd.core.model import Capabilities
from crewd.core.reports import Hello, SteerSeen
from crewd.core.stimuli import OutboxAccepted, OutboxRoom, Steer
from crewd.core.words import OutboxKind
from tests.support.builders import BROKEN, OPERATOR, a_result, a_spec, a_task, a_worker
from tests.support.facts import write
from tests.support.play import Play, Told

STEERABLE = Hello(capabilities=Capabilities(can_ask=True, can_steer=True))


def listening() -> Play:
    """A run whose worker takes notes and has read its task."""
    play = Play.running(a_spec(a_worker("a")))
    play.accepted("a")
    play.reported("a", STEERABLE)
    return play


def note(play: Play, task_id: str = "a") -> Told:
    return play.tell(Steer(task_id=task_id, steer_id="steer_1", text="mind", actor=OPERATOR))


def steered(status: str, text: str = "") -> SteerUpdated:
    return SteerUpdated(task_id="a", attempt=1, steer_id="steer_1", status=status, text=text)


def refusal(play: Play, task_id: str = "a") -> Reason:
    with pytest.raises(CrewdError) as error:
        note(play, task_id)
    return error.value.reason


def test_a_note_goes_to_a_worker_that_listens_and_is_followed_until_it_is_seen() -> None:
    play = listening()

    body = json.dumps({"type": "steer", "id": "steer_1", "text": "mind"}, separators=(",", ":"))
    sent = write("a", 2, OutboxKind.STEER, body, ref="steer_1")
    assert note(play) == Told((steered("queued", "mind"),), (sent,))
    assert play.accepted("a") == Told((steered("delivered"),))
    assert play.reported("a", SteerSeen("steer_1")) == Told((steered("seen"),))


def test_a_note_that_the_worker_did_not_live_to_get_is_undeliverable() -> None:
    play = listening()
    note(play)

    told = play.exit("a", BROKEN)

    assert told.events[0] == steered("undeliverable")
    assert play.outbox("a") == []


def test_only_a_running_worker_that_takes_notes_can_be_steered() -> None:
    play = Play.running(a_spec(a_worker("a"), a_task("b", "a")))
    assert refusal(play) is Reason.NOT_STEERABLE
    assert refusal(play, "b") is Reason.NOT_STEERABLE
    assert refusal(play, "x") is Reason.TASK_NOT_FOUND

    play.reported("a", STEERABLE)
    play.cancel()
    assert refusal(play) is Reason.NOT_STEERABLE


def test_a_worker_that_handed_in_is_not_steered_any_more() -> None:
    play = listening()
    play.reported("a", a_result())

    assert refusal(play) is Reason.NOT_STEERABLE


def test_a_worker_that_listens_no_more_gets_no_stop_either() -> None:
    play = listening()
    play.reported("a", a_result())

    play.cancel()

    assert play.outbox("a") == []


def test_messages_are_numbered_from_one_without_a_gap() -> None:
    play = listening()

    for _ in range(3):
        note(play)

    assert [row.seq for row in play.outbox("a")] == [2, 3, 4]
    assert play.attempt("a").stdin_seq == 4


def test_the_host_may_take_messages_in_parts() -> None:
    play = listening()
    note(play)
    note(play)

    told = play.accepted("a", 2)

    assert told == Told((steered("delivered"),))
    assert [row.seq for row in play.outbox("a")] == [3]


def test_what_did_not_fit_is_sent_again_when_there_is_room() -> None:
    play = listening()
    note(play)
    note(play)
    play.accepted("a", 2)

    told = play.tell(OutboxRoom(task_id="a", attempt=1))

    assert told == Told((), tuple(WriteWorker(row) for row in play.outbox("a")))
    assert [row.seq for row in play.outbox("a")] == [3]


def test_stdin_is_closed_when_the_worker_hands_in() -> None:
    told = listening().reported("a", a_result())

    assert told == Told((), (CloseStdin(task_id="a", attempt=1),))


def test_the_taking_of_a_message_is_stored_with_its_row_gone() -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.state.take_changes(1)

    assert play.tell(OutboxAccepted(task_id="a", attempt=1, seq=1)) == Told()

    changes = play.state.take_changes(1)
    mark = OutboxTaken(task_id="a", attempt=1, seq=1)
    assert changes.outbox_taken == ((mark.task_id, mark.attempt, mark.seq),)


def test_rows_of_an_ended_attempt_are_all_taken() -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.state.take_changes(1)

    play.exit("a", BROKEN)

    assert play.state.take_changes(2).outbox_taken == (("a", 1, 1),)
    play.wait(5)
    play.start("a")
    assert [(row.attempt, row.seq) for row in play.outbox("a")] == [(2, 1)]
