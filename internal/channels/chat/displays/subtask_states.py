"""The subtasks of a run, computed from their events, as a chat shows them."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from internal.agent.domain.delegation.subtask import subtask_path
from internal.agent.domain.events.types import (
    LifecycleUpdated,
    ResultFinal,
    SubflowProgress,
    ToolStarted,
)
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.tasks import Run
from internal.agent.domain.text import escape_invisible, truncate_line
from internal.channels.chat.question_text import seconds_between
from internal.i18n.chat import ChatPhrases
from internal.i18n.runs import RunMessages

MAX_SUBTASK_LINES = 8
MAX_PATH_LENGTH, MAX_DETAIL_LENGTH = 40, 100

SubtaskPhase = Literal[
    "asking", "working", "awaiting_tasks", "failed", "incomplete", "queued", "done", "cancelled"
]

_PHASES: dict[str, SubtaskPhase] = {
    "queued": "queued",
    "running": "working",
    "waiting": "asking",
    "completed": "done",
    "failed": "failed",
    "cancelled": "cancelled",
}
_MARKS: dict[SubtaskPhase, str] = {
    "asking": "?",
    "working": "●",
    "awaiting_tasks": "●",
    "failed": "✗",
    "incomplete": "⚠",
    "queued": "○",
    "done": "✓",
    "cancelled": "-",
}
_BY_IMPORTANCE: tuple[SubtaskPhase, ...] = tuple(_MARKS)
_ENDED = frozenset[SubtaskPhase]({"done", "incomplete", "failed", "cancelled"})
_ANY = RunMessages("en")
"""The catalogue of one language, for values that are equal in all languages."""
_OBSERVED = frozenset(
    each.name for each in (LifecycleUpdated, ResultFinal, SubflowProgress, ToolStarted)
)


class _Payload(msgspec.Struct):
    status: str = ""
    stop_reason: str | None = None
    error_code: str = ""
    tool_name: str = ""
    preview: str = ""
    calls_not_run: int = 0


class _Envelope(msgspec.Struct):
    timestamp: str
    task_id: TaskId
    correlation_id: RunId
    payload: _Payload
    subtask_index: int = 0


_decode = msgspec.json.Decoder(_Envelope).decode


class _SubtaskState(msgspec.Struct):
    """State of a subtask: `path` is "" if its role is unknown, `activity` is the last call.

    Times are RFC 3339, "" if unknown.
    """

    number: int
    path: str = ""
    phase: SubtaskPhase = "queued"
    activity: str = ""
    stop_reason: str = ""
    error_code: str = ""
    started: str = ""
    ended: str = ""
    status: str = ""
    calls_not_run: int = 0

    def exception(self, runs: RunMessages) -> str:
        """Return the exception to the status of its run; see `RunMessages.exception`."""
        return runs.exception(self.status, self.stop_reason or None, self.calls_not_run)

    def set_status(self, status: str, stop_reason: str | None, at: str) -> None:
        self.phase = _PHASES.get(status, self.phase)
        self.status, self.stop_reason = status, stop_reason or ""
        if self.phase == "asking" and stop_reason == "await_tasks":
            self.phase = "awaiting_tasks"
        if self.phase == "working":
            self.started = self.started or at
        if self.exception(_ANY):
            self.phase = "incomplete"
        self.ended = at if self.phase in _ENDED else ""


class SubtaskStates:
    """All subtasks below an outermost run, at any depth."""

    def __init__(self, root_run_id: RunId) -> None:
        self._root_run_id = root_run_id
        self._states: dict[TaskId, _SubtaskState] = {}

    def __bool__(self) -> bool:
        """Whether the run has created a task."""
        return bool(self._states)

    @property
    def is_asking(self) -> bool:
        """True if a subtask waits for a person."""
        return any(each.phase == "asking" for each in self._states.values())

    @property
    def has_unnamed(self) -> bool:
        """True if the role of a subtask is not known: its events have only its number."""
        return not all(each.path for each in self._states.values())

    def load(self, runs: Sequence[Run]) -> None:
        """Add the unknown subtasks in their stored state, and name all."""
        for run in runs:
            if run.subtask is None or run.subtask.root_run_id != self._root_run_id:
                continue
            if run.task_id not in self._states:
                state = self._states[run.task_id] = _SubtaskState(run.subtask.number)
                state.set_status(run.status, run.stop_reason, run.ended)
                state.started = run.started
            self._states[run.task_id].path = run.subtask.path

    def apply(self, event: str, envelope: bytes) -> bool:
        """Apply a durable event of a session; return True if it can change the display."""
        if event not in _OBSERVED:
            return False
        found = _decode(envelope)
        if found.correlation_id != self._root_run_id:
            return False
        if not found.subtask_index:
            return False
        payload = found.payload
        state = self._states.setdefault(found.task_id, _SubtaskState(found.subtask_index))
        match event:
            case LifecycleUpdated.name:
                state.set_status(payload.status, payload.stop_reason, found.timestamp)
            case SubflowProgress.name:
                state.activity = payload.preview
            case ToolStarted.name:
                if state.activity.partition(" ")[0] == payload.tool_name:
                    return False
                state.activity = payload.tool_name
            case _:
                state.stop_reason, state.error_code = payload.stop_reason or "", payload.error_code
                state.calls_not_run = payload.calls_not_run
        if state.exception(_ANY):
            state.phase = "incomplete"
        return True

    def lines(self, phrases: ChatPhrases) -> list[str]:
        """Return a line for each subtask in order, at most `MAX_SUBTASK_LINES`.

        If there are more, completed and unstarted subtasks are omitted first; a last line counts
        the omitted ones.
        """
        states = sorted(self._states.values(), key=lambda each: each.number)
        by_importance = sorted(states, key=lambda each: _BY_IMPORTANCE.index(each.phase))
        hidden = by_importance[MAX_SUBTASK_LINES:]
        lines = [_describe(each, phrases) for each in states if each not in hidden]
        if hidden:
            counts = Counter(each.phase for each in hidden)
            parts = [
                phrases(f"subtasks_{phase}", count=counts[phase])
                for phase in reversed(_BY_IMPORTANCE)
                if counts[phase]
            ]
            shown = phrases("calls_comma").join(parts)
            lines.append(phrases("subtasks_more", count=len(hidden), states=shown))
        return lines


def _describe(state: _SubtaskState, phrases: ChatPhrases) -> str:
    path = state.path or subtask_path(state.number, "")
    path = _shown(phrases.subtask(path), MAX_PATH_LENGTH)
    start = f"{_MARKS[state.phase]} {path}"
    match state.phase:
        case "done":
            seconds = seconds_between(state.started, state.ended)
            if seconds is None:
                return start
            return phrases("subtask_took", task=start, took=phrases.duration(seconds))
        case "working":
            detail = phrases.activity(state.activity) or phrases("subtask_working")
        case "incomplete":
            detail = state.exception(phrases.runs)
        case "failed":
            detail = _describe_failure(state, phrases)
        case phase:
            detail = phrases(f"subtask_{phase}")
    return phrases("subtask_line", task=start, detail=_shown(detail, MAX_DETAIL_LENGTH))


def _shown(text: str, max_length: int) -> str:
    return truncate_line(escape_invisible(text), max_length)


def _describe_failure(state: _SubtaskState, phrases: ChatPhrases) -> str:
    key = f"subtask_failed_{state.stop_reason}"
    return phrases(key) if key in phrases else phrases.runs.ended("error", state.error_code)
