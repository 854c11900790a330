"""Which runs this process shows: those that it took in, and those that another one left behind."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import timedelta
from functools import partial

from internal.agent.app.events.subscription import StreamItem
from internal.agent.domain.chats import RunDisplay
from internal.agent.domain.errors import StoreError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Origin, Run, Status
from internal.channels.lark.progress_card import LEASE_SECONDS, Progress, Screen, is_resting
from internal.i18n.chat import ChatPhrases, phrases_for

log = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
_OPEN: tuple[Status, ...] = ("running", "queued", "waiting")
_MOST = 500


class Showings:
    """Follows runs, each in a task of its own.

    `promised` is called at once when a run ends or asks: there is something to send. A run that
    waits for a person rests: nothing is held for it, and it is followed again when it goes on.
    """

    def __init__(self, screen: Screen, app_id: str, promised: Callable[[], None]) -> None:
        self._screen, self._app_id, self._promised = screen, app_id, promised
        self._tasks: asyncio.TaskGroup | None = None
        self._shown: dict[RunId, Progress | None] = {}
        self._resting: set[RunId] = set()
        self._rests = asyncio.Event()
        self._taken_up = False

    async def run(self) -> None:
        """Show what is to be shown, until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._tasks:
                self._tasks.create_task(self._listen())
                while True:
                    await self._sweep()
                    await asyncio.sleep(SWEEP_SECONDS)
        finally:
            self._tasks = None

    async def release(self) -> None:
        """Leave all showings to the next process; after `run` was cancelled."""
        for progress in self._shown.values():
            if progress is not None:
                await progress.release()

    def follow(self, run_id: RunId) -> None:
        """Show a run from now on, if nobody else does."""
        if self._tasks is not None and run_id not in self._shown:
            self._resting.discard(run_id)
            self._shown[run_id] = None
            self._tasks.create_task(self._show(run_id))

    async def _take_up(self) -> None:
        """Follow the runs that are not over: one of them may have been taken in and never shown."""
        for status in _OPEN:
            queries = self._screen.gateway.queries
            for task in await queries.tasks(LOCAL_OWNER, status=status, limit=_MOST):
                if self._is_ours(task.origin):
                    self.follow((await queries.latest_run(task.id, LOCAL_OWNER)).id)

    async def _sweep(self) -> None:
        """Follow the runs whose showing was left behind."""
        try:
            if not self._taken_up:
                await self._take_up()
                self._taken_up = True
            now = rfc3339(self._screen.clock.now())
            abandoned = partial(
                self._screen.stores.run_displays.list_abandoned, self._screen.door, now
            )
            for showing in await self._screen.database.read(abandoned):
                if is_resting(showing) and await self._waits(showing.run_id):
                    self._rest(showing.run_id)
                else:
                    self.follow(showing.run_id)
        except StoreError:
            log.exception("showings cannot be read")

    async def _show(self, run_id: RunId) -> None:
        try:
            if await self._shown_to_its_end(run_id):
                self._shown.pop(run_id)
                if run_id in self._resting and not await self._waits(run_id):
                    self.follow(run_id)  # it went on meanwhile
        except Exception:  # listener delivery: a run that cannot be shown is still answered
            log.exception("a run cannot be shown", extra={"run_id": run_id})
            self._shown.pop(run_id)

    async def _shown_to_its_end(self, run_id: RunId) -> bool:
        read, stores = self._screen.database.read, self._screen.stores
        run = await read(partial(stores.runs.get, run_id))
        task = None if run is None else await read(partial(stores.tasks.get, run.task_id))
        showing = await self._claim(run_id)
        if run is None or task is None or showing is None:
            return True
        words = phrases_for(self._screen.rules.language, task.instruction)
        progress = self._shown[run_id] = self._make(showing, run, task.origin, words)
        match await progress.show(self._promised):
            case "left":
                return False
            case "waiting":
                self._rest(run_id)
                await progress.rest()
            case "over":
                self._resting.discard(run_id)
                await self._follow_next(run.session_id)
                await progress.finish()
        return True

    def _rest(self, run_id: RunId) -> None:
        self._resting.add(run_id)
        self._rests.set()

    async def _waits(self, run_id: RunId) -> bool:
        run = await self._screen.database.read(partial(self._screen.stores.runs.get, run_id))
        return run is not None and run.status == "waiting"

    async def _listen(self) -> None:
        """Follow runs that go on, at whatever door they were answered; until streams are closed."""
        while not self._screen.broadcaster.closed:
            await self._rests.wait()
            async with aclosing(self._screen.gateway.watch(None, None)) as batches:
                async for batch in batches:
                    self._go_on(batch)
                    if not self._resting:
                        self._rests.clear()
                        break

    def _go_on(self, batch: Sequence[StreamItem]) -> None:
        for shown in batch:
            if isinstance(shown, EventRecord) and shown.position and shown.run_id in self._resting:
                self._promised()
                self.follow(shown.run_id)

    def _make(self, showing: RunDisplay, run: Run, origin: Origin, words: ChatPhrases) -> Progress:
        return Progress(self._screen, showing, run, origin, words)

    async def _claim(self, run_id: RunId) -> RunDisplay | None:
        screen = self._screen
        moment = screen.clock.now()
        until = rfc3339(moment + timedelta(seconds=LEASE_SECONDS))
        return await screen.database.write(
            partial(
                screen.stores.run_displays.claim,
                run_id,
                screen.door,
                screen.owner,
                lease_until=until,
                now=rfc3339(moment),
            )
        )

    async def _follow_next(self, session_id: SessionId) -> None:
        """Follow the task that late steering became."""
        read, stores = self._screen.database.read, self._screen.stores
        for run in await read(partial(stores.runs.list_unfinished, session_id)):
            task = await read(partial(stores.tasks.get, run.task_id))
            if task is not None and self._is_ours(task.origin):
                self.follow(run.id)

    def _is_ours(self, origin: Origin) -> bool:
        return (origin.channel, origin.app) == ("lark", self._app_id) and origin.chat_id != ""
