"""Steps: the actions that a Turn requests, and its outcome."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from internal.agent.domain.messages import ToolCall
from internal.agent.domain.questions import Question
from internal.agent.domain.react.request_messages import RequestMessages
from internal.agent.domain.tasks import StopReason, TaskWait
from internal.agent.domain.usage import Usage

ReplyStop = Literal["end", "tools", "length", "refused", "filtered", "paused"]
"""Reason why a reply of the model ended; "length" if it was cut at the output limit.

It is "refused" by the model and "filtered" by the provider. A "paused" reply is to be continued.
"""


class TurnOutcome(msgspec.Struct, frozen=True):
    """The end of a Turn. `error_code` identifies errors that channels handle specially.

    `by`, `via` and `name` identify the person who rejected the plan or stopped the run. `model`
    wrote the answer in place of `instead_of`, which could not; both are "" otherwise.
    """

    stop_reason: StopReason
    answer: str
    error: str = ""
    error_code: str = ""
    by: str = ""
    via: str = ""
    name: str = ""
    model: str = ""
    instead_of: str = ""


class ModelSpending(msgspec.Struct, frozen=True):
    """The usage of one model. `cost` is in US dollars, None without a price."""

    usage: Usage = Usage()
    cost: float | None = None


def total_usage(spent: Mapping[str, ModelSpending]) -> Usage:
    """Return the tokens of all models."""
    return sum((each.usage for each in spent.values()), Usage())


def total_cost(spent: Mapping[str, ModelSpending]) -> float | None:
    """Return the cost of the models with a known price in US dollars, None if no price is known."""
    known = [each.cost for each in spent.values() if each.cost is not None]
    return sum(known) if known or not spent else None


class Ask(msgspec.Struct, frozen=True):
    """Call the model. `final`: request a final answer, without tools."""

    messages: RequestMessages
    final: bool


class Act(msgspec.Struct, frozen=True):
    """Run these calls."""

    calls: tuple[ToolCall, ...]


class Pause(msgspec.Struct, frozen=True):
    """Ask a person."""

    question: Question


class AwaitTasks(msgspec.Struct, frozen=True):
    """Wait until tasks have ended. `waits` are the waits of the calls, by call_id."""

    waits: dict[str, TaskWait]

    @property
    def until(self) -> str:
        """When the run goes on regardless, RFC 3339."""
        return min(wait.until for wait in self.waits.values())


class Done(msgspec.Struct, frozen=True):
    """The Turn has ended."""

    outcome: TurnOutcome
