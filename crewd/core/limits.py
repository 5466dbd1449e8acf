"""What a run may use: warned at four fifths, stopped at the limit, each told once."""

from __future__ import annotations

from typing import Final

from crewd.core.events import LimitReached
from crewd.core.marks import RunStopping
from crewd.core.turn import Turn
from crewd.core.units import SECOND

WARN_NUMERATOR: Final = 4
WARN_DENOMINATOR: Final = 5


def check_limits(turn: Turn) -> None:
    """Compare what was used so far with the run's limits. Cache reads are free."""
    run = turn.state.run
    usage, limits = run.usage, run.spec.limits
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_write_tokens
    for name, used, maximum in (
        ("max_tokens", tokens, limits.max_tokens),
        ("max_cost_micros", usage.cost_micros or 0, limits.max_cost_micros),
        ("max_turns", usage.turns, limits.max_turns),
    ):
        if maximum is None or run.stopping:
            continue
        if used >= maximum:
            stop_at_limit(turn, name, used, maximum)
        elif used * WARN_DENOMINATOR >= maximum * WARN_NUMERATOR:
            _tell_once(turn, name, used, maximum, "warned")


def stop_at_limit(turn: Turn, name: str, used: int, maximum: int) -> None:
    _tell_once(turn, name, used, maximum, "stopped")
    message = f"{name} reached: {_amount(name, used)} of {_amount(name, maximum)}"
    turn.note(RunStopping(cause="limit", message=message))


def _amount(name: str, value: int) -> str:
    return f"{value / SECOND:.0f} s" if name == "max_duration" else str(value)


def _tell_once(turn: Turn, name: str, used: int, maximum: int, action: str) -> None:
    if f"{name}:{action}" not in turn.state.run.limits_reached:
        turn.tell(LimitReached(reason=name, used=used, maximum=maximum, action=action))
