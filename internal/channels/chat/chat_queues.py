"""The queues of accepted messages: processing order, and retries.

The messages of one chat are processed one at a time in the order of arrival; chats are independent
of each other. An accepted row stays in the inbox until it is settled. A message that this process
accepted is passed on without reading it again. The inbox is read at the start, for due messages,
and for messages that other processes accepted or that exceeded the queue.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress

from internal.agent.app.chat_delivery import ChatDelivery, MessageFacts
from internal.agent.app.processes.leadership import Leadership
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.chats import AcceptedMessage, edited_message_id
from internal.agent.domain.errors import (
    FilesUnavailable,
    LarkspurError,
    StoreError,
    StoreUnavailable,
)
from internal.agent.domain.secrets import mask_secrets
from internal.agent.domain.tasks import STEADY_SECONDS
from internal.agent.domain.text import truncate_line
from internal.channels.chat.message_handler import MessageHandler
from internal.channels.chat.poll_loop import PollLoop
from internal.channels.chat.queued_message import QueuedMessage
from internal.channels.chat.transport import ChatTransport, TransportUnavailable, recall_id

log = logging.getLogger(__name__)

SWEEP_SECONDS = 30.0
RETRY_SECONDS = (1.0, 5.0, 0.0)
"""The delays after failed attempts to process a message; its chat waits meanwhile."""
MAX_ATTEMPTS = len(RETRY_SECONDS)
"""A message that fails so often is set aside."""
RECHECK_SECONDS = 0.2
"""The delay before the inbox is read after a message was not to be processed yet."""
UNAVAILABLE_SECONDS = 10.0
"""The delay after an attempt that does not count, because a service could not be reached."""
DIED = "The process died {} times while it processed this message."
MAX_FAILURE_CHARACTERS = 500
_PAGE_SIZE = 1_000


class ChatQueues:
    """The messages of one account that wait for their handler, by chat."""

    def __init__(
        self, transport: ChatTransport, delivery: ChatDelivery, handler: MessageHandler
    ) -> None:
        self._transport, self._delivery, self._handler = transport, delivery, handler
        self._poll = PollLoop(SWEEP_SECONDS, f"{transport.name} inbox")
        self._steady_at = 0.0
        self._chats: dict[str, deque[QueuedMessage]] = {}
        """The messages that are being processed or come next, by chat."""
        self._has_more = False
        """Whether messages are accepted that are not among them."""
        self._leadership: Leadership | None = None
        self._alone = asyncio.Lock()
        self._unstored: dict[str, AcceptedMessage] = {}
        """Messages by id whose last attempt does not count, which could not be stored."""

    def wake(self) -> None:
        """Look for accepted messages now."""
        self._poll.wake()
        self._handler.notify()

    def take(self, message: QueuedMessage) -> None:
        """Process a message that this process has just accepted, if it leads."""
        chat_id = message.row.chat_id
        if sum(map(len, self._chats.values())) >= _PAGE_SIZE:
            self._has_more = True
            self._undo([message])
        elif chat_id in self._chats:
            self._chats[chat_id].append(message)
            self._handler.notify(chat_id)
        else:
            self._begin(chat_id, [message])

    async def run(self, supervisor: Supervisor, leadership: Leadership) -> None:
        """Process messages on every wake and every 30 s, while this process leads."""
        self._steady_at = asyncio.get_running_loop().time() + STEADY_SECONDS
        self._leadership = leadership
        await self._poll.run(self._start, supervisor)

    async def _start(self, _: asyncio.TaskGroup) -> None:
        transport, chats = self._transport, dict[str, list[QueuedMessage]]()
        found = await self._delivery.list_accepted(transport.name, transport.app, _PAGE_SIZE)
        for accepted in found:
            chats.setdefault(accepted.message.chat_id, []).append(QueuedMessage(accepted))
        for chat_id, waiting in chats.items():
            if chat_id not in self._chats:
                if self._is_due(waiting[0].accepted):
                    self._begin(chat_id, waiting)
            elif len(waiting) > len(self._chats[chat_id]):
                self._has_more = True
        self._has_more = self._has_more or len(found) == _PAGE_SIZE

    def _begin(self, chat_id: str, waiting: Sequence[QueuedMessage]) -> None:
        """Process messages of a chat that is idle, while this process leads."""
        if self._poll.tasks is not None and self._leadership is not None:
            self._chats[chat_id] = deque(waiting)
            self._poll.tasks.create_task(self._process_chat(chat_id, self._leadership))
        else:
            self._undo(waiting)

    def _undo(self, waiting: Iterable[QueuedMessage]) -> None:
        """Store that attempts do not count that were begun by the acceptance and are not made."""
        for message in waiting:
            if message.is_begun:
                message.is_begun = False
                with suppress(StoreError):
                    self._delivery.undo_attempt(message.accepted)

    def _is_due(self, accepted: AcceptedMessage) -> bool:
        """Return True if a message may be processed now; otherwise wake when it may be."""
        wait = self._delivery.seconds_until_due(accepted)
        if accepted.may_crash and accepted.attempts == MAX_ATTEMPTS - 1:
            wait = max(wait, self._steady_at - asyncio.get_running_loop().time())
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self.wake)
        return wait <= 0

    async def _process_chat(self, chat_id: str, leadership: Leadership) -> None:
        """Process the messages of a chat until one has to wait for its next attempt."""
        waiting = self._chats[chat_id]
        try:
            while waiting:
                # it runs beside no other that may have ended the process, so that one message
                # does not count against the others
                async with self._alone if waiting[0].accepted.may_crash else nullcontext():
                    is_settled = await self._process(waiting[0], waiting, leadership)
                if not is_settled:
                    self._has_more = True
                    break
                waiting.popleft()
            if self._has_more:
                self._has_more = False
                self._poll.wake()
        except Exception:  # a channel's outer loop: the rows stay and are processed later
            log.exception("messages of a chat not processed", extra={"chat": chat_id})
            asyncio.get_running_loop().call_later(UNAVAILABLE_SECONDS, self.wake)
        finally:
            self._undo(waiting)
            del self._chats[chat_id]

    async def _process(
        self, message: QueuedMessage, waiting: deque[QueuedMessage], leadership: Leadership
    ) -> bool:
        """Make an attempt to process a message. Return False if it waits for the next one.

        An attempt is counted before it is made, so that a crash counts as well. It is not made if
        another process leads, which then continues with this message, or if the inbox has an
        earlier message of the chat.

        Raises:
            StoreError: the outcome is not stored.
        """
        message.accepted = self._unstored.pop(message.row.message_id, message.accepted)
        attempts = message.accepted.attempts
        if attempts >= MAX_ATTEMPTS:
            await self._handler.set_aside(message, DIED.format(attempts))
            return True
        try:
            facts = await self._begin_attempt(message, leadership)
            if facts is None:
                asyncio.get_running_loop().call_later(RECHECK_SECONDS, self.wake)
                return True
            if (edited := await self._handler.handle(message, facts, waiting)) is not None:
                self._replace(edited)
        except asyncio.CancelledError:  # the process shuts down
            with suppress(StoreError):
                self._delivery.undo_attempt(message.accepted)
            raise
        except Exception as error:
            log.exception("message not processed", extra={"message_id": message.row.message_id})
            return await self._store_failure(message, error)
        return True

    async def _begin_attempt(
        self, message: QueuedMessage, leadership: Leadership
    ) -> MessageFacts | None:
        """Count an attempt, unless the acceptance has; None if it is not to be made."""
        accepted, row = message.accepted, message.row
        recall = recall_id(edited_message_id(row.message_id))  # it may arrive before its message
        if message.is_begun:
            message.is_begun = False
            return await self._delivery.get_facts(row, recall=recall)
        wait = RETRY_SECONDS[accepted.attempts]
        return await self._delivery.begin_processing(accepted, wait, leadership.held, recall=recall)

    async def _store_failure(self, message: QueuedMessage, error: Exception) -> bool:
        """Set a message aside after its last attempt and return True; else postpone it."""
        accepted, failure = message.accepted, _describe(error)
        attempts = accepted.attempts
        try:
            if _is_temporary(error):
                wait = UNAVAILABLE_SECONDS
            elif attempts + 1 < MAX_ATTEMPTS:
                wait, attempts = RETRY_SECONDS[attempts], attempts + 1
            else:
                await self._handler.set_aside(message, failure)
                return True
            await self._delivery.postpone_processing(accepted, attempts, wait=wait, failure=failure)
        except StoreUnavailable:  # the attempt that was begun is not one of the message
            self._unstored[message.row.message_id] = accepted
            raise
        return False

    def _replace(self, message: QueuedMessage) -> None:
        """Process the edited form of a message, also if the message waits to be processed."""
        waiting = self._chats.get(message.row.chat_id, deque())
        for number, each in enumerate(waiting):
            if each.row.message_id == message.row.message_id:
                message.is_begun = each.is_begun
                waiting[number] = message
                return
        self.take(message)


def _is_temporary(error: Exception) -> bool:
    """Return True if an attempt failed for a reason that is not in the message."""
    if isinstance(error, TransportUnavailable):
        return not error.isolated
    return isinstance(error, StoreUnavailable | FilesUnavailable)


def _describe(error: Exception) -> str:
    """Return the reason for the owner, with every secret masked."""
    if isinstance(error, LarkspurError):
        words = str(error)
    else:  # masked before it is cut: half a secret is not recognised
        words = mask_secrets(f"{type(error).__name__}: {error}")
    return truncate_line(words, MAX_FAILURE_CHARACTERS)
