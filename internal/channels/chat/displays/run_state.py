"""The state of a run, computed from its events, as a chat shows it."""

from collections.abc import Mapping, Sequence
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
from internal.agent.domain.permissions.targets import mcp_server
from internal.agent.domain.plans import PlanStep
from internal.agent.domain.text import escape_invisible, truncate_line
from internal.channels.chat.transport import RunPhase, Thoughts
from internal.i18n.chat import ChatPhrases
from internal.i18n.runs import RunMessages

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
_ENDED: frozenset[RunPhase] = frozenset({"done", "incomplete", "failed", "cancelled"})
_ANY = RunMessages("en")
"""The catalogue of one language, for values that are equal in all languages."""
_STEP_MARKS = {
    "pending": "☐",
    "in_progress": "▶",
    "completed": "☑",
    "failed": "✗",
    "skipped": "-",
}
_NOT_REPORTED = "?"
_TOOL_MARKS = {"running": "…", "done": "✓", "failed": "✗", "denied": "⊘", "not_run": "⊘"}


class _Payload(msgspec.Struct):
    status: str = ""
    stop_reason: str | None = None
    steps: tuple[PlanStep, ...] = ()
    call_id: str = ""
    node_id: str = ""
    text: str = ""
    tool_name: str = ""
    error: str | None = None
    duration_ms: int = 0
    metadata: dict[str, Any] = {}
    reason: str = ""
    seconds: int = 0
    attempt: int = 0
    attempts: int = 0
    cause: str = ""
    thinking: str = ""
    thinking_ms: int = 0
    made_by: str = ""
    calls_not_run: int = 0
    call_ids: tuple[str, ...] = ()
    title: str = ""
    since: str = ""  # of a wait: the time of its event


class _Envelope(msgspec.Struct):
    event: str
    timestamp: str
    payload: _Payload


_decode = msgspec.json.Decoder(_Envelope).decode


class _ToolState(NamedTuple):
    name: str
    state: Literal["running", "done", "failed", "denied", "not_run"]
    seconds: int = 0
    configuration: str = ""
    metadata: Mapping[str, Any] = {}
    title: str = ""
    report: str = ""


def _describe_tool(tool: _ToolState, phrases: ChatPhrases) -> str:
    parts = [f"{_TOOL_MARKS[tool.state]} {phrases.tool(tool.name, tool.title)}"]
    if subject := str(tool.metadata.get("subject", "")):
        parts.append(truncate_line(escape_invisible(subject), MAX_LINE_LENGTH))
    if tool.report:
        parts.append(tool.report)
    if tool.state == "denied":
        parts.append(phrases.runs("denied"))
    if failure := phrases.runs.call_failure(tool.metadata):
        parts.append(failure)
    if tool.seconds:
        parts.append(phrases("progress_seconds", seconds=tool.seconds))
    if tool.state == "not_run":
        reason = phrases.runs.not_run(str(tool.metadata["not_run"]))
        parts.append(f"{phrases.runs('not_run')}: {reason}")
    if stopped := phrases.runs.call_stopped(tool.metadata):
        parts.append(truncate_line(stopped, MAX_LINE_LENGTH))
    parts += (
        truncate_line(f"⚠ {escape_invisible(remark)}", MAX_LINE_LENGTH)
        for remark in phrases.runs.call_remarks(tool.metadata)
    )
    if tool.configuration:
        parts.append(phrases("progress_configuration", files=tool.configuration))
    return " · ".join(parts)


def _tool_state(payload: _Payload) -> _ToolState:
    """Return the state of a call that has ended."""
    metadata = payload.metadata
    if "not_run" in metadata:
        return _ToolState(payload.tool_name, "not_run", metadata=metadata)
    if metadata.get("denied"):
        return _ToolState(payload.tool_name, "denied", metadata=metadata)
    has_failed = payload.error or metadata.get("exit_code") or metadata.get("timed_out")
    changed = ", ".join(map(str, metadata.get("configuration", ())))
    return _ToolState(
        payload.tool_name,
        "failed" if has_failed else "done",
        payload.duration_ms // 1000,
        truncate_line(changed, MAX_LINE_LENGTH),
        metadata,
    )


def _describe_step(step: PlanStep, phrases: ChatPhrases, *, is_over: bool) -> str:
    """Return the line of a step; an unreported step has another mark after the end."""
    is_reported = step.status not in {"pending", "in_progress"}
    mark = _STEP_MARKS[step.status] if is_reported or not is_over else _NOT_REPORTED
    remarks = phrases.runs.step_remarks(msgspec.structs.asdict(step), is_over=is_over)
    shown = [truncate_line(each, MAX_LINE_LENGTH) for each in (step.description, *remarks)]
    return f"{mark} {' · '.join(shown)}"


