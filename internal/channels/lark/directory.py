"""Who the bot is, who speaks to it, and in which threads it takes part."""

import asyncio
import logging
from typing import NamedTuple

import msgspec
from cachetools import TTLCache

from internal.agent.app.gateway import Gateway
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.principals import Principal, Right
from internal.channels.chat.policy import ChatRules
from internal.channels.lark.api import LarkApi, LarkRejected

log = logging.getLogger(__name__)

_LONGEST_WAIT = 60.0
_REMEMBERED, _NAME_SECONDS, _UNNAMED_SECONDS = 2_048, 3_600.0, 60.0


class Identity:
    """The bot's open_id, fetched until it is known: nobody can tell before whom a group means."""

    def __init__(self, calls: LarkApi) -> None:
        self._calls = calls
        self._found = asyncio.Event()
        self.known = ""
        """The open_id, "" while it is not known."""

    async def bot(self) -> str:
        """Return the open_id as soon as it is known."""
        await self._found.wait()
        return self.known

    async def find(self) -> None:
        """Ask Lark until it answers."""
        wait = 1.0
        while not self.known:
            try:
                self.known = await self._calls.bot_open_id()
            except LarkspurError as error:
                log.warning("the bot's identity is not known yet", extra={"why": str(error)})
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
        self._found.set()


class People:
    """The people of one app: what they may do now, and what they are called."""

    def __init__(self, gateway: Gateway, calls: LarkApi, rules: ChatRules, app_id: str) -> None:
        self._gateway, self._calls, self._rules = gateway, calls, rules
        self._app_id = app_id
        self._names: TTLCache[str, str] = TTLCache(_REMEMBERED, _NAME_SECONDS)
        self._unnamed: TTLCache[str, bool] = TTLCache(_REMEMBERED, _UNNAMED_SECONDS)

    def id_of(self, open_id: str) -> str:
        """Return a person's id over all channels."""
        return f"lark:{self._app_id}:{open_id}"

    async def given(self, open_id: str) -> frozenset[Right]:
        """Return what somebody was given besides the lists; read anew at each call."""
        return await self._gateway.access.get_rights(self.id_of(open_id))

    async def principal(self, open_id: str, chat_id: str) -> Principal:
        """Return a person with what they may do in a chat at this moment."""
        rights = self._rules.rights(open_id, chat_id) | await self.given(open_id)
        return Principal(self.id_of(open_id), roles=rights)

    async def named(self, principal: Principal) -> Principal:
        """Return a person of this app with the name that others read."""
        name = await self.name(principal.id.removeprefix(self.id_of("")))
        return msgspec.structs.replace(principal, name=name)

    async def name(self, open_id: str) -> str:
        """Return what a person is called, "" when Lark does not tell."""
        if open_id in self._names or open_id in self._unnamed:
            return self._names.get(open_id, "")
        try:
            name = " ".join((await self._calls.name_of(open_id)).split())[:80]
        except LarkspurError as error:  # cosmetic: the id stands for the name
            log.info("a name is not told", extra={"why": str(error)})
            self._unnamed[open_id] = True
            return ""
        self._names[open_id] = name
        return name


class Threads:
    """In which threads of groups the bot has a word."""

    def __init__(self, calls: LarkApi, app_id: str) -> None:
        self._calls, self._app_id = calls, app_id
        self._ours: TTLCache[str, bool] = TTLCache(_REMEMBERED, _NAME_SECONDS)

    def join(self, thread_id: str) -> None:
        """Note that the bot takes part in a thread; "" is none."""
        if thread_id:
            self._ours[thread_id] = True

    async def takes_part(self, thread_id: str) -> bool:
        """Say whether the bot has written in a thread; a thread that may not be read is not ours.

        Raises:
            LarkBusy: Lark cannot tell now.
        """
        if thread_id in self._ours:
            return True
        try:
            async for item in self._calls.messages("thread", thread_id, 0.0):
                if (item.get("sender") or {}).get("id") == self._app_id:
                    self.join(thread_id)
                    return True
        except LarkRejected as refused:
            log.info("a thread cannot be read", extra={"why": str(refused)})
        return False


class Around(NamedTuple):
    """What a door knows of Lark besides its messages."""

    identity: Identity
    people: People
    threads: Threads
