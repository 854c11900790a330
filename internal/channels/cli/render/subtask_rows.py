"""Rows for subtasks and for tasks in the background: a live one each, and one at the end."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from internal.channels.cli.command_output import short_id
from internal.channels.cli.render.event_rows import (
    describe_arguments,
    first_line,
    format_duration,
)
from internal.channels.cli.render.text import Fragments, StyledLine, truncate_line
from internal.channels.cli.render.theme import Glyphs
from internal.i18n.catalog import MessageCatalog
from internal.i18n.runs import RunMessages

_MAX_PATH_WIDTH = 40
_MAX_ACTIVITY_WIDTH = 60
_INDENT: Fragments = (("", "    "),)


@dataclass
class _Lane:
    path: str
    activity: str = ""


class SubtaskRows:
    """The tasks of a session that go on beside its conversation, oldest first."""

    def __init__(self, messages: MessageCatalog, glyphs: Glyphs) -> None:
        self._messages, self._glyphs = messages, glyphs
        self._run_messages = RunMessages(messages.language)
        self._lanes: dict[str, _Lane] = {}
        self._roles: dict[str, str] = {}

    @property
    def count(self) -> int:
        """How many subtasks run."""
        return len(self._lanes)

    def set_messages(self, messages: MessageCatalog) -> None:
        """Change the language."""
        self._messages, self._run_messages = messages, RunMessages(messages.language)

    def add_created(self, payload: Mapping[str, Any]) -> None:
        """Remember the role of a subtask, from `background.task.dispatched`."""
        self._roles[payload["task_id"]] = payload["role"]

    def add_event(self, event: Mapping[str, Any]) -> StyledLine | None:
        """Add an event of a subtask. Return the row to print if it has ended."""
        payload, task_id = event["payload"], event["task_id"]
        match event["event"]:
            case "workflow.lifecycle.updated" if payload["status"] in {"running", "waiting"}:
                self._lane(event).activity = ""
            case "workflow.subflow.progress":
                self._lane(event).activity = payload["preview"]
            case "workflow.tool.started":
                detail = first_line(describe_arguments(payload.get("arguments", {})))
                self._lane(event).activity = f"{payload['tool_name']} {detail}".rstrip()
            case "workflow.result.final":
                path = self._lane(event).path
                del self._lanes[task_id]
                return self.ended(path, payload)
            case "workflow.result.cancelled":
                path = self._lane(event).path
                del self._lanes[task_id]
                return self.stopped(path)
            case _:
                pass
        return None

    def ended(self, path: str, result: Mapping[str, Any], more: str = "") -> StyledLine:
        """Return the row of a task that ended with a result."""
        seconds = format_duration(result["duration_ms"] / 1000)
        if not result.get("error"):
            return self._row(path, "ok", self._glyphs.ok, f"{seconds}{more}")
        reason = self._run_messages.ended(result["stop_reason"], result.get("error_code", ""))
        return self._row(path, "failed", self._glyphs.failed, f"{reason}{more}")

    def stopped(self, path: str) -> StyledLine:
        """Return the row of a task that was stopped."""
        return self._row(path, "faint", self._glyphs.stopped, self._messages("stopped"))

    def moved_ended(self, task_id: str, text: str, result: Mapping[str, Any] | None) -> StyledLine:
        """Return the row of a task in the background that ended, with how to read its answer."""
        path = self._messages("in_background", task=truncate_line(text, _MAX_PATH_WIDTH))
        if result is None:
            return self.stopped(path)
        command = self._messages("read_task", id=short_id(task_id))
        return self.ended(path, result, f" · {command}")

    def live(self) -> Iterator[StyledLine]:
        """Yield a row for each subtask that has not ended."""
        for lane in self._lanes.values():
            yield self._row(lane.path, "running", self._glyphs.tool, lane.activity)

    def _lane(self, event: Mapping[str, Any]) -> _Lane:
        task_id = event["task_id"]
        if task_id not in self._lanes:
            name = self._messages("subtask", number=event.get("subtask_index") or "?")
            role = self._roles.get(task_id) or event.get("subtask_preview") or ""
            self._lanes[task_id] = _Lane(f"{name} · {role}" if role else name)
        return self._lanes[task_id]

    def _row(self, path: str, state: str, glyph: str, text: str) -> StyledLine:
        shown = truncate_line(text, _MAX_ACTIVITY_WIDTH * (1 if state == "running" else 4))
        body: Fragments = (
            ("class:faint", f"  {self._glyphs.subagent} "),
            ("", f"{truncate_line(path, _MAX_PATH_WIDTH * 2)}  "),
            (f"class:{state}", glyph),
            ("class:faint", f" {shown}" if shown else ""),
        )
        return StyledLine(body, rest=_INDENT)
