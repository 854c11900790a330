"""Display runs in their chats: a reaction while a run works, and one message with its progress.

Each display has one writer: the process that holds its lease. A run that waits for a person is not
held; it is displayed again when it continues.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Literal

import msgspec

from internal.agent.app.chats import ClaimedDisplay, DisplayHolder
from internal.agent.app.events.subscription import StreamItem
from internal.agent.app.gateway import Gateway
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.chats import RunDisplay
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import RunId
from internal.agent.ports.runtime import Clock
from internal.channels.chat.run_state import RunProgress
from internal.channels.chat.transport import (
    ChatPost,
    ChatTransport,
    RunContent,
    TransportRejected,
)
from internal.config.chat import ChatChannelSettings
from internal.i18n.chat import ChatTexts

log = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
LEASE_SECONDS = 15.0
RENEW_SECONDS = 5.0
REACTION_DELAY_SECONDS = 1.0
"""A run that ends or asks earlier adds no reaction."""
MIN_DISPLAYED_SECONDS = 2.0
"""The progress of a shorter run is not displayed: its reply is enough."""
UPDATE_INTERVAL_SECONDS = 1.0


class _State(msgspec.Struct):
    """What was displayed; stored with the lease. `lost`: the message cannot be updated any more.

    `reacting` and `sending` are stored before their calls. If they are set without an id, the call
    is repeated, which returns the id of what exists. `resting`: the run waits for a person.
    """

    reacting: bool = False
    reaction: str = ""
    sending: bool = False
    message: str = ""
    edits: int = 0
    lost: bool = False
    resting: bool = False


def _read_state(display: RunDisplay) -> _State:
    return msgspec.json.decode(display.state or b"{}", type=_State)


class RunDisplayLoop:
    """Displays the runs of one account, each in its own task.

    `on_outgoing` is called at once when a run ends or asks: there is something to send.
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
    ) -> None:
        self._transport, self._gateway, self._clock = transport, gateway, clock
        self._settings, self._texts, self._on_outgoing = settings, texts, on_outgoing
        channel = f"{transport.name}:{transport.app}"
        self._holder = DisplayHolder(channel, f"gateway-{secrets.token_hex(8)}")
        self._tasks: asyncio.TaskGroup | None = None
        self._shown: dict[RunId, _DisplayedRun | None] = {}
        self._resting: set[RunId] = set()
        self._has_resting = asyncio.Event()
        self._has_followed_all = False

    async def run(self, supervisor: Supervisor) -> None:
        """Display runs until cancelled."""
        name = self._transport.name
        try:
            async with asyncio.TaskGroup() as self._tasks:
                watching = supervisor.repeat(f"{name} waiting runs", self._watch_resting)
                self._tasks.create_task(watching)
                await supervisor.repeat(f"{name} displays", self._sweep, interval=SWEEP_SECONDS)
        finally:
            self._tasks = None

    async def release(self) -> None:
        """End all leases, so that another process can continue; call it after `run` has ended."""
        for displayed in self._shown.values():
            if displayed is not None:
                await displayed.release()

    def follow(self, run_id: RunId) -> None:
        """Display a run from now on, unless another process does."""
        if self._tasks is not None and run_id not in self._shown:
            self._resting.discard(run_id)
            self._shown[run_id] = None
            self._tasks.create_task(self._display(run_id))

    async def _sweep(self) -> None:
        """Follow runs that were never displayed, and displays that were abandoned."""
        displays = self._gateway.run_displays
        if not self._has_followed_all:
            for run_id in await displays.list_unfinished(self._holder.channel):
                self.follow(run_id)
            self._has_followed_all = True
        for display in await displays.list_abandoned(self._holder.channel):
            resting = _read_state(display).resting
            if resting and await displays.is_waiting(display.run_id):
                self._rest(display.run_id)
            else:
                self.follow(display.run_id)

    async def _display(self, run_id: RunId) -> None:
        try:
            if not await self._display_until_idle(run_id):
                return
            self._shown.pop(run_id)
            is_waiting = self._gateway.run_displays.is_waiting
            if run_id in self._resting and not await is_waiting(run_id):
                self.follow(run_id)  # it continued meanwhile
        except Exception:  # listener delivery: a run that cannot be displayed is still answered
            log.exception("run cannot be displayed", extra={"run_id": run_id})
            self._shown.pop(run_id)

    async def _display_until_idle(self, run_id: RunId) -> bool:
        """Display a run until it ends or waits; False if the process stops before."""
        displays = self._gateway.run_displays
        claimed = await displays.claim(run_id, self._holder, LEASE_SECONDS)
        if claimed is None:
            return True
        displayed = _DisplayedRun(
            claimed,
            self._transport,
            self._gateway,
            clock=self._clock,
            settings=self._settings,
            texts=self._texts,
            holder=self._holder,
        )
        self._shown[run_id] = displayed
        match await displayed.follow(self._on_outgoing):
            case "left":
                return False
            case "waiting":
                self._rest(run_id)
                await displayed.rest()
            case "over":
                self._resting.discard(run_id)
                session_id, channel = claimed.run.session_id, self._holder.channel
                for next_id in await displays.list_unfinished(channel, session_id):
                    self.follow(next_id)  # late steering became a task
                await displayed.finish()
        return True

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


