"""One long connection: outgoing frames, acknowledgements and pings."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from internal.simulators.lark.faults import Faults
from internal.simulators.lark.model import new_id
from internal.simulators.lark.server import AbortableWebSocketProtocol
from internal.simulators.lark.traffic_log import TrafficLog
from internal.simulators.lark.websocket.frames import CONTROL, DATA, FrameError, WireFrame

ACK_TIMEOUT_SECONDS = 3.0
OK = 200


class EventAck(msgspec.Struct):
    """A client's response to an event: a code and, for a click, its answer in base64."""

    code: int
    data: str | None = None


class ClientConfig(msgspec.Struct, forbid_unknown_fields=True):
    """Ping and reconnect settings sent to clients, in seconds, under Lark's names."""

    ReconnectCount: int = -1
    ReconnectInterval: int = 120
    ReconnectNonce: int = 30
    PingInterval: int = 120


@dataclass(slots=True, eq=False)
class AppConnection:
    """A connection of an app's client."""

    app_id: str
    device_id: str
    service_id: int
    send: Callable[[bytes], Awaitable[None]]
    socket: AbortableWebSocketProtocol
    log: TrafficLog
    is_deaf: bool = False
    """Pings are answered, and no event is sent."""
    _sent: int = 0
    _waiting: dict[str, "asyncio.Future[EventAck | None]"] = field(default_factory=dict)

    async def push(self, payload: bytes, faults: Faults) -> EventAck | None:
        """Send an event and return its acknowledgement, or None without one within 3 s."""
        frame_id = new_id("f")
        waiting: asyncio.Future[EventAck | None] = asyncio.get_running_loop().create_future()
        self._waiting[frame_id] = waiting
        try:
            await self._send_parts(frame_id, payload, faults.fragment_bytes)
            async with asyncio.timeout(ACK_TIMEOUT_SECONDS):
                return await waiting
        except (TimeoutError, ConnectionError):
            return None
        finally:
            del self._waiting[frame_id]

    async def _send_parts(self, frame_id: str, payload: bytes, most: int) -> None:
        size = most if most and len(payload) > most else len(payload) or 1
        cuts = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
        order = list(enumerate(cuts))
        random.shuffle(order)
        for at, part in order:
            self._sent += 1
            names = {"type": "event", "message_id": frame_id, "trace_id": new_id("t")}
            names |= {"sum": str(len(cuts)), "seq": str(at)}
            frame = WireFrame(
                self._sent, random.getrandbits(63), self.service_id, DATA, [*names.items()], part
            )
            await self.write(frame)

    async def write(self, frame: WireFrame) -> None:
        """Send a frame; nothing is sent on a connection that ignores its input.

        Raises:
            ConnectionError: The connection is closed.
        """
        what = f"{frame.header('type')} {frame.header('seq')}/{frame.header('sum')}".rstrip(" /")
        self.log.add("frame.out", self.app_id, what, sent=frame.payload)
        if not self.socket.ignores_input:
            await self.send(frame.encode())

    async def receive(self, data: bytes, config: ClientConfig, faults: Faults) -> None:
        """Process data from the client; data that is not a frame is logged and ignored.

        Raises:
            ConnectionError: The connection closed before a ping was answered.
        """
        try:
            frame = WireFrame.decode(data)
        except FrameError as error:
            self.log.add("frame.in", self.app_id, f"not a frame: {error}")
            return
        kind = frame.header("type")
        self.log.add("frame.in", self.app_id, kind, got=frame.payload)
        if frame.method == DATA:
            self._acknowledged(frame)
        elif frame.method == CONTROL and kind == "ping" and frame.service == self.service_id:
            pong = WireFrame(0, 0, self.service_id, CONTROL, [("type", "pong")])
            pong.payload = msgspec.json.encode(config)
            if faults.pongs:
                await self.write(pong)

    def _acknowledged(self, frame: WireFrame) -> None:
        waiting = self._waiting.get(frame.header("message_id"))
        try:
            ack = msgspec.json.decode(frame.payload, type=EventAck)
        except msgspec.DecodeError as error:
            self.log.add("note", self.app_id, f"malformed acknowledgement: {error}")
            return
        if waiting is None:
            self.log.add("note", self.app_id, "late acknowledgement", code=ack.code)
        elif not waiting.done():
            waiting.set_result(ack)

    def close(self) -> None:
        """Release waiting deliveries; the connection is closed."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(None)
