"""Receive message events: each is stored before Lark gets its acknowledgement."""

import asyncio
import logging
from concurrent.futures import Future

import msgspec
from cachetools import TTLCache

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.text import truncate_line
from internal.channels.chat.transport import OnMessage, ReceivedMessage
from internal.channels.lark.events import read_event

log = logging.getLogger(__name__)

STORE_TIMEOUT_SECONDS = 0.9
_CACHE_SIZE, _CACHE_SECONDS = 2_048, 600.0


class NotStored(LarkspurError):
    """The message is not stored yet; Lark must send it again."""


class EventReceiver:
    """Called in the connection's thread; `on_message` runs in the loop that created the object."""

    def __init__(self, on_message: OnMessage) -> None:
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._known: TTLCache[str, bool] = TTLCache(_CACHE_SIZE, _CACHE_SECONDS)
        self._storing: Future[None] | None = None

    def receive(self, payload: bytes) -> None:
        """Store a message or a recall; other events are ignored.

        A malformed event is logged and acknowledged: a second delivery would not differ.

        Raises:
            NotStored: it could not be stored in time. While the store is stuck, it is raised at
                once: the client handles events one after the other, so that waits would add up.
        """
        try:
            event = read_event(payload)
        except msgspec.DecodeError as error:
            log.warning("malformed event", extra={"reason": truncate_line(str(error), 200)})
            return
        if event is None or event.name in self._known:
            return
        raw = payload.decode("utf-8", "replace")
        self._store(ReceivedMessage(event.name, event.chat_id, event.open_id, raw))
        self._known[event.name] = True

    def _store(self, message: ReceivedMessage) -> None:
        if self._storing is not None and not self._storing.done():
            raise NotStored("the store is stuck")
        self._storing = asyncio.run_coroutine_threadsafe(self._on_message(message), self._loop)
        try:
            self._storing.result(STORE_TIMEOUT_SECONDS)
        except TimeoutError:
            # it may still be stored; the next delivery is a duplicate then
            raise NotStored("the store did not answer in time") from None
        except LarkspurError as error:
            raise NotStored(str(error)) from error
