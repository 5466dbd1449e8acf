from __future__ import annotations

import json
from dataclasses import replace

import pytest

from crewd.core.effects import CloseStdin, StopWorker, WriteWorker
from crewd.core.errors import CrewdError, Reason
from crewd.core.hand_in import GO_ON
from crewd.core.model import Actor, Result
from crewd.core.reports import ResultGiven, TurnEnded, TurnStop
from crewd.core.spec import Adapter, OutputSpec, TaskSpec
from crewd.core.stimuli import WorkerCalled
from crewd.core.verdict import VERDICT_SCHEMA
from crewd.core.words import ActorKind, Cause, OutboxKind, Outcome, TaskStatus
from tests.support.builders import (
    BROKEN,
    DONE,
    NO_RESULT,
    a_result,
    a_spec,
    a_task,
    a_worker,
    host_ready,
)
from tests.support.play import Play, Told

SCHEMA = json.dumps({"type": "object", "required": ["count"]})
CLOSED = CloseStdin(task_id="a", attempt=1)
WORKER = Actor(ActorKind.WORKER, "run_a/a/1")


def an_agent(schema: str = "") -> TaskSpec:
    return replace(
        a_task("a"), adapter=Adapter.PI, command=("pi",), output=OutputSpec(schema_json=schema)
    )


def working(task: TaskSpec) -> Play:
    play = Play.running(a_spec(task))
    play.accepted("a")
    return play


def a_turn(text: str = "all done", stop: TurnStop = TurnStop.DONE) -> TurnEnded:
    return TurnEnded(stop=stop, result=Result(text=text))


def data(value: object, ref: str = "") -> ResultGiven:
    result = Result(text="here", data_json=json.dumps(value))
    return ResultGiven(ref=ref, result=result, outcome=Outcome.COMPLETED)


def said(told: Told) -> list[tuple[OutboxKind, dict[str, object]]]:
    rows = [effect.row for effect in told.effects if isinstance(effect, WriteWorker)]
    return [(row.kind, json.loads(row.body)) for row in rows]


def test_an_agent_that_ends_its_turn_has_handed_in_what_it_said_last() -> None:
    play = working(an_agent())

    told = play.reported("a", a_turn())

    assert told.effects == (CLOSED,)
    play.exit("a", NO_RESULT)
    assert play.task("a").status is TaskStatus.COMPLETED
    assert play.task("a").result == Result(text="all done")


def test_the_exit_changes_nothing_once_an_agent_has_handed_in() -> None:
    play = working(an_agent())
    play.reported("a", a_turn())

    play.exit("a", BROKEN)

    assert play.task("a").status is TaskStatus.COMPLETED


def test_an_agent_that_says_nothing_has_failed_and_may_be_tried_again() -> None:
    play = working(an_agent())

    play.reported("a", a_turn(" \n"))
    play.exit("a", NO_RESULT)

    assert (play.attempt("a").cause, play.attempt("a").retryable) == (Cause.EMPTY, True)
    assert play.task("a").status is TaskStatus.FAILED


def test_a_provider_failure_fails_the_attempt_in_the_providers_words() -> None:
    play = working(an_agent())

    play.reported(
        "a", TurnEnded(stop=TurnStop.FAILED, cause=Cause.AUTH, message="401: no such key")
    )
    play.exit("a", NO_RESULT)

    assert play.task("a").status is TaskStatus.FAILED
    assert play.task("a").error is not None
    assert (play.attempt("a").cause, play.attempt("a").message) == (Cause.AUTH, "401: no such key")


def test_a_cut_answer_is_continued_once_and_then_needs_a_person() -> None:
    play = working(an_agent())
    cut = a_turn("half of", TurnStop.LENGTH)

    assert said(play.reported("a", cut)) == [(OutboxKind.PROMPT, {"type": "prompt", "text": GO_ON})]
    assert play.reported("a", cut).effects == (CLOSED,)
    play.exit("a", NO_RESULT)

    assert play.task("a").status is TaskStatus.NEEDS_ATTENTION
    assert play.attempt("a").cause is Cause.TRUNCATED
    assert play.task("a").result == Result(text="half of")


def test_who_owes_data_is_reminded_three_times_in_the_same_session() -> None:
    play = working(an_agent(SCHEMA))

    reminded = [said(play.reported("a", a_turn())) for _ in range(3)]
    last = play.reported("a", a_turn())
    play.exit("a", NO_RESULT)

    assert [kind for ((kind, _),) in reminded] == [OutboxKind.PROMPT] * 3
    assert "Reminder 3 of 3" in str(reminded[2][0][1]["text"])
    assert last.effects == (CLOSED,)
    assert play.task("a").status is TaskStatus.NEEDS_ATTENTION
    assert play.attempt("a").cause is Cause.NO_RESULT


