"""Rows for subtasks and for tasks in the background: a live one each, and one at the end."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from internal.channels.cli.command_output import short_id
from internal.channels.cli.render.event_rows import describe_arguments, first_line
from internal.channels.cli.render.text import Fragments, StyledLine, cell_width, truncate_line
from internal.channels.cli.render.theme import Glyphs
from internal.i18n.call_summary import tool_label
from internal.i18n.catalog import MessageCatalog
from internal.i18n.quantities import format_duration
from internal.i18n.runs import RunMessages

_MAX_TASK_WIDTH = 40
_MAX_PATH_WIDTH = 80
_MAX_ACTIVITY_WIDTH = 60
_MARKS_WIDTH = 5
"""The columns of the two glyphs of a row and the blanks beside them."""
_INDENT = "  "


@dataclass
class _Lane:
    number: int
    preview: str
    activity: str = ""


class SubtaskRows:
    """The tasks of a session that go on beside its conversation, oldest first."""

    def __init__(self, messages: MessageCatalog, glyphs: Glyphs) -> None:
        self._messages, self._glyphs = messages, glyphs
        self._run_messages = RunMessages(messages.language)
        self._lanes: dict[str, _Lane] = {}
        self._roles: dict[str, str] = {}
        self._places: dict[str, tuple[int, ...]] = {}
        """The numbers of a subtask and of those above it, outermost first, by task id."""

    @property
    def count(self) -> int:
        """The number of running subtasks."""
        return len(self._lanes)

    def set_messages(self, messages: MessageCatalog) -> None:
        """Change the language."""
        self._messages, self._run_messages = messages, RunMessages(messages.language)

    def add_created(self, event: Mapping[str, Any]) -> None:
        """Add the role and the place of a subtask, from `background.task.dispatched`."""
        payload = event["payload"]
        above = self._places.get(event["task_id"], ())
        self._roles[payload["task_id"]] = payload["role"]
        self._places[payload["task_id"]] = (*above, payload["number"])

    def add_event(self, event: Mapping[str, Any]) -> StyledLine | None:
        """Add an event of a subtask. Return the row to print if it has ended."""
        payload = event["payload"]
        match event["event"]:
            case "workflow.lifecycle.updated" if payload["status"] in {"running", "waiting"}:
                self._lane(event).activity = ""
            case "workflow.subflow.progress":
                self._lane(event).activity = payload["preview"]
            case "workflow.tool.started":
                detail = first_line(describe_arguments(payload.get("arguments", {})))
                name = tool_label(payload["tool_name"], payload.get("title", ""))
                self._lane(event).activity = f"{name} {detail}".rstrip()
            case "workflow.result.final":
                return self._ended(*self._end(event), payload)
            case "workflow.result.cancelled":
                return self._stopped(*self._end(event))
            case _:
                pass
        return None

    def moved_ended(self, task_id: str, text: str, result: Mapping[str, Any] | None) -> StyledLine:
        """Return the row of a task in the background that ended, with how to read its answer."""
        path = self._messages("in_background", task=truncate_line(text, _MAX_TASK_WIDTH))
        if result is None:
            return self._stopped(_INDENT, path)
        command = self._messages("read_task", id=short_id(task_id))
        return self._ended(_INDENT, path, result, f" · {command}")

    def live(self, width: int) -> Iterator[StyledLine]:
        """Yield a row of at most `width` columns for each subtask that has not ended.

        The subtasks of a subtask are below it.
        """
        for task_id in sorted(self._lanes, key=self._place):
            indent, path, activity = self._indent(task_id), self._path(task_id), ""
            room = width - cell_width(indent) - _MARKS_WIDTH
            if shown := self._lanes[task_id].activity:
                path = truncate_line(path, max(room * 2 // 3, room - cell_width(shown) - 1))
                activity = truncate_line(
                    shown, min(room - cell_width(path) - 1, _MAX_ACTIVITY_WIDTH)
                )
            yield self._row(indent, truncate_line(path, room), "running", activity)

    def _ended(
        self, indent: str, path: str, result: Mapping[str, Any], more: str = ""
    ) -> StyledLine:
        reason, missed = result["stop_reason"], result.get("calls_not_run", 0)
        status = "failed" if result.get("error") else "completed"
        if exception := self._run_messages.exception(status, reason, missed):
            return self._row(indent, path, "need", f"{exception}{more}")
        if not result.get("error"):
            seconds = format_duration(result["duration_ms"] / 1000)
            return self._row(indent, path, "ok", f"{seconds}{more}")
        sentence = self._run_messages.ended(reason, result.get("error_code", ""))
        return self._row(indent, path, "failed", f"{sentence}{more}")

    def _stopped(self, indent: str, path: str) -> StyledLine:
        return self._row(indent, path, "faint", self._messages("stopped"))

    def _lane(self, event: Mapping[str, Any]) -> _Lane:
        number, preview = event.get("subtask_index") or 0, event.get("subtask_preview") or ""
        return self._lanes.setdefault(event["task_id"], _Lane(number, preview))

    def _end(self, event: Mapping[str, Any]) -> tuple[str, str]:
        """Remove the lane of a subtask; return its indent and path."""
        self._lane(event)
        task_id = event["task_id"]
        indent, path = self._indent(task_id), self._path(task_id)
        del self._lanes[task_id]
        return indent, path

    def _place(self, task_id: str) -> tuple[int, ...]:
        return self._places.get(task_id) or (self._lanes[task_id].number,)

    def _indent(self, task_id: str) -> str:
        return _INDENT * len(self._place(task_id))

    def _path(self, task_id: str) -> str:
        lane = self._lanes[task_id]
        name = self._messages("subtask", number=lane.number or "?")
        role = self._roles.get(task_id) or lane.preview
        return truncate_line(f"{name} · {role}" if role else name, _MAX_PATH_WIDTH)

    def _row(self, indent: str, path: str, state: str, text: str) -> StyledLine:
        glyph = {
            "running": self._glyphs.tool,
            "ok": self._glyphs.ok,
            "failed": self._glyphs.failed,
            "need": self._glyphs.note,
            "faint": self._glyphs.stopped,
        }[state]
        body: Fragments = (
            ("class:faint", f"{indent}{self._glyphs.subagent} "),
            ("", f"{path}  "),
            (f"class:{state}", glyph),
            ("class:faint", f" {text}" if text else ""),
        )
        return StyledLine(body, rest=(("", f"{indent}{_INDENT}"),))
