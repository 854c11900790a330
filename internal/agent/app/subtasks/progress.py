"""Progress: the events about the activity of a subtask."""

from collections.abc import Sequence
from functools import partial

from internal.agent.app.events.writer import Emit
from internal.agent.domain.delegation.subtask import PREVIEW_CHARACTERS
from internal.agent.domain.events.types import SubflowProgress
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.react.call_subject import call_subject
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Run
from internal.agent.domain.text import escape_invisible, truncate_line
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

INTERVAL_SECONDS = 2.0


class SubtaskProgress:
    """Reports the next calls of a subtask, at most once in two seconds; nothing in other runs."""

    def __init__(
        self, run: Run, emit: Emit, *, database: Database, stores: Stores, clock: Clock
    ) -> None:
        self._place = run.subtask
        self._emit = emit
        self._database = database
        self._stores = stores
        self._clock = clock
        self._tool_calls = 0
        self._last: float | None = None

    async def report(self, turn: Turn, calls: Sequence[ToolCall]) -> None:
        """Report that these calls run now."""
        self._tool_calls += len(calls)
        place, now = self._place, self._clock.monotonic()
        if place is None or (self._last is not None and now - self._last < INTERVAL_SECONDS):
            return
        self._last = now
        completed = await self._database.read(
            partial(self._stores.subtasks.count_ended, place.root_task_id)
        )
        await self._emit(
            SubflowProgress(
                subtask_index=place.number,
                total_subtasks=place.total,
                completed=completed,
                tokens=turn.usage.total,
                tool_calls=self._tool_calls,
                preview=_preview(turn, calls[0]),
            )
        )


def _preview(turn: Turn, call: ToolCall) -> str:
    """Return a call with its subject, such as `web_fetch example.com`."""
    spec = turn.config.tool(call.name)
    subject = "" if spec is None else call_subject(call, spec)[1]
    text = f"{call.name} {subject}" if subject else call.name
    return truncate_line(escape_invisible(text), PREVIEW_CHARACTERS)
