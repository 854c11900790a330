"""Taking in: accepted messages become commands, steering, tasks or polite notes.

The messages of a chat are taken in one at a time, in the order of their arrival; chats beside each
other. A row that was accepted stays until this has settled it.
"""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.questions import Actor
from internal.agent.app.task_commands import RecallRequest
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.errors import Conflict
from internal.agent.domain.tasks import chat_name
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.channels.chat.command_handlers import Obeying, Said
from internal.channels.chat.command_parser import read_command
from internal.channels.chat.policy import Hearing, Ignore, Note, Pass, in_question, judge
from internal.channels.chat.poll_loop import Rounds
from internal.channels.chat.task_router import Outcome, Setting, Working
from internal.channels.chat.text_answers import Did, Place, Speaker
from internal.channels.lark.directory import Around
from internal.channels.lark.events import LarkMessage, LarkRecall, read_event
from internal.i18n.chat import phrases_for

log = logging.getLogger(__name__)

SWEEP_SECONDS = 30.0
_PAGE = 1_000
_TRIES = 3


def scope_of(chat_id: str) -> str:
    """Return the name under which a chat's conversation is remembered: 29 characters."""
    digest = hashlib.sha1(chat_id.encode(), usedforsecurity=False).digest()
    return f"lark-{digest[:12].hex()}"


class Taker:
    """Takes in what one app accepted, until it is cancelled."""

    def __init__(
        self,
        around: Around,
        gateway: Gateway,
        database: Database,
        stores: Stores,
        setting: Setting,
        outcome: Outcome,
    ) -> None:
        self._around, self._gateway, self._outcome = around, gateway, outcome
        self._rules, self._app_id = setting.rules, setting.app_id
        self._database, self._stores = database, stores
        self._obeying = Obeying(gateway, database, stores, setting.rules, around.people)
        self._working = Working(gateway, self._obeying, setting, outcome)
        self._rounds = Rounds(SWEEP_SECONDS, "inbox")
        self._busy: set[str] = set()
        self._failed: Counter[str] = Counter()

    def wake(self) -> None:
        """Say that a message was accepted."""
        self._rounds.wake()

    async def run(self) -> None:
        """Take in, on every wake and every 30 s."""
        await self._rounds.run(self._start)

    async def _start(self, tasks: asyncio.TaskGroup) -> None:
        accepted = partial(self._stores.inbox.list_accepted, "lark", self._app_id, _PAGE)
        chats: dict[str, list[InboundMessage]] = {}
        for row in await self._database.read(accepted):
            chats.setdefault(row.chat_id, []).append(row)
        for chat_id, rows in chats.items():
            if chat_id not in self._busy:
                self._busy.add(chat_id)
                tasks.create_task(self._take_chat(chat_id, rows))

    async def _take_chat(self, chat_id: str, rows: Sequence[InboundMessage]) -> None:
        try:
            for row in rows:
                await self._take(row)
            self._rounds.wake()  # more may have come meanwhile
        except Exception:  # a channel's outer loop: the rows stay and are taken later
            log.exception("a message was not taken in", extra={"chat": chat_id})
        finally:
            self._busy.discard(chat_id)

    async def _take(self, row: InboundMessage) -> None:
        """Settle one row.

        Raises:
            Exception: it is not settled; after the third time it is, with an apology.
        """
        try:
            await self._decide(row)
        except Conflict:
            log.info("a message was taken in before", extra={"message_id": row.message_id})
        except Exception:
            self._failed[row.message_id] += 1
            if self._failed[row.message_id] < _TRIES:
                raise
            log.exception("a message is given up", extra={"message_id": row.message_id})
            words = phrases_for(self._rules.language, "")
            await self._answer(row, words("failed_inside", message_id=row.message_id))
        self._failed.pop(row.message_id, None)

    async def _decide(self, row: InboundMessage) -> None:
        match _event(row):
            case None:
                await self._settle(row, "it cannot be read")
            case LarkRecall(message_id):
                # nobody is told who took it back; Lark lets its sender do so, and a group's owner
                recall = RecallRequest("lark", row.app, message_id, row.principal)
                recalled = await self._gateway.recall(recall)
                await self._settle(row, f"a message was recalled: {recalled}")
                self._outcome.promised()
            case message:
                await self._hear(row, message)

    async def _hear(self, row: InboundMessage, message: LarkMessage) -> None:
        gone = f"recall:{row.message_id}"  # order across events is not guaranteed
        if await self._database.read(partial(self._stores.inbox.get_state, "lark", row.app, gone)):
            await self._settle(row, "it was recalled")
            return
        match judge(message, self._rules, self._app_id, await self._hearing(row, message)):
            case Ignore(why):
                await self._settle(row, why)
            case Note(text):
                await self._answer(row, text)
            case Pass() as passed:
                await self._do(row, message, passed)

    async def _hearing(self, row: InboundMessage, message: LarkMessage) -> Hearing:
        identity, people, threads = self._around
        # a direct chat needs nobody's name; in a group we must know who is meant
        bot = identity.known if message.direct else await identity.bot()
        asks = in_question(message, self._rules, bot)
        return Hearing(
            bot=bot,
            ours=asks and await threads.takes_part(message.thread_id),
            received=datetime.fromisoformat(row.received),
            given=await people.given(message.open_id),
        )

    async def _do(self, row: InboundMessage, message: LarkMessage, passed: Pass) -> None:
        self._around.threads.join(message.thread_id)
        place = Place(row.chat_id, scope_of(row.chat_id), message.direct)
        command = read_command(passed.text)
        answerer = Actor(passed.principal, "lark", chat_name("lark", row.app, row.chat_id))
        speaker = Speaker(answerer, passed.words, row)
        did: Did | None
        if command is not None:
            did = await self._obeying.obey(command, Said(speaker, place))
        else:
            did = await self._obeying.deciding.hear(speaker, passed.text, message.parent_id)
        if did is None:
            await self._working.take(speaker, passed.text, place)
        else:
            await self._done(row, did)

    async def _done(self, row: InboundMessage, did: Did) -> None:
        if did.settled:
            self._outcome.acknowledge(row.message_id)
            self._outcome.promised()
        else:
            await self._answer(row, did.text)
        if did.run_id is not None:
            self._outcome.follow(did.run_id)

    async def _settle(self, row: InboundMessage, why: str) -> None:
        await self._gateway.mark_handled(row)
        log.info("a message was ignored", extra={"message_id": row.message_id, "why": why})

    async def _answer(self, row: InboundMessage, text: str) -> None:
        reply = OutgoingMessage(
            key=f"{row.app}:{row.message_id}:note",
            channel="lark",
            app=row.app,
            chat_id=row.chat_id,
            reply_to=row.message_id,
            body=text,
        )
        await self._gateway.mark_handled(row, [reply] if text else [])
        self._outcome.promised()


def _event(row: InboundMessage) -> LarkMessage | LarkRecall | None:
    try:
        return read_event(row.raw)
    except msgspec.DecodeError:
        return None
