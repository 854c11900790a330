"""Display runs in their chats: a reaction while a run works, and one message with its progress.

A new run is displayed after a second, or as soon as it has something to show; a run that ends
earlier has no display and no stored display state.

Each display has one writer: the process that holds its lease. A run that waits for a person is not
held; it is displayed again when it continues. When a run ends, its writer stops and stores whether
the reply replaces the message. The remaining updates (removing the reaction, showing the last state
of a message that is not replaced) are retried for a day, also after a restart.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress

import msgspec
from cachetools import TTLCache

from internal.agent.app.events.subscription import StreamItem
from internal.agent.app.gateway import Gateway
from internal.agent.app.run_displays import DisplayHolder
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.chats import OutgoingMessage, PendingMessage, reply_key
from internal.agent.domain.delegation.reports import TASKS_CHANNEL
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.events.types import (
    InputReceived,
    PlanUpdated,
    QuestionAsked,
    ResultCancelled,
    ResultFinal,
    ToolStarted,
)
from internal.agent.domain.ids import RunId
from internal.agent.ports.runtime import Clock
from internal.channels.chat.displays.display_state import DisplayState, read_state
from internal.channels.chat.displays.displayed_run import (
    LEASE_SECONDS,
    REACTION_DELAY_SECONDS,
    DisplayedRun,
)
from internal.channels.chat.transport import ChatTransport
from internal.i18n.chat import ChatTexts
from internal.settings.chat import ChatChannelSettings

log = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
HAND_OVER_SECONDS = 20.0
"""The reply waits at most so long for the process that displays the run; longer than a lease."""
STOP_SECONDS = 3.0
"""Part of the five seconds of a stop that a process waits for the outcomes of its updates."""
MAX_REPLACE_ATTEMPTS = 2
"""A reply that could not replace the message so often is sent as a new one."""
HAND_OVER_CHECK_SECONDS = 0.2
_SHOWN = frozenset(each.name for each in (ToolStarted, PlanUpdated, QuestionAsked))
_ENDS = frozenset(each.name for each in (ResultFinal, ResultCancelled))
_MAX_QUICK, _QUICK_SECONDS = 2_048, 600.0


class RunDisplayLoop:
    """Displays the runs of one account, each in its own task.

    `on_outgoing` is called at once when a run ends or asks: there is something to send. `isolated`:
    the commands of runs are isolated.
    """

    def __init__(
        self,
        transport: ChatTransport,
        gateway: Gateway,
        clock: Clock,
        *,
        settings: ChatChannelSettings,
        texts: ChatTexts,
        on_outgoing: Callable[[], None],
        isolated: bool,
    ) -> None:
        self._transport, self._gateway, self._clock = transport, gateway, clock
        self._settings, self._texts, self._on_outgoing = settings, texts, on_outgoing
        self._isolated = isolated
        channel = f"{transport.name}:{transport.app}"
        self._holder = DisplayHolder(channel, f"gateway-{secrets.token_hex(8)}")
        self._tasks: asyncio.TaskGroup | None = None
        self._shown: dict[RunId, DisplayedRun | None] = {}
        self._new: dict[RunId, asyncio.TimerHandle] = {}
        """New runs that are not displayed yet, and when they will be."""
        self._starting: set[RunId] = set()
        """New runs whose display is being claimed: nothing was shown of them."""
        self._quick: TTLCache[RunId, bool] = TTLCache(_MAX_QUICK, _QUICK_SECONDS)
        """Runs that ended before they were displayed."""
        self._resting: set[RunId] = set()
        self._has_resting = asyncio.Event()
        self._has_followed_all = False
        self._unfinished: set[RunId] = set()
        self._handed_over = asyncio.Event()

    async def run(self, supervisor: Supervisor) -> None:
        """Display runs until cancelled."""
        self._shown, self._resting, self._unfinished = {}, set(), set()  # of an earlier call
        self._has_followed_all = False
        self._starting.clear()
        self._quick.clear()
        try:
            with self._gateway.listen(self._on_event):
                await self._run_tasks(supervisor)
        finally:
            for timer in self._new.values():
                timer.cancel()
            self._new.clear()

    async def _run_tasks(self, supervisor: Supervisor) -> None:
        name = self._transport.name
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(supervisor.repeat(f"{name} waiting runs", self._watch_resting))
            self._tasks = tasks
            try:
                await supervisor.repeat(f"{name} displays", self._sweep, interval=SWEEP_SECONDS)
            finally:
                self._tasks = None

    async def settle(self) -> None:
        """Write no more progress; wait for the outcomes of the last updates, at most 3 s.

        Without them the next process could not replace the messages with replies.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                for displayed in [*self._shown.values()]:
                    if displayed is not None:
                        await displayed.settle()

    async def release(self) -> None:
        """End all leases, so that another process can continue; call it after `run` has ended."""
        for displayed in self._shown.values():
            if displayed is not None:
                await displayed.release()

    def follow(self, run_id: RunId) -> None:
        """Display a run from now on, unless another process does. A new one is displayed later."""
        if run_id not in self._new and run_id not in self._quick:
            self._start(run_id)

    def _start(self, run_id: RunId, waited: float = 0.0) -> None:
        """Display a run that was followed this many seconds ago."""
        if self._tasks is not None and run_id not in self._shown:
            self._resting.discard(run_id)
            self._shown[run_id] = None
            self._tasks.create_task(self._display(run_id, waited))

    def _on_event(self, record: EventRecord) -> None:
        """Follow a new run, and display it when it has something to show."""
        run_id = record.run_id
        if record.event == InputReceived.name:
            if record.seq == 1 and run_id not in self._shown and self._may_be_here(record):
                self._new[run_id] = asyncio.get_running_loop().call_later(
                    REACTION_DELAY_SECONDS, self._start_new, run_id, REACTION_DELAY_SECONDS
                )
        elif run_id in self._new:
            if record.event in _ENDS:
                self._skip(run_id)
            elif record.event in _SHOWN:
                self._start_new(run_id)

    def _may_be_here(self, record: EventRecord) -> bool:
        """Return True if a new run may be of this account. Subtasks are displayed with others."""
        envelope = record.envelope
        if envelope is None or not isinstance(envelope.payload, InputReceived):
            return True  # it is found out when the run is displayed
        here = {self._transport.name, TASKS_CHANNEL}
        return not envelope.is_subtask and envelope.payload.channel in here

    def _start_new(self, run_id: RunId, waited: float = 0.0) -> None:
        self._new.pop(run_id).cancel()
        if run_id not in self._shown:
            self._starting.add(run_id)
            self._start(run_id, waited)

    def _skip(self, run_id: RunId) -> None:
        """Do not display a run that has ended."""
        self._new.pop(run_id).cancel()
        self._quick[run_id] = True

    async def find_reply_place(self, pending: PendingMessage) -> str:
        """Return the message that a reply replaces, or "".

        Progress of its run is no longer written: no earlier update can replace the reply.
        """
        run_id = RunId(pending.outgoing.run_id)
        if pending.outgoing.key != reply_key(run_id) or pending.attempts >= MAX_REPLACE_ATTEMPTS:
            return ""
        if run_id in self._new:  # its end is stored already
            self._skip(run_id)
        if run_id in self._starting:
            self._quick[run_id] = True
        displayed = self._shown.get(run_id)
        if run_id in self._quick or (displayed is not None and displayed.stop()):
            return ""
        try:
            async with asyncio.timeout(HAND_OVER_SECONDS):
                return await self._until_handed_over(run_id)
        except TimeoutError:
            log.warning("display not handed over", extra={"run_id": run_id})
            return ""

    def finish(self, outgoing: OutgoingMessage) -> None:
        """Finish the display of a run whose reply was sent or given up."""
        run_id = RunId(outgoing.run_id)
        if outgoing.key != reply_key(run_id):
            return
        displayed = self._shown.get(run_id)
        if displayed is not None:
            displayed.note_settled_reply()
        elif run_id in self._unfinished:
            self.follow(run_id)

    async def _until_handed_over(self, run_id: RunId) -> str:
        while True:
            self._handed_over.clear()
            display = await self._gateway.run_displays.get(run_id, self._holder.channel)
            if display is None:
                return ""
            state = read_state(display)
            if state.ended:
                return state.reply_place
            self.follow(run_id)  # unless another process does
            with suppress(TimeoutError):
                async with asyncio.timeout(HAND_OVER_CHECK_SECONDS):
                    await self._handed_over.wait()

    async def _sweep(self) -> None:
        """Follow runs that were never displayed, and displays that were abandoned."""
        displays = self._gateway.run_displays
        if not self._has_followed_all:
            for run_id in await displays.list_unfinished(self._holder.channel):
                self.follow(run_id)
            self._has_followed_all = True
        for display in await displays.list_abandoned(self._holder.channel):
            state = read_state(display)
            is_resting = state.resting and not state.failures
            if is_resting and await displays.is_waiting(display.run_id):
                self._rest(display.run_id)
            else:
                self.follow(display.run_id)

    async def _display(self, run_id: RunId, waited: float) -> None:
        try:
            if not await self._display_until_idle(run_id, waited):
                return
            self._shown.pop(run_id)
            is_waiting = self._gateway.run_displays.is_waiting
            if run_id in self._resting and not await is_waiting(run_id):
                self.follow(run_id)  # it continued meanwhile
        except Exception:  # listener delivery: a run that cannot be displayed is still answered
            log.exception("run cannot be displayed", extra={"run_id": run_id})
            self._shown.pop(run_id)

    async def _display_until_idle(self, run_id: RunId, waited: float) -> bool:
        """Display a run until it ends or waits; False if the process stops before."""
        displays = self._gateway.run_displays
        try:
            claimed = await displays.claim(run_id, self._holder, LEASE_SECONDS)
        finally:
            self._starting.discard(run_id)
        if claimed is not None and run_id in self._quick:  # its reply is being sent
            ended = msgspec.json.encode(DisplayState(ended=True)).decode()
            await displays.close(claimed.display._replace(state=ended), self._holder)
            claimed = None
        if claimed is None:
            await self._follow_next(run_id)
            return True
        displayed = DisplayedRun(
            claimed,
            self._transport,
            self._gateway,
            clock=self._clock,
            settings=self._settings,
            texts=self._texts,
            holder=self._holder,
            isolated=self._isolated,
        )
        self._shown[run_id] = displayed
        match await displayed.follow(self._on_outgoing, waited):
            case "left":
                return False
            case "waiting":
                self._rest(run_id)
                await displayed.rest()
            case "over":
                self._resting.discard(run_id)
                is_held = await displayed.hand_over()
                self._handed_over.set()
                await self._follow_next(run_id)
                if is_held and not await displayed.finish():
                    self._unfinished.add(run_id)
                else:
                    self._unfinished.discard(run_id)
        return True

    async def _follow_next(self, run_id: RunId) -> None:
        """Follow the runs after one that has ended: late steering becomes a task."""
        displays, channel = self._gateway.run_displays, self._holder.channel
        for next_id in await displays.list_unfinished(channel, after=run_id):
            self.follow(next_id)

    def _rest(self, run_id: RunId) -> None:
        self._resting.add(run_id)
        self._has_resting.set()

    async def _watch_resting(self) -> None:
        """Follow waiting runs that continue, through whatever channel they were answered."""
        await self._has_resting.wait()
        async with aclosing(self._gateway.watch(None, None)) as batches:
            async for batch in batches:
                self._follow_continued(batch)
                if not self._resting:
                    break
        self._has_resting.clear()  # none is left, or streams are closed

    def _follow_continued(self, batch: Sequence[StreamItem]) -> None:
        for shown in batch:
            if isinstance(shown, EventRecord) and shown.position and shown.run_id in self._resting:
                self._on_outgoing()
                self.follow(shown.run_id)
