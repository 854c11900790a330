"""Stopped calls: the output, duration and stop of a call without a result."""

from datetime import datetime
from typing import Literal, NamedTuple

from internal.agent.domain.events.types import ToolCompleted
from internal.agent.domain.ids import RunId
from internal.agent.domain.principals import LOCAL_OWNER, OWNER_NAME
from internal.agent.domain.questions import CLOCK, NOBODY
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.react.turn import OUTCOME_UNKNOWN
from internal.agent.domain.text import truncate_json
from internal.agent.store.call_outputs import CallOutputs
from internal.terminal_screen.screen import screen_text

MAX_RESULT_BYTES = 45_000
"""Encoded size of the output of a stopped call in its event."""


class CallStop(NamedTuple):
    """The cause of a stop: a person (`principal`, named `by`), a limit, a failure or a process."""

    cause: Literal["person", "limit", "failure", "process"]
    by: str = ""
    principal: str = ""


PROCESS_ENDED = CallStop("process")


def call_stop(outcome: TurnOutcome) -> CallStop:
    """Return the stop of the calls of a run that ends."""
    match outcome.stop_reason:
        case "user_stop" if outcome.by in {"", NOBODY} or outcome.via == CLOCK:
            return CallStop("failure")
        case "user_stop":
            name = OWNER_NAME if outcome.by == LOCAL_OWNER.id else outcome.name
            return CallStop("person", name, outcome.by)
        case "timeout" | "budget_exceeded":
            return CallStop("limit")
        case "interrupted":
            return PROCESS_ENDED
        case _:
            return CallStop("failure")


def close_call(
    outputs: CallOutputs, run_id: RunId, call_id: str, *, tool: str, started: str, stop: CallStop
) -> ToolCompleted:
    """Return the event that closes a call without a result. Blocks.

    `started` is the time at which the call began (RFC 3339). Its error is the text for the model.
    """
    kept = outputs.read(run_id, call_id)
    if kept is None:
        return ToolCompleted(call_id=call_id, tool_name=tool, duration_ms=0, error=OUTCOME_UNKNOWN)
    seconds = max(kept.alive - datetime.fromisoformat(started).timestamp(), 0.0)
    end = f"[{OUTCOME_UNKNOWN}: {_describe(stop)} after {seconds:.1f} s]"
    output = truncate_json(screen_text(kept.text).rstrip("\n"), MAX_RESULT_BYTES)
    return ToolCompleted(
        call_id=call_id,
        tool_name=tool,
        duration_ms=round(seconds * 1000),
        error=f"{output}\n{end}" if output else end,
        metadata={
            "stopped": stop.cause,
            **({"stopped_by": stop.by} if stop.by else {}),
            **({"stopped_by_id": stop.principal} if stop.principal else {}),
        },
    )


def _describe(stop: CallStop) -> str:
    match stop.cause:
        case "person":
            return f"stopped by {stop.by or 'a person'}"
        case "limit":
            return "stopped by a limit of the task"
        case "failure":
            return "stopped because the task ended"
        case "process":
            return "the process of Larkspur that ran it ended"