class _DisplayedRun:
    """The display of one run, while this process holds its lease."""

    def __init__(
        self,
        claimed: ClaimedDisplay,
        transport: ChatTransport,
        gateway: Gateway,
        *,
        clock: Clock,
        settings: ChatChannelSettings,
        texts: ChatTexts,
        holder: DisplayHolder,
    ) -> None:
        self._display, self._run, task = claimed
        self._origin = task.origin
        self._transport, self._gateway, self._clock = transport, gateway, clock
        self._settings, self._holder = settings, holder
        self._phrases = texts.phrases_for(task.instruction)
        self._state = _read_state(self._display)
        self._state.resting = False
        self._progress = RunProgress()
        self._changed = asyncio.Event()
        self._started_at = 0.0
        self._last_shown: tuple[object, ...] = ()

    async def follow(self, on_outgoing: Callable[[], None]) -> Literal["over", "waiting", "left"]:
        """Display the run until it ends or waits for a person; then call `on_outgoing` at once.

        Nothing that is displayed may delay the reply or the question. Returns "left" if the process
        stops before.
        """
        position = 0
        for row in await self._gateway.run_displays.list_events(self._run.id):
            self._progress.apply(row.event, row.json)
            position = row.position
        self._note_start()
        async with asyncio.TaskGroup() as tasks:
            reacting = tasks.create_task(self._add_reaction())
            updating = tasks.create_task(self._keep_updated())
            if not self._progress.is_idle:
                await self._watch(position)
            reacting.cancel()
            if self._progress.is_idle:
                on_outgoing()
            else:
                updating.cancel()
        if self._progress.is_over:
            return "over"
        return "waiting" if self._progress.is_idle else "left"

    async def rest(self) -> None:
        """Show that the run waits for a person, and end the lease until it continues."""
        await self._update()
        await self._remove_reaction()
        self._state.reacting, self._state.reaction, self._state.resting = False, "", True
        await self._save(0.0)

    async def finish(self) -> None:
        """Show that the run is over, and close the display."""
        await self._update()
        await self._remove_reaction()
        await self._gateway.run_displays.close(self._stored(), self._holder)

    async def release(self) -> None:
        """End the lease."""
        await self._save(0.0)

    async def _watch(self, position: int) -> None:
        """Apply the run's events until it is idle, or until streams are closed."""
        watched = frozenset({self._run.session_id})
        start = self._gateway.cursor(position)
        async with aclosing(self._gateway.watch(watched, start)) as batches:
            async for batch in batches:
                for shown in batch:
                    if isinstance(shown, EventRecord) and shown.run_id == self._run.id:
                        self._apply(shown)
                if self._progress.is_idle:
                    return

    def _apply(self, record: EventRecord) -> None:
        if record.position and self._progress.apply(record.event, record.json):
            self._note_start()
            self._changed.set()

    def _note_start(self) -> None:
        if not self._started_at and self._progress.phase != "queued":
            self._started_at = self._clock.monotonic()

    async def _keep_updated(self) -> None:
        """Update the message, at most once a second, until the run is idle."""
        while not self._progress.is_idle:
            try:
                async with asyncio.timeout(self._next_check()):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            if self._is_due():
                await self._update()
                await asyncio.sleep(UPDATE_INTERVAL_SECONDS)
            if not await self._save():
                return

    def _next_check(self) -> float:
        is_young = self._started_at and not self._state.message
        return MIN_DISPLAYED_SECONDS if is_young else RENEW_SECONDS

    def _is_due(self) -> bool:
        is_hidden = self._settings.progress == "off" or self._state.lost or self._progress.is_idle
        if is_hidden or not self._started_at:
            return False
        age = self._clock.monotonic() - self._started_at
        has_details = bool(self._state.message) or self._progress.has_details
        return has_details or age >= MIN_DISPLAYED_SECONDS

    async def _update(self) -> None:
        """Send or update the message. A failure is only logged: replies are more important."""
        if self._state.lost or (self._progress.is_idle and not self._state.sending):
            return  # the reply or the question is enough
        content = self._content()
        if content[:3] == self._last_shown:
            return
        try:
            if self._state.message or not await self._send(content):
                self._state.edits += 1
                await self._transport.update(self._state.message, content)
            self._last_shown = content[:3]
        except TransportRejected as error:
            self._state.lost = True
            self._log("progress is not displayed any more", error)
        except LarkspurError as error:
            self._log("progress not displayed", error)

    async def _send(self, content: RunContent) -> bool:
        """Send the message and store its id; False if an older one may exist under its key."""
        is_repeated = self._state.sending
        if not is_repeated:
            self._state.sending = True
            await self._save()
        post = ChatPost(self._origin.chat_id, self._origin.message_id, content)
        self._state.message = await self._transport.send(post, idempotency_key=self._run.id)
        await self._save()
        return not is_repeated

    def _content(self) -> RunContent:
        state = self._progress
        return RunContent(
            state.phase,
            state.title(self._phrases),
            tuple(state.lines(self._phrases)),
            self._phrases,
            updates=self._state.edits,
            is_final=state.is_idle,
        )

    async def _add_reaction(self) -> None:
        """Add the reaction if the run still works after a second.

        If it is cancelled, the reaction may exist; `reacting` says so.
        """
        is_off = not self._settings.working_emoji(self._origin.message_id)
        if is_off or self._state.reaction:
            return
        await asyncio.sleep(REACTION_DELAY_SECONDS)
        self._state.reacting = True
        await self._save()
        try:
            await self._react()
        except LarkspurError as error:
            self._log("reaction not added", error)
        else:
            await self._save()

    async def _react(self) -> None:
        message_id = self._origin.message_id
        self._state.reaction = await self._transport.add_reaction(message_id, "working")

    async def _remove_reaction(self) -> None:
        if not self._state.reacting:
            return
        try:
            if not self._state.reaction:
                await self._react()
            message_id = self._origin.message_id
            await self._transport.remove_reaction(message_id, self._state.reaction)
        except LarkspurError as error:
            self._log("reaction not removed", error)

    async def _save(self, lease: float = LEASE_SECONDS) -> bool:
        """Store what was displayed and renew the lease; False if another process holds it."""
        return await self._gateway.run_displays.save(self._stored(), self._holder, lease)

    def _stored(self) -> RunDisplay:
        return self._display._replace(state=msgspec.json.encode(self._state).decode())

    def _log(self, message: str, error: Exception) -> None:
        log.info(message, extra={"run_id": self._run.id, "reason": str(error)})
