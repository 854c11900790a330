"""Sending: the outbox is emptied, the messages of a chat in order, the chats beside each other."""

import asyncio
import logging
import random
from datetime import datetime, timedelta
from functools import partial

from internal.agent.domain.chats import PendingMessage
from internal.agent.domain.errors import StoreError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.text import truncate_line
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.outbox import OutboxStore
from internal.channels.chat.poll_loop import Rounds
from internal.channels.lark.api import LarkRejected, LarkUnavailable
from internal.channels.lark.replies import Replies

log = logging.getLogger(__name__)

DOUBT = timedelta(minutes=50)
"""After this long Lark may have forgotten a uuid: our own message is looked for first."""
GIVE_UP = timedelta(hours=24)
POLL_SECONDS = 5.0
_LONGEST_WAIT = 60.0
_CHATS = 500
_SHOWN = 100


class Sender:
    """Sends what was promised, until it is cancelled."""

    def __init__(
        self, app_id: str, replies: Replies, database: Database, outbox: OutboxStore, clock: Clock
    ) -> None:
        self._app_id, self._replies = app_id, replies
        self._database, self._outbox, self._clock = database, outbox, clock
        self._rounds = Rounds(POLL_SECONDS, "outbox")
        self._busy: set[str] = set()
        self.dead: int | None = None
        """How many messages were given up, at most 100 are counted; None before it is known."""

    def wake(self) -> None:
        """Say that there may be something to send."""
        self._rounds.wake()

    async def run(self) -> None:
        """Send, for ever."""
        await self._rounds.run(self._start)

    async def _start(self, tasks: asyncio.TaskGroup) -> None:
        if self.dead is None:
            self.dead = await self._count_dead()
        now = rfc3339(self._clock.now())
        due = await self._database.read(
            partial(self._outbox.list_due, "lark", self._app_id, now=now, limit=_CHATS)
        )
        for pending in due:
            if pending.outgoing.chat_id not in self._busy:
                self._busy.add(pending.outgoing.chat_id)
                tasks.create_task(self._settle(pending))

    async def _count_dead(self) -> int:
        dead = await self._database.read(partial(self._outbox.list_dead_letters, _SHOWN))
        return sum(letter.outgoing.app == self._app_id for letter in dead)

    async def _settle(self, pending: PendingMessage) -> None:
        """Try a message once; whatever comes of it is stored."""
        key = pending.outgoing.key
        try:
            try:
                await self._try(pending)
            except StoreError:
                raise
            except Exception:  # a channel's outer loop: one message must not end the others
                log.exception("a message cannot be sent", extra={"key": key})
                await self._later(pending, "an error inside; the log has it", 0.0)
        except StoreError:
            log.exception("an outcome cannot be stored", extra={"key": key})
            await asyncio.sleep(POLL_SECONDS)
        finally:
            self._busy.discard(pending.outgoing.chat_id)
            self._rounds.wake()  # the chat may have more

    async def _try(self, pending: PendingMessage) -> None:
        number, outgoing, _, first = pending
        now = rfc3339(self._clock.now())
        if await self._database.write(partial(self._outbox.begin_attempt, number, now)) is None:
            return
        begun = None if first is None else datetime.fromisoformat(first)
        try:
            remote = ""
            if begun is not None and self._clock.now() - begun > DOUBT:
                remote = await self._replies.find(outgoing, begun)
            remote = remote or await self._replies.send(outgoing)
        except LarkRejected as refused:
            # what was tried before may have arrived, though nobody can tell any more
            await self._bury(pending, str(refused), doubtful=begun is not None)
        except LarkUnavailable as busy:
            if begun is not None and self._clock.now() - begun > GIVE_UP:
                await self._bury(pending, str(busy), doubtful=True)
            else:
                await self._later(pending, str(busy), busy.wait)
        else:
            now = rfc3339(self._clock.now())
            await self._database.write(partial(self._outbox.mark_sent, number, remote, now))
            log.info("reply sent", extra={"key": outgoing.key, "message_id": remote})

    async def _later(self, pending: PendingMessage, fault: str, wait: float) -> None:
        backoff = min(_LONGEST_WAIT, 2.0 ** min(pending.attempts, 6)) * random.uniform(0.5, 1)  # noqa: S311 - no secret
        wait = max(wait, backoff)
        moment = rfc3339(self._clock.now() + timedelta(seconds=wait))
        await self._database.write(partial(self._outbox.postpone, pending.number, moment, fault))
        log.warning(
            "a reply waits",
            extra={
                "key": pending.outgoing.key,
                "seconds": round(wait, 1),
                "why": truncate_line(fault, 300),
            },
        )
        asyncio.get_running_loop().call_later(wait, self.wake)

    async def _bury(self, pending: PendingMessage, fault: str, *, doubtful: bool) -> None:
        now = rfc3339(self._clock.now())
        work = partial(self._outbox.give_up, pending.number, fault, now, unconfirmed=doubtful)
        await self._database.write(work)
        self.dead = await self._count_dead()
        told = "a reply was given up; it may have been sent" if doubtful else "a reply was given up"
        log.error(told, extra={"key": pending.outgoing.key, "why": truncate_line(fault, 300)})
