"""An outbox and its sender, with a simulated Lark behind."""

import asyncio
import mimetypes
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from internal.agent.app.access import Access
from internal.agent.app.chat_delivery import ChatDelivery
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.chats import OutgoingMessage, PendingMessage, UnsentMessage
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.questions import Question, QuestionRecord
from internal.agent.store.stores import Stores
from internal.channels.chat.outbox_sender import OutboxSender, SessionPlaces
from internal.channels.chat.policy import ChatUsers
from internal.channels.lark.channel import LarkTransport
from internal.channels.lark.connection import AppCredentials
from internal.observability.clock import SystemClock
from internal.settings.chat import ChatChannelSettings
from internal.simulators.lark.simulator import LarkSim
from internal.storage.database_url import open_database
from tests.support.chat_texts import EN_TEXTS
from tests.support.database_files import write_new_database
from tests.support.lark_gateway import APP, shown_text
from tests.support.leaderships import make_leaderships
from tests.support.movable_clock import MovableClock
from tests.support.session_files import session_files


class NoDisplays:
    """No run has a message that a reply could replace."""

    async def find_reply_place(self, pending: PendingMessage, /) -> str:
        return ""

    def finish(self, outgoing: OutgoingMessage, /) -> None:
        """Do nothing: there is no display."""


class Outbox:
    """An outbox, and the sender that empties it."""

    def __init__(self, sim: LarkSim, database: Any, folder: Path) -> None:
        self.sim, self.database, self.stores, self.clock = sim, database, Stores(), MovableClock()
        self.files = session_files(folder, database, self.stores)
        credentials = AppCredentials(APP.app_id, APP.secret, sim.url)
        self.transport = LarkTransport(
            credentials, ChatChannelSettings(), self.clock, texts=EN_TEXTS
        )
        leaderships = make_leaderships(database, self.stores)
        self.leadership = leaderships.of_account(f"lark:{APP.app_id}")
        delivery = ChatDelivery(database, self.stores, self.clock)
        access = Access(database, self.stores, self.clock)
        self.sender = OutboxSender(
            ChatUsers(self.transport, access, ChatChannelSettings()),
            delivery,
            self.clock,
            files=self.files,
            displays=NoDisplays(),
            leadership=self.leadership,
            texts=EN_TEXTS,
            places=SessionPlaces("/sessions/{}".format),
        )

    async def promise(self, key: str, chat_id: str, reply_to: str = "", body: str = "x") -> None:
        outgoing = OutgoingMessage(key, "lark", APP.app_id, chat_id, reply_to, body)
        await self.database.write(partial(self.stores.outbox.add, outgoing, "2026-01-01"))
        self.sender.wake()

    async def promise_file(
        self, key: str, chat_id: str, reply_to: str, *, name: str, content: bytes
    ) -> None:
        media_type = mimetypes.guess_type(name)[0] or ""
        file = await self.files.put(SessionId("session-1"), name, media_type, content)
        outgoing = OutgoingMessage(
            key, "lark", APP.app_id, chat_id, reply_to, name, attachments=(file,)
        )
        await self.database.write(partial(self.stores.outbox.add, outgoing, "2026-01-01"))
        self.sender.wake()

    async def ask(self, name: str, chat_id: str, reply_to: str) -> None:
        question = Question(QuestionId(name), "clarify", "What?")
        ids = (RunId("run-1"), TaskId("task-1"), SessionId("session-1"))
        asked = QuestionRecord(
            question, *ids, "p", "lark:a:c", "operators", "2026-01-01", "2027-01-01"
        )
        await self.database.write(partial(self.stores.questions.add, asked))
        key = f"{name}:asked"
        outgoing = OutgoingMessage(key, "lark", APP.app_id, chat_id, reply_to, "", question_id=name)
        await self.database.write(partial(self.stores.outbox.add, outgoing, "2026-01-01"))
        self.sender.wake()

    async def remote(self, key: str) -> str:
        return str(await self.database.read(partial(self.stores.outbox.get_remote_id, key)))

    async def dead(self) -> list[UnsentMessage]:
        return list(await self.database.read(partial(self.stores.outbox.list_unsent, 10)))

    async def until_dead(self) -> UnsentMessage:
        async with asyncio.timeout(20):
            while not (found := await self.dead()):
                await self.sim.lark.changed_within(0.05)
        return found[0]

    def let_pass(self, time: timedelta) -> None:
        """Move the clocks of the gateway and of Lark forward, and look for messages to send."""
        self.sim.lark.clock.advance(time.total_seconds())
        self.clock.advance(time)
        self.sender.wake()

    async def until_postponed(self, attempts: int = 1) -> None:
        """Return when the oldest message of one chat has failed this many times and waits."""
        now = rfc3339(self.clock.now())
        list_due = partial(self.stores.outbox.list_due, "lark", APP.app_id, limit=9)
        async with asyncio.timeout(20):
            while True:
                pending = await self.database.read(partial(list_due, now="9999"))
                is_due = await self.database.read(partial(list_due, now=now))
                if pending and pending[0].attempts >= attempts and not is_due:
                    return
                await self.sim.lark.changed_within(0.05)

    async def until_due(self, count: int) -> None:
        """Return when this many chats have something left to send."""
        due = partial(self.stores.outbox.list_due, "lark", APP.app_id, now="9999", limit=99)
        async with asyncio.timeout(20):
            while len(await self.database.read(due)) != count:
                await self.sim.lark.changed_within(0.05)

    def said(self, chat: Any) -> list[str | None]:
        found = [one for one in self.sim.messages(chat) if one.sender_type == "app"]
        return [shown_text(self.sim, one) for one in found]


@asynccontextmanager
async def open_outbox(folder: Path, sim: LarkSim | None = None) -> AsyncGenerator[Outbox]:
    """Run the sender of an outbox; leaving stops it. The simulated Lark may be opened later."""
    async with AsyncExitStack() as stack:
        if sim is None:
            sim = await stack.enter_async_context(LarkSim([APP]))
        write_new_database(folder / "lark.db")
        database = await stack.enter_async_context(open_database(folder / "lark.db"))
        outbox = Outbox(sim, database, folder)
        supervisor = Supervisor(SystemClock())
        send = partial(outbox.sender.run, supervisor)
        running = asyncio.create_task(outbox.leadership.run(send, supervisor))
        try:
            yield outbox
        finally:
            running.cancel()
            await asyncio.wait([running])
            await outbox.transport.close()
