"""The long connection: what breaks it, what is said about it, how it comes back."""

import asyncio
import logging
import re
from pathlib import Path
from typing import Self

import pytest

from internal.channels.lark.connection import (
    AppCredentials,
    ConnectionState,
    ConnectionTimeouts,
    LarkConnection,
)
from internal.observability.clock import SystemClock
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.websocket.connection import ClientConfig
from tests.support.anthropic_server import Reply
from tests.support.lark_gateway import APP, open_lark_gateway

PACE = ConnectionTimeouts(
    first_delay=0.1, max_delay=0.3, stable_after=5.0, discovery=20.0, handshake=20.0
)
HANG = {"discovery": "hang"}
IMPATIENT = PACE._replace(discovery=0.5)


class Link:
    """A connection to a simulator, and what it took."""

    def __init__(
        self, sim: LarkSim, secret: str = APP.secret, pace: ConnectionTimeouts = PACE
    ) -> None:
        self.sim = sim
        self.took: list[bytes] = []
        self.fails = False
        login = AppCredentials(APP.app_id, secret, sim.url)
        self.connection = LarkConnection(login, self.take, SystemClock(), pace)

    async def take(self, payload: bytes) -> None:
        if self.fails:
            raise RuntimeError("not now")
        self.took.append(payload)

    async def __aenter__(self) -> Self:
        self.connection.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.connection.stop()
        assert self.connection.state.status in {"stopped", "refused"}

    async def until(self, status: str) -> str:
        """Return why, as soon as it is so."""
        async with asyncio.timeout(30):
            while self.connection.state.status != status:
                await self.sim.lark.changed_within(0.02)
        return self.connection.state.why


