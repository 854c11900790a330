"""Receiving: a message is on disk before Lark hears that it arrived."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import msgspec
from cachetools import TTLCache

from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.text import truncate_line
from internal.agent.ports.runtime import Clock
from internal.channels.lark.events import read_event

log = logging.getLogger(__name__)

ACCEPT_SECONDS = 0.9
_REMEMBERED, _REMEMBERED_SECONDS = 2_048, 600.0

Accept = Callable[[InboundMessage], Coroutine[Any, Any, bool]]


class NotAccepted(LarkspurError):
    """The message is not on disk (yet): Lark must send it again."""


class Receiver:
    """Takes events in the connection's thread; the store lives in the loop of its maker."""

    def __init__(
        self, app_id: str, accept: Accept, accepted: Callable[[], None], clock: Clock
    ) -> None:
        self._app_id, self._accept, self._accepted, self._clock = app_id, accept, accepted, clock
        self._loop = asyncio.get_running_loop()
        self._known: TTLCache[str, bool] = TTLCache(_REMEMBERED, _REMEMBERED_SECONDS)
        self._writing: Future[bool] | None = None

    def take(self, payload: bytes) -> None:
        """Keep the message of an event, or the news that one was recalled; others are of no use.

        What is no message of Lark is logged and let go: another delivery would not mend it.

        Raises:
            NotAccepted: it could not be stored in time. While the store is stuck it is raised at
                once: the client handles one event after the other, so waits would add up.
        """
        try:
            message = read_event(payload)
        except msgspec.DecodeError as error:
            log.warning(
                "a malformed event was dropped", extra={"why": truncate_line(str(error), 200)}
            )
            return
        if message is None or message.name in self._known:
            return
        self._store(
            InboundMessage(
                channel="lark",
                app=self._app_id,
                message_id=message.name,
                chat_id=message.chat_id,
                principal=f"lark:{self._app_id}:{message.open_id}",
                raw=payload.decode("utf-8", "replace"),
                received=rfc3339(self._clock.now()),
            )
        )
        self._known[message.name] = True

    def _store(self, message: InboundMessage) -> None:
        if self._writing is not None and not self._writing.done():
            raise NotAccepted("the store is stuck")
        self._writing = asyncio.run_coroutine_threadsafe(self._keep(message), self._loop)
        try:
            self._writing.result(ACCEPT_SECONDS)
        except TimeoutError:
            # it may yet be stored; the next delivery finds it then
            raise NotAccepted("the store did not answer in time") from None
        except LarkspurError as error:
            raise NotAccepted(str(error)) from error

    async def _keep(self, message: InboundMessage) -> bool:
        fresh = await self._accept(message)
        if fresh:
            self._accepted()
        return fresh
