"""Moves: what a Turn wants next, and how it ended."""

from collections.abc import Mapping

import msgspec

from internal.agent.domain.messages import Message, ToolCall
from internal.agent.domain.questions import Question
from internal.agent.domain.tasks import StopReason
from internal.agent.domain.usage import Usage


class TurnOutcome(msgspec.Struct, frozen=True):
    """How a Turn ended. `error_code` names an error that a door treats apart.

    `by` and `via` tell who rejected its plan.
    """

    stop_reason: StopReason
    answer: str
    error: str = ""
    error_code: str = ""
    by: str = ""
    via: str = ""


class ModelSpending(msgspec.Struct, frozen=True):
    """What was used of one model. `cost` in US dollars, None without a price."""

    usage: Usage = Usage()
    cost: float | None = None


def total_usage(spent: Mapping[str, ModelSpending]) -> Usage:
    """Return all tokens that were used."""
    return sum((each.usage for each in spent.values()), Usage())


def total_cost(spent: Mapping[str, ModelSpending]) -> float | None:
    """Return what was spent in US dollars; None when a price is not known."""
    costs = [each.cost for each in spent.values()]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


class Ask(msgspec.Struct, frozen=True):
    """The model is to be asked. `final`: for its last words, tools are not offered."""

    messages: tuple[Message, ...]
    final: bool


class Act(msgspec.Struct, frozen=True):
    """These calls are to be run."""

    calls: tuple[ToolCall, ...]


class Pause(msgspec.Struct, frozen=True):
    """A person is to be asked."""

    question: Question


class Done(msgspec.Struct, frozen=True):
    """The Turn is over."""

    outcome: TurnOutcome