class RunProgress:
    """The phase, plan and tool calls of one run."""

    def __init__(self) -> None:
        self._phase: RunPhase = "queued"
        self.is_over = False
        self.place: int | None = None
        """The place of a queued run among the waiting ones, None if unknown."""
        self._steps: tuple[PlanStep, ...] = ()
        self._is_plan_by_larkspur = False
        self._status, self._calls_not_run = "", 0
        self._stop_reason: str | None = None
        self._tools: dict[str, _ToolState] = {}
        self._places: dict[str, int] = {}
        self._retry: _Payload | None = None
        self._thoughts, self._thinking_ms = "", 0

    @property
    def phase(self) -> RunPhase:
        """The phase of the run; one that lacks something at its end is incomplete."""
        return "incomplete" if self.exception(_ANY) else self._phase

    @property
    def is_idle(self) -> bool:
        """True if the run is over or waits for a person."""
        return self.is_over or self.phase == "waiting"

    @property
    def has_ended(self) -> bool:
        """True if the run can no longer be stopped."""
        return self.is_over or self.phase in _ENDED

    @property
    def thoughts(self) -> Thoughts:
        """The thoughts of the run so far."""
        return Thoughts(self._thoughts, self._thinking_ms // 1000)

    @property
    def has_details(self) -> bool:
        """True if there is a plan or a tool call to show."""
        return bool(self._steps or self._tools)

    def apply(self, event: str, envelope: bytes) -> bool:
        """Apply a durable event; return True if it can change the display."""
        if event not in _OBSERVED:
            return False
        decoded = _decode(envelope)
        payload = decoded.payload
        is_retrying, self._retry = self._retry is not None, None
        match event:
            case LifecycleUpdated.name:
                self._phase = _PHASES.get(payload.status, self._phase)
                self._status, self._stop_reason = payload.status, payload.stop_reason
                if self._phase == "waiting" and payload.stop_reason == "await_tasks":
                    self._phase = "awaiting_tasks"
            case ModelRetry.name:
                self._retry = msgspec.structs.replace(payload, since=decoded.timestamp)
            case OutputSummary.name:
                self._place_calls(payload.call_ids)
                if payload.thinking:
                    thoughts = f"{self._thoughts}\n\n{payload.thinking}".strip()
                    is_cut = len(thoughts) > MAX_THOUGHT_CHARS
                    self._thoughts = f"…{thoughts[-MAX_THOUGHT_CHARS:]}" if is_cut else thoughts
                    self._thinking_ms += payload.thinking_ms
                return is_retrying or bool(payload.thinking)
            case PlanUpdated.name:
                self._steps = payload.steps
                self._is_plan_by_larkspur = payload.made_by == "larkspur"
            case ToolStarted.name:
                self._place_calls((payload.call_id,))
                self._tools[payload.call_id] = _ToolState(
                    payload.tool_name, "running", title=payload.title
                )
            case ToolCompleted.name:
                self._place_calls((payload.call_id,))
                started = self._tools.get(payload.call_id)
                title = started.title if started else str(payload.metadata.get("title", ""))
                self._tools[payload.call_id] = _tool_state(payload)._replace(title=title)
            case _:
                self.is_over, self._calls_not_run = True, payload.calls_not_run
        return True

    def apply_output(self, envelope: bytes) -> bool:
        """Apply the live output of a call; return True if it can change the display.

        The last line reported by a tool of an MCP server is shown. Output of commands is not.
        """
        payload = _decode(envelope).payload
        tool = self._tools.get(payload.node_id)
        lines = payload.text.split("\n") if tool and mcp_server(tool.name) else []
        line = next((each for each in reversed(lines) if each.strip()), "")
        if tool is None or not line or tool.state != "running":
            return False
        report = truncate_line(escape_invisible(line.strip()), MAX_LINE_LENGTH)
        self._tools[payload.node_id] = tool._replace(report=report)
        return report != tool.report

    def _place_calls(self, call_ids: Sequence[str]) -> None:
        """Show calls that have no place yet behind the others, in this order."""
        for call_id in call_ids:
            self._places.setdefault(call_id, len(self._places))

    def exception(self, runs: RunMessages) -> str:
        """Return the exception to the status of the run; see `RunMessages.exception`."""
        return runs.exception(self._status, self._stop_reason, self._calls_not_run)

    def title(self, phrases: ChatPhrases) -> str:
        """Return the phase in a word or two."""
        if self.phase == "queued" and self.place is not None:
            return phrases("progress_place", place=self.place)
        if exception := self.exception(phrases.runs):
            return exception.capitalize()
        return phrases(f"progress_{self.phase}")

    def lines(self, phrases: ChatPhrases, subtasks: Sequence[str] = ()) -> list[str]:
        """Return the plan's steps, the newest tool calls and a wait for the model.

        The lines of the subtasks are between the steps and the calls.
        """
        steps = [_describe_step(step, phrases, is_over=self.has_ended) for step in self._steps]
        if self._is_plan_by_larkspur:
            steps = [f"▣ {phrases.runs('plan_by_larkspur')}", *steps]
        in_order = sorted(self._tools, key=self._places.__getitem__)
        tools = [_describe_tool(self._tools[call_id], phrases) for call_id in in_order]
        max_tools = max(MAX_LINES - len(steps) - len(subtasks), MIN_TOOL_LINES)
        if len(tools) > max_tools:
            hidden = phrases("progress_more", count=len(tools) - max_tools)
            tools = [hidden, *tools[-max_tools:]]
        if retry := self._retry:
            tools.append(phrases.runs.retry(msgspec.structs.asdict(retry), retry.since))
        parts = [steps[: MAX_STEPS - len(subtasks)], subtasks, tools]
        lines = [line for part in parts if part for line in ("", *part)]
        return lines[1:]
