"""The runs of a session that have not ended, and the status line that describes the current one."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from internal.channels.cli.render.event_rows import describe_arguments, first_line
from internal.channels.cli.render.text import Fragments, truncate_line
from internal.channels.cli.render.theme import Glyphs
from internal.i18n.call_summary import tool_label
from internal.i18n.catalog import MessageCatalog
from internal.i18n.quantities import format_count, format_duration

AWAITS_TASKS = "await_tasks"
"""The status here of a run that waits for its subtasks."""
_ENDED = {"completed", "failed", "cancelled"}
_MAX_ENDED_TASKS = 64
_MAX_DETAIL_WIDTH = 60
_MAX_TOOL_NAME_WIDTH = 24


@dataclass
class RunState:
    """A run that has not ended."""

    task_id: str
    status: str
    since: float
    """Start of the run, in seconds since the epoch."""
    tokens: int = 0
    thinking: bool = False
    thinking_since: float = 0.0
    """Start of the thoughts before the reply, in seconds of a monotonic clock."""
    tools: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The `workflow.tool.started` payloads of the running calls, by call id."""
    progress: str = ""
    """The last line of output of the running tool."""
    notice: str = ""
    """The reason why the run waits for the model, "" once it continues."""
    started: bool = False
    """True once the run has been running: a later `running` status ends a pause."""


class RunActivity:
    """The runs of a session that have not ended, by id, oldest first."""

    def __init__(self) -> None:
        self.runs: dict[str, RunState] = {}
        self._ended_tasks: deque[str] = deque(maxlen=_MAX_ENDED_TASKS)

    @property
    def current(self) -> RunState | None:
        """The running run, else the next queued one. A run that waits for a person is neither.

        A run that waits for its tasks counts as running.
        """
        running = [run for run in self.runs.values() if run.status in {"running", AWAITS_TASKS}]
        queued = [run for run in self.runs.values() if run.status == "queued"]
        return next(iter(running or queued), None)

    @property
    def stoppable(self) -> RunState | None:
        """The run that a stop applies to: the current one, else the oldest that waits."""
        return self.current or next(iter(self.runs.values()), None)

    def expect(self, run_id: str, task_id: str, status: str) -> None:
        """Add a run whose first event has not arrived yet."""
        if task_id not in self._ended_tasks and run_id not in self.runs:
            self.runs[run_id] = RunState(task_id, status, time.time())

    def update_status(self, event: Mapping[str, Any], status: str) -> bool:
        """Store the status of a run. Return True when the run starts for the first time."""
        run_id = event["run_id"]
        timestamp = datetime.fromisoformat(event["timestamp"]).timestamp()
        if status in _ENDED:
            return False  # the result event follows and ends the run
        run = self.runs.setdefault(run_id, RunState(event["task_id"], "", timestamp))
        if status == "running" and run.status not in {"running", AWAITS_TASKS}:
            run.since = timestamp
        starts = status == "running" and not run.started
        run.status, run.started = status, run.started or starts
        return starts

    def end(self, event: Mapping[str, Any]) -> None:
        """Remove a run that has ended."""
        self.runs.pop(event["run_id"], None)
        self._ended_tasks.append(event["task_id"])


def render_status(
    run: RunState,
    plan: Mapping[str, Any] | None,
    glyphs: Glyphs,
    messages: MessageCatalog,
    *,
    stopping: bool,
    queued: int,
    facts: Sequence[str] = (),
) -> Fragments:
    """Return the activity of a run, its duration, its tokens, queued messages and more `facts`."""
    shown = [format_duration(int(max(time.time() - run.since, 0))).replace(".0s", "s")]
    if run.tokens:
        shown.append(messages("tokens", count=format_count(run.tokens)))
    if queued:
        shown.append(messages("queued", count=queued))
    activity = _describe_activity(run, plan, glyphs, messages)
    if stopping:
        activity = messages("stopping")
    elif run.status == AWAITS_TASKS:
        activity = messages("awaits_tasks")
    elif run.status != "running":
        activity = run.status
    return (
        ("class:running", f"{glyphs.tool} "),
        ("", f"{activity}  " if activity else ""),
        ("class:faint", " · ".join([*shown, *facts])),
    )


def _describe_activity(
    run: RunState, plan: Mapping[str, Any] | None, glyphs: Glyphs, messages: MessageCatalog
) -> str:
    if run.notice:
        return run.notice
    name, detail = messages("thinking") if run.thinking else "", ""
    if run.tools:
        call = next(reversed(run.tools.values()))
        label = tool_label(str(call["tool_name"]), str(call.get("title", "")))
        name = truncate_line(label, _MAX_TOOL_NAME_WIDTH)
        detail = run.progress or first_line(describe_arguments(call.get("arguments", {})))
    elif plan is not None:
        steps = plan["steps"]
        done = sum(step["status"] in {"completed", "skipped"} for step in steps)
        detail = f"{glyphs.plan} {done}/{len(steps)}"
    detail = truncate_line(detail, _MAX_DETAIL_WIDTH)
    return " ".join(part for part in (name, detail) if part)
