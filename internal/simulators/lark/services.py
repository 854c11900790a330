"""The parts of the simulated Lark, created once and shared by all routes."""

import asyncio
import contextlib
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from internal.simulators.lark.auth import Credentials
from internal.simulators.lark.clock import SimClock
from internal.simulators.lark.faults import Faults
from internal.simulators.lark.model import App
from internal.simulators.lark.state import ChangeSignal, LarkState
from internal.simulators.lark.traffic_log import TrafficLog
from internal.simulators.lark.websocket.connection import ClientConfig
from internal.simulators.lark.websocket.delivery import EventDelivery


class LarkServices:
    """State, delivery, credentials, clock, log and faults of one simulator.

    Until `down_until` (seconds on `clock`) no request is answered.
    """

    def __init__(self, apps: Iterable[App], faults: Faults, config: ClientConfig) -> None:
        self.changes = ChangeSignal()
        self.clock = SimClock()
        self.faults = faults
        self.config = config
        self.log = TrafficLog(self.clock, self.changes.notify)
        self.delivery = EventDelivery(self.clock, self.log, faults)
        self.state = LarkState(self.clock, apps, self.delivery.emit, self.changes.notify)
        self.tokens = Credentials(self.state.apps, self.clock.now)
        self.down_until = 0.0
        self.closing = False
        """True during shutdown; waiting requests then return."""

    @property
    def down(self) -> bool:
        """True during a simulated outage."""
        return self.clock.now() < self.down_until

    def close(self) -> None:
        """Release everything that waits."""
        self.closing = True
        self.changes.notify()

    async def changed_within(self, seconds: float) -> None:
        """Wait for a change, a timeout or shutdown."""
        if not self.closing:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.changes.wait()

    async def slow_down(self, seconds: float) -> None:
        """Wait for `seconds` or until shutdown."""
        until = time.monotonic() + seconds
        while not self.closing and (left := until - time.monotonic()) > 0:
            await self.changed_within(left)

    def switch(self, switches: dict[str, Any]) -> None:
        """Change some fault switches and keep the others; see `Faults`.

        Raises:
            msgspec.ValidationError: A switch or its value is unknown.
        """
        faults = msgspec.convert(msgspec.to_builtins(self.faults) | switches, Faults)
        self.faults = self.delivery.faults = faults
        self.state.limits.on = faults.limits
        if not faults.reorder:
            self.delivery.release()
        self.changes.notify()

    def redeliver(self, message_id: str) -> int:
        """Send the events of a message again and return their number."""
        again = [push for push in self.delivery.pushes if push.message_id == message_id]
        for push in again:
            self.delivery.start(push)
        return len(again)

    def drop(self) -> int:
        """Abort every long connection and return their number."""
        connections = list(self.delivery.connections)
        for connection in connections:
            connection.socket.abort()
        return len(connections)

    def silence(self) -> int:
        """Make every long connection ignore its input; return their number."""
        for connection in self.delivery.connections:
            connection.socket.ignores_input = True
        return len(self.delivery.connections)

    def deafen(self) -> int:
        """Make every long connection swallow its events and answer pings; return their number."""
        for connection in self.delivery.connections:
            connection.is_deaf = True
        return len(self.delivery.connections)

    def go_down(self, seconds: float) -> None:
        """Abort calls and connections for `seconds`."""
        self.down_until = self.clock.now() + seconds
        self.drop()
        self.changes.notify()
