"""Who the bot is: without its open_id nobody can tell whether a group means it."""

import asyncio
import logging

from internal.agent.domain.errors import LarkspurError
from internal.channels.lark.calls import LarkCalls

log = logging.getLogger(__name__)

_LONGEST_WAIT = 60.0


class Identity:
    """The bot's open_id, fetched until it is known."""

    def __init__(self, calls: LarkCalls) -> None:
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
