"""The long connection without a network: frames are collected."""

import asyncio

from internal.simulators.lark.server import AbortableWebSocketProtocol
from internal.simulators.lark.services import LarkServices
from internal.simulators.lark.websocket.connection import AppConnection
from tests.unit.simulators.lark import APP


class IdleSocket(AbortableWebSocketProtocol):
    """A protocol that was never connected."""

    def __init__(self) -> None:
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


class SentFrames(list[bytes]):
    """The frames sent on a connection."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = asyncio.Event()

    async def send(self, data: bytes) -> None:
        self.append(data)
        self._changed.set()

    async def wait_for(self, count: int) -> None:
        """Wait until this many frames were sent."""
        while len(self) < count:
            self._changed.clear()
            await self._changed.wait()


def make_connection(services: LarkServices, sent: SentFrames) -> AppConnection:
    return AppConnection(APP.app_id, "device", 7, sent.send, IdleSocket(), services.log)