def test_data_that_satisfies_the_schema_is_taken_and_the_turn_may_end() -> None:
    play = working(an_agent(SCHEMA))

    ((kind, reply),) = said(play.reported("a", data({"count": 3}, ref="tool-1")))
    play.reported("a", a_turn("bye"))
    play.exit("a", NO_RESULT)

    assert kind is OutboxKind.REPLY
    assert (reply["id"], reply["taken"]) == ("tool-1", True)
    assert play.task("a").status is TaskStatus.COMPLETED
    assert play.task("a").result == Result(text="here", data_json='{"count": 3}')


def test_data_that_misses_the_schema_goes_back_with_all_that_is_wrong() -> None:
    play = working(an_agent(SCHEMA))

    replies = [said(play.reported("a", data({}, ref=f"tool-{n}")))[0][1] for n in (1, 2, 3)]
    play.reported("a", a_turn())
    play.exit("a", NO_RESULT)

    assert [reply["taken"] for reply in replies] == [False] * 3
    assert '"count" is a required property' in str(replies[0]["message"])
    assert play.task("a").status is TaskStatus.NEEDS_ATTENTION
    assert "schema" in play.attempt("a").message


def test_only_the_first_result_counts() -> None:
    play = working(an_agent())
    play.reported("a", data(1, ref="one"))

    ((_, reply),) = said(play.reported("a", data(2, ref="two")))

    assert reply["taken"] is False
    assert play.attempt("a").result == Result(text="here", data_json="1")


def test_a_line_protocol_worker_gets_no_second_chance_with_its_schema() -> None:
    play = working(replace(a_worker("a"), output=OutputSpec(schema_json=SCHEMA)))

    assert play.reported("a", data([])).effects == (CLOSED,)
    play.exit("a", DONE)

    assert play.task("a").status is TaskStatus.NEEDS_ATTENTION


def test_a_result_that_is_handed_in_is_kept_when_the_host_is_lost() -> None:
    play = working(a_worker("a"))
    play.reported("a", a_result("kept"))

    play.tell(host_ready(epoch="another"))

    assert play.task("a").status is TaskStatus.COMPLETED
    assert play.task("a").result == Result(text="kept")


def test_a_command_may_hand_in_by_a_call_and_must_still_end_well() -> None:
    for verdict, status in ((DONE, TaskStatus.COMPLETED), (BROKEN, TaskStatus.FAILED)):
        play = working(a_task("a"))

        told = play.tell(
            WorkerCalled(task_id="a", attempt=1, report=a_result("by call"), actor=WORKER)
        )
        assert told.effects == ()
        play.exit("a", verdict)

        assert play.task("a").status is status
        assert play.attempt("a").result == Result(text="by call")


def test_a_call_with_data_that_misses_the_schema_is_refused_and_changes_nothing() -> None:
    play = working(an_agent(SCHEMA))

    with pytest.raises(CrewdError) as refused:
        play.tell(WorkerCalled(task_id="a", attempt=1, report=data({}), actor=WORKER))

    assert refused.value.reason is Reason.SPEC_INVALID
    assert [v.field for v in refused.value.violations] == ["data_json"]
    assert play.attempt("a").handed_in is None


def test_a_call_of_an_attempt_that_has_ended_is_refused() -> None:
    play = working(a_task("a"))
    play.exit("a", DONE)

    with pytest.raises(CrewdError) as refused:
        play.tell(WorkerCalled(task_id="a", attempt=1, report=a_result(), actor=WORKER))

    assert refused.value.reason is Reason.TOKEN_INVALID


def test_an_agent_that_lingers_after_its_turn_is_stopped() -> None:
    play = working(an_agent())
    play.reported("a", a_turn())

    told = play.wait(6)

    assert any(isinstance(effect, StopWorker) for effect in told.effects)
    play.stopped("a")
    assert play.task("a").status is TaskStatus.COMPLETED


def test_a_verdict_of_fail_fails_the_task_that_verifies_and_is_not_tried_again() -> None:
    task = replace(an_agent(VERDICT_SCHEMA), verify=True)
    play = working(task)

    play.reported("a", data({"verdict": "fail", "findings": ["x.py:3 is wrong"]}, ref="t"))
    play.reported("a", a_turn())
    play.exit("a", NO_RESULT)

    assert play.task("a").status is TaskStatus.FAILED
    assert play.attempt("a").cause is Cause.CHECK_FAILED
    assert play.attempt("a").message == "the verdict is fail: x.py:3 is wrong"
    assert not play.attempt("a").retryable


def test_a_verdict_of_pass_completes_it() -> None:
    play = working(replace(an_agent(VERDICT_SCHEMA), verify=True))

    play.reported("a", data({"verdict": "pass"}, ref="t"))
    play.reported("a", a_turn())
    play.exit("a", NO_RESULT)

    assert play.task("a").status is TaskStatus.COMPLETED


def test_a_command_that_owes_data_and_hands_in_none_needs_a_person() -> None:
    play = working(replace(a_task("a"), output=OutputSpec(schema_json=SCHEMA)))

    play.exit("a", DONE)

    assert play.task("a").status is TaskStatus.NEEDS_ATTENTION
    assert play.attempt("a").cause is Cause.NO_RESULT
