"""Watches for a connection that answers pings but delivers no events.

Such a connection looks healthy to the client. Undelivered messages are looked up in the histories
of chats after each opening of the connection, and when it has been silent for longer than usual.
Then the connection is replaced, and the missed messages are stored like delivered ones. The inbox
identifies messages by id, so none is stored twice, even if a process ends during a look-up.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from internal.agent.app.received_messages import ReceivedMessages
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.runtime import Clock
from internal.channels.chat.transport import OnMessage
from internal.channels.lark.api import LarkRejected, LarkUnavailable
from internal.channels.lark.connection import LarkConnection
from internal.channels.lark.history.missed_messages import (
    ChatHistories,
    HistoryPlace,
    MissedMessages,
)

log = logging.getLogger(__name__)

PlaceKind = Literal["direct", "group"]
_SCOPES: dict[PlaceKind, str] = {
    "direct": "im:message:readonly",
    "group": "im:message.group_msg",
}
_CHATS: dict[PlaceKind, str] = {"direct": "direct chats", "group": "groups"}
DEAF = "pings were answered, but messages that Lark has were not delivered"


class SilenceTimes(NamedTuple):
    """Times in seconds.

    A silent connection is checked after `first`, then after delays that double up to `longest`, in
    chats whose silence is `factor` times the usual one. Messages younger than `grace` may still
    arrive. Complete look-ups are at least `between` apart and begin `overlap` before the last
    known time, since the clock of Lark differs, but at most `lookback` ago. A failed one is
    repeated after `retry`, one without the scope after `refused`. Findings are reported for `told`.
    The time up to which no message is missing is stored every `mark`.
    """

    first: float = 300.0
    longest: float = 2_700.0
    factor: float = 4.0
    grace: float = 30.0
    between: float = 300.0
    overlap: float = 120.0
    lookback: float = 86_400.0
    retry: float = 60.0
    refused: float = 3_600.0
    told: float = 86_400.0
    mark: float = 300.0


class _Finding(NamedTuple):
    at: datetime
    sentence: str
    is_loss: bool = False


class SilenceWatch:
    """Watches the connection of one app while `run` runs; only the leader of the app runs it."""

    def __init__(
        self,
        connection: LarkConnection,
        histories: ChatHistories,
        clock: Clock,
        times: SilenceTimes,
    ) -> None:
        self._connection, self._histories, self._clock = connection, histories, clock
        self._times = times
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looked_up = 0
        """The opening of the connection after which all places were looked up."""
        self._next_look_up = 0.0
        self._quiet_since = 0.0
        self._delay, self._due = times.first, 0.0
        self._marked = 0.0
        self._turn = 0
        self._refused: dict[PlaceKind, float] = {}
        """Until when the histories of a kind of chats are not read: a scope is missing."""
        self._failure = ""
        self._findings: list[_Finding] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about found messages and about histories that cannot be read."""
        scopes = [
            f"missed messages of {_CHATS[kind]} cannot be looked up: the scope {_SCOPES[kind]} is"
            " missing"
            for kind in self._refused
        ]
        failure = [f"missed messages are not looked up yet: {self._failure}"]
        return (*self._told(is_loss=False), *scopes, *(failure if self._failure else ()))

    @property
    def losses(self) -> tuple[str, ...]:
        """Sentences about messages that were missed and not taken."""
        return self._told(is_loss=True)

    def wake(self) -> None:
        """Look at the connection now; may be called from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._woken.set)

    async def run(self, received: ReceivedMessages, on_message: OnMessage) -> None:
        """Watch until cancelled.

        Raises:
            StoreError: the database cannot be used; it may be run again.
        """
        self._loop = asyncio.get_running_loop()
        self._looked_up = 0  # another process may have led meanwhile
        while True:
            self._woken.clear()
            try:
                delay = await self._look(received, on_message)
                self._failure = ""
            except LarkUnavailable as error:
                delay = max(self._times.retry, error.wait)
                self._note_failure(str(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._woken.wait()

    async def _look(self, received: ReceivedMessages, on_message: OnMessage) -> float:
        """Run the checks that are due; return the seconds until the next check."""
        line, now = self._connection.activity, self._clock.monotonic()
        if self._connection.state.status != "connected":
            return self._times.longest  # its opening wakes
        if line.opened != self._looked_up:
            if now < self._next_look_up:
                return self._next_look_up - now
            await self._look_up_all(received, on_message)
            self._looked_up = line.opened
            self._next_look_up = self._clock.monotonic() + self._times.between
            return 0.0
        if line.quiet_since != self._quiet_since:
            self._quiet_since, self._delay = line.quiet_since, self._times.first
            self._due = line.quiet_since + self._delay
            await self._mark(received, now)
        if now >= self._due:
            await self._check_silence(received)
            self._delay = min(2 * self._delay, self._times.longest)
            self._due = self._clock.monotonic() + self._delay
        return min(self._due - now, self._times.mark)

    async def _mark(self, received: ReceivedMessages, now: float) -> None:
        """Store now and then that nothing is missing from before the last event."""
        if now >= self._marked + self._times.mark:
            quiet = timedelta(seconds=now - self._quiet_since)
            await received.save_checked(self._clock.now() - quiet)
            self._marked = now

    async def _look_up_all(self, received: ReceivedMessages, on_message: OnMessage) -> None:
        """Store the missing messages of all places, then the time up to which none are missing."""
        started, checked = self._clock.now(), await received.get_checked()
        if checked is None:  # what was written before the first connection is not for the bot
            await received.save_checked(started)
            return
        earliest = started - timedelta(seconds=self._times.lookback)
        if checked < earliest:
            left_out = f"messages from {rfc3339(checked)} to {rfc3339(earliest)}"
            self._report(f"{left_out} were not looked up: the connection was lost for too long")
        since = max(checked, earliest) - timedelta(seconds=self._times.overlap)
        taken = 0
        failure: LarkUnavailable | None = None
        for place in await self._places(received):
            try:
                missed = await self._find(received, place, since)
            except LarkUnavailable as error:
                if not error.is_failure:  # Lark is busy or unreachable
                    raise
                failure = error
                continue
            if missed is None:
                continue
            taken += await self._histories.store(missed, on_message)
            if not missed.is_complete and missed.messages:
                oldest = missed.messages[0].sent_at or since
                span = f"from {rfc3339(since)} to {rfc3339(oldest)}"
                self._report(
                    f"more messages of a chat were missed than are looked up: those {span} were"
                    " not read",
                    is_loss=True,
                    chat=place.chat_id,
                )
        if taken:
            subject = "1 message" if taken == 1 else f"{taken} messages"
            verb = "was" if taken == 1 else "were"
            self._report(f"{subject} that had not arrived {verb} taken from the history")
        if failure is not None:
            raise failure
        await received.save_checked(started)

    async def _check_silence(self, received: ReceivedMessages) -> None:
        """Replace the connection if a chat has a message that should have arrived."""
        checked = await received.get_checked()
        if checked is None:
            return
        now = self._clock.now()
        since = checked - timedelta(seconds=self._times.overlap)
        until = now - timedelta(seconds=self._times.grace)
        for place in self._suspects(await self._places(received), now):
            missed = await self._find(received, place, since, pages=1)
            if missed is not None and any(
                message.sent_at is not None and message.sent_at <= until
                for message in missed.messages
            ):
                self._report(f"the connection was replaced: {DEAF}")
                self._next_look_up = 0.0
                self._connection.reconnect(DEAF)
                return

    def _suspects(self, places: Sequence[HistoryPlace], now: datetime) -> list[HistoryPlace]:
        """Return the two most recently active places that are unusually silent, and one in turn."""
        silent = [place for place in places if self._is_unusual(place, now)]
        suspects, others = silent[:2], silent[2:]
        if others:
            suspects.append(others[self._turn % len(others)])
            self._turn += 1
        return suspects

    def _is_unusual(self, place: HistoryPlace, now: datetime) -> bool:
        usual, longest = place.usual_silence, self._times.longest
        wait = longest if usual is None else min(self._times.factor * usual, longest)
        return (now - place.newest).total_seconds() >= wait

    async def _places(self, received: ReceivedMessages) -> list[HistoryPlace]:
        return [
            place
            for place in await self._histories.list_places(received)
            if self._clock.monotonic() >= self._refused.get(_kind(place), 0.0)
        ]

    async def _find(
        self,
        received: ReceivedMessages,
        place: HistoryPlace,
        since: datetime,
        *,
        pages: int | None = None,
    ) -> MissedMessages | None:
        """Return the missing messages of a place, or None if it cannot be read.

        Raises:
            LarkUnavailable: it cannot be read for now.
        """
        kind, now = _kind(place), self._clock.monotonic()
        if now < self._refused.get(kind, 0.0):
            return None
        try:
            missed = await self._histories.find(received, place, since, pages=pages)
        except LarkRejected as error:
            if error.refusal == "permission":
                if kind not in self._refused:
                    scope = {"scope": _SCOPES[kind], "reason": str(error)}
                    log.warning("missed messages cannot be looked up", extra=scope)
                self._refused[kind] = now + self._times.refused
            else:  # such as that the bot is not in the chat any more
                log.info("history not read", extra={"chat": place.chat_id, "reason": str(error)})
            return None
        self._refused.pop(kind, None)
        return missed

    def _report(self, sentence: str, *, is_loss: bool = False, chat: str = "") -> None:
        now = self._clock.now()
        log.warning("%s", sentence, extra={"chat": chat} if chat else {})
        self._findings.append(_Finding(now, f"{sentence} ({rfc3339(now)})", is_loss))

    def _told(self, *, is_loss: bool) -> tuple[str, ...]:
        """Return the newest findings, at most three."""
        since = self._clock.now() - timedelta(seconds=self._times.told)
        self._findings = [each for each in self._findings if each.at >= since][-30:]
        found = [each.sentence for each in self._findings if each.is_loss == is_loss]
        return tuple(found[-3:])

    def _note_failure(self, reason: str) -> None:
        if not self._failure:
            log.warning("missed messages are not looked up yet", extra={"reason": reason})
        self._failure = reason


def _kind(place: HistoryPlace) -> PlaceKind:
    return "direct" if place.is_direct else "group"
