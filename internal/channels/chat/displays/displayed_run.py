"""The display of one run, while this process holds its lease."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Literal

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.app.run_displays import ClaimedDisplay, DisplayHolder
from internal.agent.domain.chats import RunDisplay
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.events.types import Partial, ToolProgress
from internal.agent.domain.permissions.network import network_kind
from internal.agent.ports.runtime import Clock
from internal.channels.chat.displays.display_state import UNKNOWN_SECONDS, read_state
from internal.channels.chat.displays.run_state import RunProgress
from internal.channels.chat.displays.subtask_states import SubtaskStates
from internal.channels.chat.transport import (
    ChatPost,
    ChatTransport,
    RunContent,
    TransportRejected,
    TransportUnavailable,
)
from internal.i18n.chat import ChatTexts
from internal.settings.chat import ChatChannelSettings

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
RENEW_SECONDS = 5.0
REACTION_DELAY_SECONDS = 1.0
"""A run that ends or asks earlier adds no reaction."""
MIN_DISPLAYED_SECONDS = 2.0
"""The progress of a shorter run is not displayed: its reply is enough."""
_OUTPUT = frozenset({Partial.name, ToolProgress.name})
UPDATE_INTERVAL_SECONDS = 1.0
OUTPUT_INTERVAL_SECONDS = 5.0
"""Interval between displayed reports of a call."""
SETTLE_SECONDS = 1.0
"""The reply waits at most so long for the outcome of the last update."""
PLACE_SECONDS = 30.0
"""Interval between reads of the place of a queued run."""
PENDING_REPLY_SECONDS = 20.0
"""Interval between checks whether another process has sent the reply."""


class DisplayedRun:
    """A reaction while the run works, and one message with its progress.

    `isolated`: commands run isolated, which the message shows.
    """

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
        isolated: bool,
    ) -> None:
        self._display, self._run, task = claimed
        self._origin = task.origin
        self._transport, self._gateway, self._clock = transport, gateway, clock
        self._settings, self._holder = settings, holder
        self._phrases = texts.phrases_for(task.instruction)
        network = network_kind(task.spec.policy.allow)
        self._footer = self._phrases(
            f"card_isolated_{network}" if isolated else "card_not_isolated"
        )
        self._state = read_state(self._display)
        self._state.resting = False
        self._progress, self._subtasks = RunProgress(), SubtaskStates(self._run.id)
        self._changed, self._idle, self._quiet = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._quiet.set()
        self._started_at = self._waited = 0.0
        self._place_due = self._output_due = clock.monotonic()
        self._saved, self._saved_at = self._display.state, clock.monotonic()
        self._last_shown: tuple[object, ...] = ()
        self._is_stuck = self._is_reply_settled = False

    def stop(self) -> bool:
        """Write no more progress, because the run has ended; return True if there is no message."""
        self._idle.set()
        self._changed.set()
        return not self._state.has_message

    async def settle(self) -> None:
        """Write no more progress, and return when the outcome of the last call is known."""
        self.stop()
        await self._quiet.wait()

    def note_settled_reply(self) -> None:
        """Finish the display now: the reply was sent or given up."""
        self._is_reply_settled = True

    async def follow(
        self, on_outgoing: Callable[[], None], waited: float = 0.0
    ) -> Literal["over", "waiting", "left"]:
        """Display the run until it ends or waits for a person; then call `on_outgoing` at once.

        Nothing that is displayed may delay the reply or the question. `waited`: for how many
        seconds the run was known before. Returns "left" if the process stops before.
        """
        self._waited = waited
        position = 0
        for row in await self._gateway.run_displays.list_events(self._run.id):
            self._progress.apply(row.event, row.json)
            position = row.position
        await self._load_subtasks()
        async with asyncio.TaskGroup() as tasks:
            reacting = tasks.create_task(self._add_reaction())
            updating = tasks.create_task(self._keep_updated())
            if not self._progress.is_idle:
                self._state.failures, self._state.failing_since = 0, 0.0
                await self._watch(position)
            reacting.cancel()
            if self._progress.is_idle:
                on_outgoing()
                _, pending = await asyncio.wait([updating], timeout=SETTLE_SECONDS)
                self._is_stuck = bool(pending)
            updating.cancel()
        if self._progress.is_over:
            return "over"
        return "waiting" if self._progress.is_idle else "left"

    async def rest(self) -> None:
        """Show that the run waits for a person, and end the lease until it continues."""
        is_complete = await self._remove_reaction()
        is_complete = await self._remove_retired() and is_complete
        if self._state.has_message:
            is_complete = await self._show(self._content()) and is_complete
        wait = None if is_complete else self._state.note_failure(self._now())
        if wait is None:
            self._state.failures = 0
        self._state.resting = True
        self._state.asked = self._state.asked or self._state.has_message
        await self._save(wait or 0.0)

    async def hand_over(self) -> bool:
        """Store where the reply of the ended run belongs; False if another process does."""
        state = self._state
        if state.ended:
            return await self._save()
        if state.has_message and not state.message and not self._is_stuck:
            with suppress(TimeoutError):  # an earlier process may have sent it
                async with asyncio.timeout(SETTLE_SECONDS):
                    await self._show(self._content())
        state.end(self._now())
        return await self._save()

    async def finish(self) -> bool:
        """Remove the reaction, and the message unless the reply replaced it.

        Without a reply the message stays and shows the last state.

        Returns False if something is left to do; the display is then continued when its lease ends.
        """
        while True:
            self._is_reply_settled = False
            wait = await self._attempt_finish()
            if wait is None:
                await self._gateway.run_displays.close(self._stored(), self._holder)
                return True
            if not self._is_reply_settled:
                await self._save(wait)
            if not self._is_reply_settled:  # it may have been sent while this was stored
                return False

    async def release(self) -> None:
        """End the lease."""
        await self._save(0.0)

    async def _attempt_finish(self) -> float | None:
        """Finish the display; return the seconds until the next attempt, None without one."""
        state, wait = self._state, 0.0
        is_complete = await self._remove_reaction()
        is_complete = await self._remove_retired() and is_complete
        if state.has_message:
            reply = await self._gateway.run_displays.get_reply(self._run.id)
            if reply is not None and reply.is_pending:
                wait = PENDING_REPLY_SECONDS
            elif reply is not None and reply.remote_id:
                if reply.remote_id != state.message:
                    is_complete = await self._remove_message() and is_complete
            else:
                is_complete = await self._show(self._content()) and is_complete
                # until then an earlier update may replace this state
                wait = max(0.0, state.unknown_until - self._now())
        if is_complete:
            return wait or None
        retry = state.note_failure(self._now())
        if retry is None:
            log.warning("display given up", extra={"run_id": self._run.id})
        return retry

    async def _watch(self, position: int) -> None:
        """Apply the events of the run and its subtasks until it is idle, or streams are closed."""
        watched = frozenset({self._run.session_id})
        start = self._gateway.cursor(position)
        async with aclosing(self._gateway.watch(watched, start)) as batches:
            async for batch in batches:
                for shown in batch:
                    if not isinstance(shown, EventRecord):
                        continue
                    if shown.position:
                        self._apply(shown)
                    elif shown.event in _OUTPUT and shown.run_id == self._run.id:
                        self._apply_output(shown)
                if self._progress.is_idle:
                    return
                if self._subtasks.has_unnamed:
                    await self._load_subtasks()

    async def _load_subtasks(self) -> None:
        self._subtasks.load(await self._gateway.run_displays.list_subtasks(self._run.task_id))
        self._note_change()

    def _apply(self, record: EventRecord) -> None:
        is_own = record.run_id == self._run.id
        has_changed = is_own and self._progress.apply(record.event, record.json)
        if self._subtasks.apply(record.event, record.json) or has_changed:
            self._note_change()

    def _apply_output(self, record: EventRecord) -> None:
        """Show the latest report of a call, not every report: messages allow few edits."""
        now = self._clock.monotonic()
        if self._progress.apply_output(record.json) and now >= self._output_due:
            self._output_due = now + OUTPUT_INTERVAL_SECONDS
            self._note_change()

    def _note_change(self) -> None:
        if self._subtasks.is_asking and self._state.has_message:
            self._state.asked = True
        if not self._started_at and self._progress.phase != "queued":
            self._started_at = self._clock.monotonic() - self._waited
        if self._progress.is_idle:
            self._idle.set()
        self._changed.set()

    async def _keep_updated(self) -> None:
        """Update the message, at most once a second, until the run is idle."""
        while not self._idle.is_set():
            await _wait(self._changed, self._next_check())
            self._changed.clear()
            await self._read_place()
            if self._must_move():
                self._state.move_below()
                self._last_shown = ()
            is_due = self._is_due()
            if is_due and await self._show(self._content()) and self._state.message:
                await self._remove_retired()
            if self._must_save() and not await self._save():
                return
            if is_due:
                await _wait(self._idle, UPDATE_INTERVAL_SECONDS)

    async def _read_place(self) -> None:
        """Read the place of a run that has waited to be started, from time to time."""
        now = self._clock.monotonic()
        if self._progress.phase != "queued" or now < self._place_due:
            return
        self._progress.place = await self._gateway.run_displays.get_place(self._run.id)
        self._place_due = now + PLACE_SECONDS

    def _next_check(self) -> float:
        is_above = self._state.asked and not self._subtasks.is_asking
        if not self._started_at or (self._state.message and not is_above):
            return RENEW_SECONDS
        return max(MIN_DISPLAYED_SECONDS - self._age(), UPDATE_INTERVAL_SECONDS)

    def _must_move(self) -> bool:
        """Return True if the message is above an answered question, and the run continues."""
        is_answered = self._state.asked and not self._subtasks.is_asking
        goes_on = bool(self._started_at) and self._age() >= MIN_DISPLAYED_SECONDS
        return is_answered and goes_on and bool(self._state.message) and not self._idle.is_set()

    def _age(self) -> float:
        return self._clock.monotonic() - self._started_at

    def _is_due(self) -> bool:
        is_hidden = self._settings.progress == "off" or self._state.lost or self._idle.is_set()
        if is_hidden:
            return False
        if not self._started_at:
            return self._progress.place is not None
        has_details = bool(self._state.message or self._subtasks) or self._progress.has_details
        return has_details or self._age() >= MIN_DISPLAYED_SECONDS

    async def _show(self, content: RunContent) -> bool:
        """Send or update the message; False if it must be tried again."""
        shown = (*content[:3], content.thoughts)
        if shown == self._last_shown:
            return True
        self._quiet.clear()
        try:
            if self._state.message or not await self._send(content):
                await self._update(content)
        except TransportRejected as error:
            self._state.lost = True
            self._log("progress is not displayed any more", error)
        except LarkspurError as error:
            self._log("progress not displayed", error)
            return False
        finally:
            self._quiet.set()
        self._last_shown = shown
        return True

    async def _send(self, content: RunContent) -> bool:
        """Send the message and store its id; False if an older one may exist under its key."""
        state = self._state
        is_repeated = state.sending
        if not is_repeated:
            state.sending, state.sent_at = True, self._now()
        await self._begin_call()
        post = ChatPost(self._origin.chat_id, self._origin.message_id, content)
        try:
            key = f"{self._run.id}:{state.part}" if state.part else self._run.id
            sent = await self._transport.send(post, idempotency_key=key)
        except TransportUnavailable as error:
            state.sending = is_repeated or error.unconfirmed
            raise
        state.message = sent.message_id
        await self._save()
        return not is_repeated

    async def _update(self, content: RunContent) -> None:
        state = self._state
        state.edits += 1
        known, state.unknown_until = state.unknown_until, self._now() + UNKNOWN_SECONDS
        await self._begin_call()
        try:
            await self._transport.update(state.message, content)
        except TransportUnavailable as error:
            if not error.unconfirmed:
                state.unknown_until = known
            raise
        except TransportRejected:
            state.unknown_until = known
            raise
        state.unknown_until = known

    async def _remove_message(self) -> bool:
        """Remove the message, because the reply is below; False if it must be tried again."""
        below = self._content()._replace(lines=(self._phrases("progress_replied"),))
        if self._state.message:
            is_removed = await self._remove(self._state.message, below)
            self._state.lost = is_removed
            return is_removed
        is_shown = await self._show(below)  # its id is known from then on
        return is_shown and not self._state.has_message

    async def _remove_retired(self) -> bool:
        """Remove the messages that are above a question; False if it must be tried again."""
        below = self._content()._replace(
            title=self._phrases("progress_continued"),
            lines=(self._phrases("progress_continued_below"),),
            run_id="",
            is_final=True,
        )
        while self._state.retired:
            if not await self._remove(self._state.retired[0], below):
                return False
            del self._state.retired[0]
        return True

    async def _remove(self, message_id: str, instead: RunContent) -> bool:
        """Remove a message or, if that is refused, replace it with a note."""
        try:
            await self._begin_call()
            await self._transport.remove(message_id)
        except TransportRejected as error:
            self._log("progress not removed", error)
            try:
                await self._transport.update(message_id, instead)
            except TransportRejected as refusal:
                self._log("progress not updated", refusal)
            except LarkspurError as failure:
                self._log("progress not updated yet", failure)
                return False
        except LarkspurError as error:
            self._log("progress not removed yet", error)
            return False
        return True

    def _content(self) -> RunContent:
        state = self._progress
        return RunContent(
            state.phase,
            state.title(self._phrases),
            tuple(state.lines(self._phrases, self._subtasks.lines(self._phrases))),
            self._phrases,
            updates=self._state.edits,
            is_final=state.is_idle,
            footer=self._footer,
            run_id="" if state.has_ended else self._run.id,
            thoughts=state.thoughts,
        )

    async def _add_reaction(self) -> None:
        """Add the reaction if the run still works after a second.

        If it is cancelled, the reaction may exist, which `reacting` records.
        """
        is_off = not self._settings.working_emoji(self._origin.message_id)
        if is_off or self._state.reaction:
            return
        await asyncio.sleep(REACTION_DELAY_SECONDS - self._waited)
        self._state.reacting = True
        try:
            await self._begin_call()
            await self._react()
        except LarkspurError as error:
            self._log("reaction not added", error)
            self._state.reacting = isinstance(error, TransportUnavailable) and error.unconfirmed
        await self._save()

    async def _react(self) -> None:
        message_id = self._origin.message_id
        self._state.reaction = await self._transport.add_reaction(message_id, "working")

    async def _remove_reaction(self) -> bool:
        """Remove the reaction; False if it must be tried again."""
        if not self._state.reacting:
            return True
        try:
            await self._begin_call()
            if not self._state.reaction:
                await self._react()
            message_id = self._origin.message_id
            await self._transport.remove_reaction(message_id, self._state.reaction)
        except TransportRejected as error:  # there is none, or it cannot be removed
            self._log("reaction not removed", error)
        except LarkspurError as error:
            self._log("reaction not removed yet", error)
            return False
        self._state.reacting, self._state.reaction = False, ""
        return True

    async def _begin_call(self) -> None:
        """Store the state before a call to the service.

        Raises:
            TransportUnavailable: another process displays the run.
        """
        if not await self._save():
            raise TransportUnavailable("another process displays the run")

    async def _save(self, lease: float = LEASE_SECONDS) -> bool:
        """Store the display state and renew the lease; False if another process holds it."""
        stored = self._stored()
        self._saved, self._saved_at = stored.state, self._clock.monotonic()
        return await self._gateway.run_displays.save(stored, self._holder, lease)

    def _must_save(self) -> bool:
        is_old = self._clock.monotonic() - self._saved_at >= RENEW_SECONDS / 2
        return is_old or self._stored().state != self._saved

    def _stored(self) -> RunDisplay:
        return self._display._replace(state=msgspec.json.encode(self._state).decode())

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _log(self, message: str, error: Exception) -> None:
        log.info(message, extra={"run_id": self._run.id, "reason": str(error)})


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
