"""The identity of the bot."""

import asyncio
import logging

from internal.agent.domain.errors import LarkspurError
from internal.channels.lark.api import LarkApi

log = logging.getLogger(__name__)

MAX_RETRY_SECONDS = 60.0


class BotIdentity:
    """The bot's open_id. Without it a mention of the bot in a group cannot be recognized."""

    def __init__(self, api: LarkApi) -> None:
        self._api = api
        self._found = asyncio.Event()
        self.open_id = ""
        """The open_id, "" while it is unknown."""

    async def wait(self) -> str:
        """Return the open_id as soon as it is known."""
        await self._found.wait()
        return self.open_id

    async def fetch(self) -> None:
        """Ask Lark until it answers."""
        delay = 1.0
        while not self.open_id:
            try:
                self.open_id = await self._api.bot_open_id()
            except LarkspurError as error:
                log.warning("bot identity unknown", extra={"reason": str(error)})
                await asyncio.sleep(delay)
                delay = min(delay * 2, MAX_RETRY_SECONDS)
        self._found.set()