async def test_the_connection_receives_events_and_stops(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with LarkSim([APP]) as sim:
        async with Link(sim) as link:
            await link.until("connected")
            await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hello")
            await sim.until(lambda _: sim.pushes[0].attempts == ["ok"])
            assert b"hello" in link.took[0]
        await sim.until(lambda _: not sim.lark.delivery.connections)
        assert link.connection.state.status == "stopped"
    said = [each for each in caplog.records if not each.name.startswith(("uvicorn", "asyncio"))]
    assert any(each.name == "websockets.client" for each in said)  # it tells the address
    for record in said:
        assert APP.secret not in record.getMessage()
        assert not re.search("(?:ticket|access_key)=[^•]", record.getMessage())


async def test_a_stopped_connection_can_be_started_again() -> None:
    async with LarkSim([APP]) as sim, Link(sim) as link:
        await link.until("connected")
        await link.connection.stop()
        await link.connection.wait()
        link.connection.start()
        await link.until("connected")


async def test_an_event_whose_handler_raises_is_redelivered(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=500.0) as sim, Link(sim) as link:
        await link.until("connected")
        link.fails = True
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hello")
        await sim.until(lambda _: sim.pushes[0].attempts == ["failed"])
        link.fails = False
        await sim.until(lambda _: sim.pushes[0].attempts[-1] == "ok")
        assert len(link.took) == 1


async def test_a_dropped_connection_is_restored_and_its_reason_reported() -> None:
    async with LarkSim([APP]) as sim, Link(sim) as link:
        await link.until("connected")
        since = link.connection.state.since
        sim.lark.drop()
        await link.until("reconnecting")
        await link.until("connected")
        assert link.connection.state.since >= since
        await sim.until(lambda _: len(sim.lark.delivery.connections) == 1)


@pytest.mark.slow
async def test_a_silent_connection_is_replaced() -> None:
    async with LarkSim([APP], config=ClientConfig(PingInterval=1)) as sim, Link(sim) as link:
        await link.until("connected")
        sim.set_faults(pongs=False)
        assert "no pong" in await link.until("reconnecting")
        sim.set_faults(pongs=True)
        await link.until("connected")


@pytest.mark.slow
async def test_a_half_open_connection_is_replaced_long_before_larks_own_ping_is_due() -> None:
    pace = PACE._replace(line_ping=0.2, line_pong=0.3)
    config = ClientConfig(PingInterval=120)
    async with LarkSim([APP], config=config) as sim, Link(sim, pace=pace) as link:
        await link.until("connected")
        sim.lark.silence()
        assert "no pong within 0.3 s" in await link.until("reconnecting")
        await link.until("connected")


async def test_a_connection_without_events_stays_open() -> None:
    pace = PACE._replace(line_ping=0.05, line_pong=20.0)
    async with LarkSim([APP]) as sim, Link(sim, pace=pace) as link:
        await link.until("connected")
        since = link.connection.state.since
        await sim.lark.changed_within(1.0)  # many pings, and nothing else
        assert link.connection.state == ConnectionState("connected", since)


@pytest.mark.parametrize(
    ("fault", "status", "why"),
    [
        (HANG, "reconnecting", "in time"),
        ({"discovery": "busy"}, "reconnecting", "busy"),
        ({"discovery": "error"}, "reconnecting", "500"),
        ({"discovery": "refuse"}, "refused", "1000040344"),
        ({"handshake": "limit"}, "refused", "more than 50 connections of this app are open"),
        ({"handshake": "forbidden"}, "refused", "403"),
        ({"handshake": "busy"}, "reconnecting", ""),
        ({"handshake": "bare"}, "reconnecting", ""),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
@pytest.mark.first_rows(3)
async def test_a_connection_error_is_reported_and_retried(
    fault: dict[str, str], status: str, why: str
) -> None:
    async with LarkSim([APP]) as sim:
        sim.set_faults(**fault)
        pace = IMPATIENT if fault == HANG else PACE
        async with Link(sim, pace=pace) as link:
            said = await link.until(status)
            assert why.lower() in said.lower()
            sim.set_faults(discovery="", handshake="")
            await link.until("connected")


@pytest.mark.parametrize("fault", [{"discovery": "refuse"}, {"handshake": "limit"}])
async def test_a_refused_connection_is_reported_with_its_log_id(fault: dict[str, str]) -> None:
    async with LarkSim([APP]) as sim:
        sim.set_faults(**fault)
        async with Link(sim) as link:
            assert re.search(r"\(log id [0-9a-f]{32}\)$", await link.until("refused"))


async def test_a_wrong_secret_is_refused_and_not_logged() -> None:
    async with LarkSim([APP]) as sim, Link(sim, "wrong-secret-9") as link:
        said = await link.until("refused")
        assert "check channels.lark.app_id" in said
        assert "wrong-secret-9" not in said + repr(AppCredentials("a", "wrong-secret-9", "o"))


async def test_malformed_frames_do_not_end_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with LarkSim([APP]) as sim, Link(sim) as link:
        await link.until("connected")
        for data in (b"", b"\xff" * 40, b"\x08\x01", bytes(2000)):
            await sim.push_bytes(data)
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "after")
        await sim.until(lambda _: sim.pushes[0].attempts == ["ok"])
        assert len(sim.lark.delivery.connections) == 1
    assert "handle message failed" in caplog.text


async def test_after_a_reconnect_messages_are_received(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("heard")]) as lark:
        lark.sim.lark.drop()
        await lark.sim.until(lambda _: not lark.sim.lark.delivery.connections)
        await lark.until_connected()
        await lark.say("can you hear me?")
        assert await lark.until_replies(1) == ["heard"]


async def test_a_reply_is_sent_after_an_outage(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("after the storm", hold="go")]) as lark:
        await lark.say("hello")
        await lark.core.model.until_open(1)
        lark.sim.lark.go_down(3600)
        lark.core.model.release("go")
        async with asyncio.timeout(30):
            while lark.channel.link.status != "reconnecting":
                await lark.sim.lark.changed_within(0.02)
        lark.sim.lark.clock.advance(3600)
        assert await lark.until_replies(1) == ["after the storm"]
        await lark.until_connected()
        await lark.settled()
        assert lark.replies() == ["after the storm"]
