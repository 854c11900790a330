"""The state of a run, computed from its events, as a chat shows it."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from internal.agent.domain.events.types import (
    LifecycleUpdated,
    ModelRetry,
    OutputSummary,
    PlanUpdated,
    ResultCancelled,
    ResultFinal,
    ToolCompleted,
    ToolStarted,
)
from internal.agent.domain.plans import PlanStep
from internal.agent.domain.text import truncate_line
from internal.channels.chat.transport import RunPhase, Thoughts
from internal.i18n.chat import ChatPhrases

MAX_LINES, MAX_LINE_LENGTH, MAX_STEPS, MIN_TOOL_LINES = 12, 160, 40, 3
MAX_THOUGHT_CHARS = 3_000
"""Of the thoughts of a run the end is kept."""

_TERMINAL = frozenset({ResultFinal.name, ResultCancelled.name})
_OBSERVED = _TERMINAL | {
    each.name
    for each in (
        LifecycleUpdated,
        ModelRetry,
        OutputSummary,
        PlanUpdated,
        ToolStarted,
        ToolCompleted,
    )
}
_PHASES: dict[str, RunPhase] = {
    "queued": "queued",
    "running": "working",
    "waiting": "waiting",
    "completed": "done",
    "failed": "failed",
    "cancelled": "cancelled",
}
_STEP_MARKS = {
    "pending": "☐",
    "in_progress": "▶",
    "completed": "☑",
    "failed": "✗",
    "skipped": "-",
}
_TOOL_MARKS = {"running": "…", "done": "✓", "failed": "✗"}


class _Payload(msgspec.Struct):
    status: str = ""
    stop_reason: str | None = None
    steps: tuple[PlanStep, ...] = ()
    call_id: str = ""
    tool_name: str = ""
    error: str | None = None
    duration_ms: int = 0
    metadata: dict[str, Any] = {}
    reason: str = ""
    seconds: int = 0
    attempt: int = 0
    thinking: str = ""
    thinking_ms: int = 0
    since: str = ""  # of a wait: the time of its event


def _wait_of(retry: _Payload) -> tuple[str, int, int, str]:
    return retry.reason, retry.seconds, retry.attempt, retry.since


class _Envelope(msgspec.Struct):
    event: str
    timestamp: str
    payload: _Payload


_decode = msgspec.json.Decoder(_Envelope).decode


class _ToolState(NamedTuple):
    name: str
    state: Literal["running", "done", "failed"]
    seconds: int = 0
    configuration: str = ""


def _describe_tool(tool: _ToolState, phrases: ChatPhrases) -> str:
    parts = [f"{_TOOL_MARKS[tool.state]} {phrases.tool(tool.name)}"]
    if tool.seconds:
        parts.append(phrases("progress_seconds", seconds=tool.seconds))
    if tool.configuration:
        parts.append(phrases("progress_configuration", files=tool.configuration))
    return " · ".join(parts)


class RunProgress:
    """The phase, plan and tool calls of one run."""

    def __init__(self) -> None:
        self.phase: RunPhase = "queued"
        self.is_over = False
        self.place: int | None = None
        """The place of a queued run among those that wait, None if it is not known."""
        self._steps: tuple[PlanStep, ...] = ()
        self._tools: dict[str, _ToolState] = {}
        self._retry: _Payload | None = None
        self._thoughts, self._thinking_ms = "", 0

    @property
    def is_idle(self) -> bool:
        """True if the run is over or waits for a person."""
        return self.is_over or self.phase == "waiting"

    @property
    def has_ended(self) -> bool:
        """True if the run cannot be stopped any more."""
        return self.is_over or self.phase in {"done", "failed", "cancelled"}

    @property
    def thoughts(self) -> Thoughts:
        """The thoughts of the run so far."""
        return Thoughts(self._thoughts, self._thinking_ms // 1000)

    @property
    def has_details(self) -> bool:
        """True if there is a plan or a tool call to show."""
        return bool(self._steps or self._tools)

    def apply(self, event: str, envelope: bytes) -> bool:
        """Apply a durable event; return True if it can change what is shown."""
        if event not in _OBSERVED:
            return False
        decoded = _decode(envelope)
        payload = decoded.payload
        is_retrying, self._retry = self._retry is not None, None
        match event:
            case LifecycleUpdated.name:
                self.phase = _PHASES.get(payload.status, self.phase)
                if self.phase == "waiting" and payload.stop_reason == "await_tasks":
                    self.phase = "awaiting_tasks"
            case ModelRetry.name:
                self._retry = msgspec.structs.replace(payload, since=decoded.timestamp)
            case OutputSummary.name:
                if payload.thinking:
                    thoughts = f"{self._thoughts}\n\n{payload.thinking}".strip()
                    is_cut = len(thoughts) > MAX_THOUGHT_CHARS
                    self._thoughts = f"…{thoughts[-MAX_THOUGHT_CHARS:]}" if is_cut else thoughts
                    self._thinking_ms += payload.thinking_ms
                return is_retrying or bool(payload.thinking)
            case PlanUpdated.name:
                self._steps = payload.steps
            case ToolStarted.name:
                self._tools[payload.call_id] = _ToolState(payload.tool_name, "running")
            case ToolCompleted.name:
                state: Literal["done", "failed"] = "failed" if payload.error else "done"
                seconds = payload.duration_ms // 1000
                changed = ", ".join(map(str, payload.metadata.get("configuration", ())))
                self._tools[payload.call_id] = _ToolState(
                    payload.tool_name, state, seconds, truncate_line(changed, MAX_LINE_LENGTH)
                )
            case _:
                self.is_over = True
        return True

    def title(self, phrases: ChatPhrases) -> str:
        """Return the phase in a word or two."""
        if self.phase == "queued" and self.place is not None:
            return phrases("progress_place", place=self.place)
        return phrases(f"progress_{self.phase}")

    def lines(self, phrases: ChatPhrases, subtasks: Sequence[str] = ()) -> list[str]:
        """Return the plan's steps, the newest tool calls and a wait for the model.

        The lines of the subtasks are between the steps and the calls.
        """
        steps = [
            f"{_STEP_MARKS[step.status]} {truncate_line(step.description, MAX_LINE_LENGTH)}"
            for step in self._steps
        ]
        tools = [_describe_tool(tool, phrases) for tool in self._tools.values()]
        max_tools = max(MAX_LINES - len(steps) - len(subtasks), MIN_TOOL_LINES)
        if len(tools) > max_tools:
            hidden = phrases("progress_more", count=len(tools) - max_tools)
            tools = [hidden, *tools[-max_tools:]]
        if retry := self._retry:
            tools.append(phrases.runs.retry(*_wait_of(retry)))
        parts = [steps[: MAX_STEPS - len(subtasks)], subtasks, tools]
        lines = [line for part in parts if part for line in ("", *part)]
        return lines[1:]
