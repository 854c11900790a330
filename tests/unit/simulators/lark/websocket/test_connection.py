import asyncio

import msgspec

from internal.simulators.lark.faults import Faults
from internal.simulators.lark.websocket.connection import ClientConfig, EventAck
from internal.simulators.lark.websocket.frames import CONTROL, DATA, WireFrame
from tests.unit.simulators.lark import make_services
from tests.unit.simulators.lark.websocket import SentFrames, make_connection


async def acknowledge(
    sent: SentFrames, payload: bytes, *, code: int = 200, parts: int = 1
) -> EventAck | None:
    """Push a payload and acknowledge its frames."""
    services = make_services()
    connection = make_connection(services, sent)
    faults = Faults(fragment_bytes=2 if parts > 1 else 0)
    pushing = asyncio.create_task(connection.push(payload, faults))
    await sent.wait_for(parts)
    frame = WireFrame.decode(sent[-1])
    frame.payload = msgspec.json.encode(EventAck(code))
    frame.method = DATA
    await connection.receive(frame.encode(), ClientConfig(), faults)
    ack: EventAck | None = await pushing
    return ack


async def test_an_acknowledgement_is_returned() -> None:
    assert await acknowledge(SentFrames(), b"payload") == EventAck(200)
    assert await acknowledge(SentFrames(), b"payload", code=500) == EventAck(500)


async def test_long_events_are_split_into_parts() -> None:
    sent = SentFrames()
    await acknowledge(sent, b"abcdef", parts=3)
    frames = sorted((WireFrame.decode(data) for data in sent), key=lambda one: one.header("seq"))
    assert b"".join(frame.payload for frame in frames) == b"abcdef"
    assert {frame.header("sum") for frame in frames} == {"3"}


async def test_a_closed_connection_acknowledges_nothing() -> None:
    services = make_services()
    sent = SentFrames()
    connection = make_connection(services, sent)
    pushing = asyncio.create_task(connection.push(b"x", Faults()))
    await sent.wait_for(1)
    connection.close()
    assert await pushing is None


async def test_pings_are_answered_unless_switched_off() -> None:
    services = make_services()
    sent = SentFrames()
    connection = make_connection(services, sent)
    ping = WireFrame(0, 0, 7, CONTROL, [("type", "ping")]).encode()
    await connection.receive(ping, ClientConfig(), Faults(pongs=False))
    await connection.receive(b"\xff", ClientConfig(), Faults())
    assert sent == []
    await connection.receive(ping, ClientConfig(PingInterval=9), Faults())
    assert b'"PingInterval":9' in WireFrame.decode(sent[0]).payload
