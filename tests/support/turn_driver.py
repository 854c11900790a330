"""Helpers for tests of the Turn: tools, a configuration, calls, replies and steps."""

from collections.abc import Sequence
from typing import Any

from internal.agent.domain.events.types import Event
from internal.agent.domain.ids import RunId
from internal.agent.domain.messages import Message, Part, Text, ToolCall, ToolResult, user_message
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.permissions.targets import CommandTarget, PathTarget
from internal.agent.domain.questions import Answer, Decision, Question
from internal.agent.domain.react.gates import CONTROL_SPECS
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.steps import Act, Ask, Done, Pause, TurnOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import GateMode
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import RunLimits, Usage
from internal.agent.store.checkpoints import (
    CHECKPOINT_VERSION,
    CheckpointDelta,
    StoredCheckpoint,
)

TASK = "Count the herons."
_ANY = {"type": "object"}
TOOLS = (
    ToolSpec("read_file", "Read.", _ANY, "read", idempotent=True, targets=(PathTarget("path"),)),
    ToolSpec("write_file", "Write.", _ANY, "write", targets=(PathTarget("path"),)),
    ToolSpec("shell", "Run.", _ANY, "exec", targets=(CommandTarget("command"),)),
    *CONTROL_SPECS,
)
FULL = Policy(mode=Mode.ALL)


def run_config(
    gates: GateMode = "off",
    policy: Policy = FULL,
    limits: RunLimits = RunLimits(),  # noqa: B008 - frozen
    *,
    people: bool = False,
) -> RunConfig:
    return RunConfig(
        run_id=RunId("run-2Abc"),
        system="You count birds.",
        model="claude-x",
        tools=TOOLS,
        policy=policy,
        limits=limits,
        gates=gates,
        workspace="/work",
        people=people,
    )


def start_turn(config: RunConfig, history: Sequence[Message] = ()) -> Turn:
    return Turn(config=config, messages=[*history, user_message(TASK)], task_index=len(history))


def stored_checkpoint(*deltas: CheckpointDelta) -> StoredCheckpoint:
    """Return the checkpoint that consecutive deltas store."""
    rows = [row for delta in deltas for row in delta.messages]
    return StoredCheckpoint(CHECKPOINT_VERSION, deltas[-1].task_index, deltas[-1].turn, rows)


def call(call_id: str, tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(call_id, tool, arguments)


def read(call_id: str) -> ToolCall:
    return call(call_id, "read_file", path=f"{call_id}.txt")


def write(call_id: str) -> ToolCall:
    return call(call_id, "write_file", path=f"{call_id}.txt", content="x")


def plan_call(call_id: str, *steps: str, complexity: str = "simple") -> ToolCall:
    return call(call_id, "plan", goal="Herons", steps=steps or ("Look",), complexity=complexity)


def clarify_call(call_id: str, step_id: str) -> ToolCall:
    return call(call_id, "clarify", step_id=step_id, goal="g", success_criteria="c")


def update_plan_call(call_id: str, step_id: str, status: str) -> ToolCall:
    return call(call_id, "update_plan", step_id=step_id, status=status)


def add_reply(turn: Turn, *parts: Part | str, cost: float | None = 0.0) -> list[Event]:
    """Add a reply of the model with these texts and calls; return its events."""
    reply = [Text(part) if isinstance(part, str) else part for part in parts]
    return turn.add_reply(reply, "claude-x", Usage(10, 5), cost)


def run_calls(turn: Turn, text: str = "ok", *, failed: bool = False) -> tuple[str, ...]:
    """Run the requested calls with this result; return their ids."""
    step = turn.next()
    assert isinstance(step, Act), step
    ids = tuple(each.call_id for each in step.calls)
    turn.mark_started(ids)
    for call_id in ids:
        turn.add_tool_result(ToolResult(call_id, text, failed))
    return ids


def next_ask(turn: Turn) -> Ask:
    step = turn.next()
    assert isinstance(step, Ask), step
    return step


def next_question(turn: Turn) -> Question:
    step = turn.next()
    assert isinstance(step, Pause), step
    return step.question


def outcome(turn: Turn) -> TurnOutcome:
    step = turn.next()
    assert isinstance(step, Done), step
    return step.outcome


def last_results(turn: Turn) -> dict[str, ToolResult]:
    """Return the results of the last exchange, in their order."""
    last = next(
        message
        for message in reversed(turn.messages)
        if any(isinstance(part, ToolResult) for part in message.parts)
    )
    return {part.call_id: part for part in last.parts if isinstance(part, ToolResult)}


def make_answer(turn: Turn, decision: Decision, text: str = "", **items: bool) -> Answer:
    """Return Ada's answer to the open question."""
    return Answer(next_question(turn).id, decision, "ada", "web", text, items)
