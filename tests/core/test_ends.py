"""What the end of a worker proves, and what it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crewd.core.events import AskDelivered
from crewd.core.reports import Verdict
from crewd.core.words import Cause, Delivery, Outcome
from tests.support.builders import DONE, KILLED, a_question, a_result, a_spec, a_worker, an_exit
from tests.support.play import Play


@pytest.mark.parametrize("verdict", [DONE, KILLED])
def test_a_worker_that_was_stopped_with_its_host_is_lost_whatever_its_exit_says(
    verdict: Verdict,
) -> None:
    play = Play.running(a_spec(a_worker("a")))

    play.tell(an_exit("a", 1, replace(verdict, result=None), stopped=True))

    attempt = play.attempt("a")
    assert (attempt.outcome, attempt.cause) == (Outcome.LOST, Cause.LOST)


def test_a_worker_that_was_stopped_after_it_had_handed_in_is_completed() -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.reported("a", a_result())

    play.tell(an_exit("a", 1, DONE, stopped=True))

    assert play.attempt("a").outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("taken", "delivery"), [(1, Delivery.UNDELIVERABLE), (2, Delivery.DELIVERED)]
)
def test_an_answer_is_delivered_if_the_host_had_it_before_the_worker_ended(
    taken: int, delivery: Delivery
) -> None:
    play = Play.running(a_spec(a_worker("a")))
    play.reported("a", a_question())
    (ask_id,) = play.task("a").open_ask_ids
    play.answer(ask_id, "yes")

    told = play.tell(replace(an_exit("a", 1), stdin_seq=taken))

    deliveries = [e for e in told.events if isinstance(e, AskDelivered)]
    assert [e.delivery for e in deliveries] == [delivery]
