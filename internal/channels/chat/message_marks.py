"""Mark messages with reactions: received by a run, and done when the run has ended."""

import asyncio
import logging

from internal.agent.app.gateway import Gateway
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.chats import MessageMark
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.events.types import ResultCancelled, ResultFinal
from internal.agent.domain.ids import RunId
from internal.channels.chat.poll_loop import PollLoop
from internal.channels.chat.transport import ChatTransport, TransportRejected

log = logging.getLogger(__name__)

POLL_SECONDS = 30.0
_PAGE_SIZE = 100
_ENDS = frozenset(each.name for each in (ResultFinal, ResultCancelled))


class MessageMarks:
    """Reactions on the messages that runs of one account received: steering and answers.

    A reaction is stored. When its run has ended it is replaced by that for done or, if the message
    was not carried out, removed; after a restart as well.
    """

    def __init__(self, transport: ChatTransport, gateway: Gateway) -> None:
        self._transport, self._gateway = transport, gateway
        self._poll = PollLoop(POLL_SECONDS, f"{transport.name} marks")
        self._marked: set[str] = set()
        """Messages that this process marked as received and whose run has not ended."""

    async def mark_received(self, message_id: str, run_id: RunId | None) -> None:
        """Mark a message as received by a run; None if the run is identified by the message."""
        transport = self._transport
        self._marked.add(message_id)
        try:
            reaction = await transport.add_reaction(message_id, "received")
            await self._gateway.delivery.note_reaction(
                transport.name, transport.app, message_id, reaction=reaction, run_id=run_id or ""
            )
        except LarkspurError as error:
            log.info("message not confirmed", extra={"reason": str(error)})
            self._marked.discard(message_id)
        else:
            self._poll.wake()  # the run may have ended meanwhile

    async def run(self, supervisor: Supervisor) -> None:
        """Replace the reactions of runs that have ended, until cancelled."""
        with self._gateway.listen(self._on_event):
            await self._poll.run(self._settle_all, supervisor)

    def _on_event(self, record: EventRecord) -> None:
        if record.event in _ENDS and self._marked:
            self._poll.wake()

    async def _settle_all(self, _: asyncio.TaskGroup) -> None:
        delivery, transport = self._gateway.delivery, self._transport
        found = await delivery.list_settled_reactions(transport.name, transport.app, _PAGE_SIZE)
        for each in found:
            if not await self._settle(each):
                return  # the service does not answer: all are tried again later
            await delivery.clear_reaction(each.number)
            self._marked.discard(each.message_id)
        if len(found) == _PAGE_SIZE:
            self._poll.wake()

    async def _settle(self, mark: MessageMark) -> bool:
        """Replace a reaction; False if it must be tried again."""
        try:
            if mark.is_done:
                await self._transport.add_reaction(mark.message_id, "done")
            await self._transport.remove_reaction(mark.message_id, mark.reaction)
        except TransportRejected as error:  # the message was recalled, or is too old
            log.info("reaction not replaced", extra={"reason": str(error)})
        except LarkspurError as error:
            log.info("reaction not replaced yet", extra={"reason": str(error)})
            return False
        return True
