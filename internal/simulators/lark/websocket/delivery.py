"""Event delivery: to one connection of the app, repeated until acknowledged.

The delays come from Lark's webhook documentation; whether long connections use the same ones is
unknown.
"""

import asyncio
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from internal.simulators.lark.clock import SimClock
from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.faults import Faults
from internal.simulators.lark.model import App, Json, new_id
from internal.simulators.lark.state import encode_event
from internal.simulators.lark.traffic_log import TrafficLog
from internal.simulators.lark.websocket.connection import OK, AppConnection, EventAck

REDELIVERY_SECONDS = (15.0, 300.0, 3_600.0, 21_600.0)
"""Delays before an unacknowledged event is sent again; afterwards it is given up."""
MAX_CONNECTIONS = 50
_REMEMBERED = 2_000


@dataclass(slots=True, eq=False)
class EventPush:
    """An event for an app.

    `attempts` holds the outcomes: ok, failed, late, nobody or, on a deaf connection, swallowed. A
    swallowed event is not sent again.
    `source` replaces fields of the header: the `app_id` or `tenant_key` of another app or tenant.
    """

    app: App
    event_type: str
    event: Json
    at_ms: int
    source: Mapping[str, str] | None = None
    event_id: str = field(default_factory=lambda: new_id("ev"))
    attempts: list[str] = field(default_factory=list)
    done: bool = False

    @property
    def message_id(self) -> str:
        """The id of the message in the event, or ""."""
        message = self.event.get("message")
        return str(message["message_id"]) if isinstance(message, dict) else ""

    def encode(self) -> bytes:
        """Return the event's JSON."""
        return encode_event(
            self.app,
            self.event_type,
            self.event,
            at_ms=self.at_ms,
            event_id=self.event_id,
            source=self.source,
        )


class EventDelivery:
    """Sends events to connections, in tasks of the given group."""

    def __init__(self, clock: SimClock, log: TrafficLog, faults: Faults) -> None:
        self.faults = faults
        self.connections: list[AppConnection] = []
        self.pushes: deque[EventPush] = deque(maxlen=_REMEMBERED)
        self._clock = clock
        self._log = log
        self._held: list[EventPush] = []
        self._tasks: asyncio.TaskGroup | None = None

    def attach(self, tasks: asyncio.TaskGroup | None) -> None:
        """Start delivering in this task group; None stops."""
        self._tasks = tasks

    def emit(
        self, app: App, event_type: str, event: Json, source: Mapping[str, str] | None = None
    ) -> None:
        """Send an event, or hold it while events are reordered; `source` as in `EventPush`."""
        push = EventPush(app, event_type, event, self._clock.now_ms(), source)
        self.pushes.append(push)
        self._held.append(push)
        if len(self._held) > self.faults.reorder:
            self.release()

    def release(self) -> None:
        """Send held events, the last one first."""
        held, self._held = self._held[::-1], []
        for push in held:
            for _ in range(1 + self.faults.duplicates):
                self.start(push)

    def start(self, push: EventPush) -> None:
        """Send an event, possibly again."""
        if self._tasks is not None:
            self._tasks.create_task(self._deliver(push))

    async def _deliver(self, push: EventPush) -> None:
        for wait in (0.0, *REDELIVERY_SECONDS):
            if wait:
                await self._clock.sleep(wait / self.faults.speed)
            if push.attempts and self.faults.new_event_ids:
                push.event_id = new_id("ev")
            outcome, _ = await self._attempt(push)
            push.attempts.append(outcome)
            self._log.add("note", push.app.app_id, f"{push.event_type}: {outcome}")
            if outcome in {"ok", "swallowed"}:
                break
        push.done = True

    async def call_back(
        self, app: App, event: Json, source: Mapping[str, str] | None = None
    ) -> EventAck | None:
        """Send a click, which is never repeated; return its acknowledgement or None."""
        push = EventPush(app, "card.action.trigger", event, self._clock.now_ms(), source)
        self.pushes.append(push)
        outcome, ack = await self._attempt(push)
        push.attempts.append(outcome)
        push.done = True
        return ack if outcome == "ok" else None

    async def _attempt(self, push: EventPush) -> tuple[str, EventAck | None]:
        there = [one for one in self.connections if one.app_id == push.app.app_id]
        if not there:
            return "nobody", None
        connection = random.choice(there)  # noqa: S311 - no secret
        if connection.is_deaf:
            return "swallowed", None
        ack = await connection.push(push.encode(), self.faults)
        if ack is None:
            return "late", None
        return ("ok" if ack.code == OK else "failed"), ack

    def add_connection(self, connection: AppConnection) -> None:
        """Add a connection.

        Raises:
            LarkError: The app has too many connections.
        """
        ours = [one for one in self.connections if one.app_id == connection.app_id]
        if len(ours) >= MAX_CONNECTIONS:
            raise LarkError(1000040350, "the number of connections exceeded the limit")
        self.connections.append(connection)
        self._log.add("socket", connection.app_id, f"open {connection.device_id}")

    def remove_connection(self, connection: AppConnection) -> None:
        """Remove a closed connection."""
        self.connections.remove(connection)
        connection.close()
        self._log.add("socket", connection.app_id, f"closed {connection.device_id}")
