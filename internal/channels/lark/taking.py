"""Taking in: accepted messages become commands, steering, tasks or polite notes.

The messages of a chat are taken in one at a time, in the order of their arrival; chats beside each
other. A row that was accepted stays until this has settled it.
"""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import msgspec

from internal.agent.app.briefing import Defaults, Options, brief_for
from internal.agent.app.gateway import Gateway
from internal.agent.app.intake import Submission
from internal.agent.domain.errors import Conflict, StoreError
from internal.agent.domain.ids import RunId
from internal.agent.domain.permissions import Mode
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import Brief
from internal.agent.ports.conversations import Inbound
from internal.agent.ports.database import Database
from internal.agent.ports.delivery import Outgoing
from internal.agent.ports.stores import Stores
from internal.channels.lark.commands import read_command
from internal.channels.lark.gates import Ignore, LarkRules, Note, Pass, judge
from internal.channels.lark.identity import Identity
from internal.channels.lark.messages import Message, read_event
from internal.channels.lark.obeying import Obeying, Place
from internal.channels.lark.words import words_for

log = logging.getLogger(__name__)

SWEEP_SECONDS = 30.0
_PAGE = 1_000
_TRIES = 3


def scope_of(chat_id: str) -> str:
    """Return the name under which a chat's conversation is remembered: 29 characters."""
    digest = hashlib.sha1(chat_id.encode(), usedforsecurity=False).digest()
    return f"lark-{digest[:12].hex()}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happens when a message was taken in.

    `follow` shows a run, `acknowledge` puts a reaction on a message, `promised` says that there is
    something to send.
    """

    follow: Callable[[RunId], None]
    acknowledge: Callable[[str], None]
    promised: Callable[[], None]


class Taker:
    """Takes in what one app accepted, until it is cancelled."""

    def __init__(
        self,
        identity: Identity,
        gateway: Gateway,
        database: Database,
        stores: Stores,
        setting: "Setting",
        outcome: Outcome,
    ) -> None:
        self._identity, self._gateway, self._outcome = identity, gateway, outcome
        self._rules, self._app_id, self._defaults = setting.rules, setting.app_id, setting.defaults
        self._database, self._inbox = database, stores.inbox
        self._obeying = Obeying(gateway, database, stores, setting.rules)
        self._woken = asyncio.Event()
        self._busy: set[str] = set()
        self._failed: Counter[str] = Counter()

    def wake(self) -> None:
        """Say that a message was accepted."""
        self._woken.set()

    async def run(self) -> None:
        """Take in, on every wake and every 30 s."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._woken.clear()
                try:
                    await self._start(tasks)
                except StoreError:
                    log.exception("the inbox cannot be read")
                try:
                    async with asyncio.timeout(SWEEP_SECONDS):
                        await self._woken.wait()
                except TimeoutError:
                    pass

    async def _start(self, tasks: asyncio.TaskGroup) -> None:
        accepted = partial(self._inbox.accepted, "lark", self._app_id, _PAGE)
        chats: dict[str, list[Inbound]] = {}
        for row in await self._database.read(accepted):
            chats.setdefault(row.chat_id, []).append(row)
        for chat_id, rows in chats.items():
            if chat_id not in self._busy:
                self._busy.add(chat_id)
                tasks.create_task(self._take_chat(chat_id, rows))

    async def _take_chat(self, chat_id: str, rows: Sequence[Inbound]) -> None:
        try:
            for row in rows:
                await self._take(row)
            self._woken.set()  # more may have come meanwhile
        except Exception:  # a channel's outer loop: the rows stay and are taken later
            log.exception("a message was not taken in", extra={"chat": chat_id})
        finally:
            self._busy.discard(chat_id)

    async def _take(self, row: Inbound) -> None:
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
            words = words_for(self._rules.language, "")
            await self._answer(row, words("failed_inside", message_id=row.message_id))
        self._failed.pop(row.message_id, None)

    async def _decide(self, row: Inbound) -> None:
        message = _message(row)
        if message is None:
            await self._settle(row, "it cannot be read")
            return
        # a direct chat needs nobody's name; in a group we must know who is meant
        bot = self._identity.known if message.direct else await self._identity.bot()
        received = datetime.fromisoformat(row.received)
        match judge(message, self._rules, self._app_id, bot, received):
            case Ignore(why):
                await self._settle(row, why)
            case Note(text):
                await self._answer(row, text)
            case Pass() as passed:
                await self._do(row, passed)

    async def _do(self, row: Inbound, passed: Pass) -> None:
        scope = scope_of(row.chat_id)
        if (command := read_command(passed.text)) is not None:
            await self._answer(
                row, await self._obeying.obey(command, passed, Place(row.chat_id, scope))
            )
            return
        submission = Submission(
            passed.text, self._brief(passed.principal), "lark", scope=scope, message=row
        )
        if self._rules.busy_mode == "queue":
            submitted = await self._gateway.submit(submission, passed.principal)
            self._outcome.follow(submitted.run_id)
            return
        steered = await self._gateway.say(submission, passed.principal)
        if steered.taken_as == "steering":
            self._outcome.acknowledge(row.message_id)
        self._outcome.follow(steered.run_id)

    def _brief(self, principal: Principal) -> Brief:
        """Return how it is to be done: nobody can be asked yet, so what needs asking is a no."""
        options = Options(permission_mode=Mode.ASK, timeout_seconds=self._rules.run_timeout_seconds)
        brief = brief_for(self._defaults, options, principal)
        # the settings' folder is its owner's; a chat works in a folder of its own
        return msgspec.structs.replace(brief, workspace="", people=False)

    async def _settle(self, row: Inbound, why: str) -> None:
        await self._gateway.dismiss(row)
        log.info("a message was ignored", extra={"message_id": row.message_id, "why": why})

    async def _answer(self, row: Inbound, text: str) -> None:
        reply = Outgoing(
            key=f"{row.app}:{row.message_id}:note",
            channel="lark",
            app=row.app,
            chat_id=row.chat_id,
            reply_to=row.message_id,
            body=text,
        )
        await self._gateway.dismiss(row, [reply] if text else [])
        self._outcome.promised()


@dataclass(frozen=True, slots=True)
class Setting:
    """Which app it is, how it behaves, and what its tasks get."""

    app_id: str
    rules: LarkRules
    defaults: Defaults


def _message(row: Inbound) -> Message | None:
    try:
        return read_event(row.raw)
    except msgspec.DecodeError:
        return None
