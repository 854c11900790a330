"""The displays of runs in chats: the processes that may write to them, and their content."""

from datetime import timedelta
from functools import partial
from typing import NamedTuple

from internal.agent.app.chats import find_unfinished
from internal.agent.domain.chats import OutgoingState, RunDisplay, reply_key
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.tasks import ENDED, Run, Task
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Read, Write
from internal.agent.store.stores import Stores


class DisplayHolder(NamedTuple):
    """The writer of displays of runs: a channel, such as `lark:cli_a1`, and a process of it."""

    channel: str
    process: str


class ClaimedDisplay(NamedTuple):
    """A display that the holder may write to, its run, and the run's task."""

    display: RunDisplay
    run: Run
    task: Task


class RunDisplays:
    """Claims displays and stores their state. All leases are in seconds."""

    def __init__(self, database: Database, stores: Stores, clock: Clock) -> None:
        self._database, self._stores, self._clock = database, stores, clock

    async def claim(
        self, run_id: RunId, holder: DisplayHolder, lease: float
    ) -> ClaimedDisplay | None:
        """Claim the display of a run; None if it is closed or held by another process.

        A subtask has none: it is part of the display of the outermost run. Neither has a run that
        ended before it was displayed, or one that is not from a chat of the channel.
        """
        now, until = rfc3339(self._clock.now()), self._after(lease)
        stores = self._stores

        def work() -> Write[ClaimedDisplay | None]:
            run = yield from stores.runs.get(run_id)
            task = None if run is None else (yield from stores.tasks.get(run.task_id))
            if run is None or task is None or not _is_from(task, holder.channel):
                return None
            if run.status in ENDED:
                known = yield from stores.run_displays.get(run_id, holder.channel)
                if known is None:
                    return None
            display = yield from stores.run_displays.claim(
                run_id, *holder, lease_until=until, now=now
            )
            return None if display is None else ClaimedDisplay(display, run, task)

        return await self._database.write(work)

    async def save(self, display: RunDisplay, holder: DisplayHolder, lease: float) -> bool:
        """Store the state and renew the lease; False if another process holds the display."""
        save, until = self._stores.run_displays.save, self._after(lease)
        return await self._database.write(partial(save, display, *holder, lease_until=until))

    async def close(self, display: RunDisplay, holder: DisplayHolder) -> None:
        """Store that the display is complete, unless another process holds it."""
        await self._database.write(partial(self._stores.run_displays.close, display, *holder))

    async def get(self, run_id: RunId, channel: str) -> RunDisplay | None:
        """Return the display of a run, held or not; None if there is none."""
        return await self._database.read(partial(self._stores.run_displays.get, run_id, channel))

    async def get_reply(self, run_id: RunId) -> OutgoingState | None:
        """Return the state of the reply of a run; None if the run ended without one."""
        return await self._database.read(partial(self._stores.outbox.get_state, reply_key(run_id)))

    async def list_abandoned(self, channel: str) -> list[RunDisplay]:
        """Return the open displays of a channel whose lease is over."""
        now = rfc3339(self._clock.now())
        list_abandoned = self._stores.run_displays.list_abandoned
        return await self._database.read(partial(list_abandoned, channel, now))

    async def list_events(self, run_id: RunId) -> list[EventRecord]:
        """Return the stored events of a run in order."""
        return await self._database.read(partial(self._stores.events.list_by_run, run_id))

    async def list_subtasks(self, task_id: TaskId) -> list[Run]:
        """Return the runs of all subtasks below an outermost task, oldest first."""
        return await self._database.read(partial(self._stores.subtasks.list_tree, task_id))

    async def is_waiting(self, run_id: RunId) -> bool:
        """Return True if a run waits for a person."""
        run = await self._database.read(partial(self._stores.runs.get, run_id))
        return run is not None and run.status == "waiting" and not run.awaits_tasks

    async def get_place(self, run_id: RunId) -> int | None:
        """Return the place of a run in the queue; see `RunStore.get_place`."""
        return await self._database.read(partial(self._stores.runs.get_place, run_id))

    async def list_unfinished(self, channel: str, *, after: RunId | None = None) -> list[RunId]:
        """Return the unfinished runs that came from chats of a channel.

        With `after`, only the runs of the session of that run, and none before it has ended. Runs
        of subtasks are left out: they are part of the display of the outermost run.
        """
        stores = self._stores

        def of_session(ended_id: RunId) -> Read[list[RunId]]:
            found: list[RunId] = []
            ended = yield from stores.runs.get(ended_id)
            if ended is None or ended.status not in ENDED:
                return found
            for run in (yield from stores.runs.list_unfinished(ended.session_id)):
                task = yield from stores.tasks.get(run.task_id)
                if task is not None and _is_from(task, channel):
                    found.append(run.id)
            return found

        def of_all() -> Read[list[RunId]]:
            found = yield from find_unfinished(stores, lambda task: _is_from(task, channel))
            return [run.id for run, _ in found]

        work = of_all if after is None else partial(of_session, after)
        return await self._database.read(work)

    def _after(self, seconds: float) -> str:
        return rfc3339(self._clock.now() + timedelta(seconds=seconds))


def _is_from(task: Task, channel: str) -> bool:
    origin = task.origin
    is_here = f"{origin.channel}:{origin.app}" == channel and bool(origin.chat_id)
    return is_here and not task.is_subtask
