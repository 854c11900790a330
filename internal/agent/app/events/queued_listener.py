"""QueuedListener: a listener with a queue of its own, so that a slow one delays nobody."""

import asyncio
import logging

from internal.agent.domain.events.envelope import WorkflowEventEnvelope
from internal.agent.domain.events.event import Event
from internal.agent.ports.runtime import EventListener

logger = logging.getLogger(__name__)

MOST_WAITING = 1024


class QueuedListener:
    """Hands envelopes on in order. One that finds the queue full is lost to this listener alone.

    `kinds` are the events that the listener is told of; without any it is told of all.
    """

    def __init__(self, listener: EventListener, *kinds: type[Event]) -> None:
        self._listener = listener
        self._kinds = kinds or (Event,)
        self._queue: asyncio.Queue[WorkflowEventEnvelope] = asyncio.Queue(MOST_WAITING)

    async def on_event(self, envelope: WorkflowEventEnvelope) -> None:
        """Take one envelope without waiting."""
        if not isinstance(envelope.payload, self._kinds):
            return
        try:
            self._queue.put_nowait(envelope)
        except asyncio.QueueFull:
            logger.warning(
                "listener too slow", extra={"run_id": envelope.run_id, "event": envelope.event}
            )

    async def listen(self) -> None:
        """Hand envelopes on until cancelled."""
        while True:
            envelope = await self._queue.get()
            try:
                await self._listener.on_event(envelope)
            except Exception:  # a failing listener costs nobody else anything
                logger.exception(
                    "listener failed", extra={"run_id": envelope.run_id, "event": envelope.event}
                )
            finally:
                self._queue.task_done()

    async def drained(self) -> None:
        """Return when all that was taken is handed on."""
        await self._queue.join()
