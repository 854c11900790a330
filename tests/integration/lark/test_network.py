"""The way to Lark: HTTP proxies and certificate authorities, for REST and the websocket alike."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from internal.channels.lark.api import LarkClient, LarkRequest, LarkUnavailable, SendPolicy
from internal.channels.lark.channel import LarkTransport
from internal.channels.lark.connection import AppCredentials, LarkConnection
from internal.channels.lark.network import LarkNetwork
from internal.observability.clock import SystemClock
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Reply
from tests.support.certificates import Authority, make_authority
from tests.support.chat_texts import AUTO_TEXTS
from tests.support.connect_proxy import ConnectProxy, open_connect_proxy
from tests.support.lark_gateway import APP, CONFIG, PACE, QUIET, open_lark

HOST = "open.lark.test"
"""A name that only the proxy can resolve."""
ONCE = SendPolicy(max_attempts=1)
BOT_INFO = LarkRequest("GET", "/open-apis/bot/v3/info")


class TlsLark(NamedTuple):
    """A simulated Lark with TLS behind a proxy."""

    sim: LarkSim
    proxy: ConnectProxy
    authority: Authority

    def credentials(self, **changes: Any) -> AppCredentials:
        network = LarkNetwork(self.proxy.url, ca_file=self.authority.ca_file)
        return AppCredentials(APP.app_id, APP.secret, self.sim.url, network._replace(**changes))

    @property
    def hosts(self) -> set[str]:
        return set(self.proxy.tunnels)

    @property
    def server(self) -> str:
        return self.sim.url.removeprefix("https://")


@asynccontextmanager
async def open_tls_lark(folder: Path, login: str = "") -> AsyncGenerator[TlsLark]:
    authority = make_authority(folder, HOST)
    async with AsyncExitStack() as stack:
        sim = LarkSim([APP], speed=100.0, config=CONFIG, tls=authority.server)
        await stack.enter_async_context(sim)
        yield TlsLark(sim, await stack.enter_async_context(open_connect_proxy(login)), authority)


async def failure_of_rest(credentials: AppCredentials) -> LarkUnavailable:
    client = LarkClient(credentials, SystemClock())
    with pytest.raises(LarkUnavailable) as raised:
        await client.call(BOT_INFO, ONCE)
    await client.close()
    return raised.value


async def failure_of_connection(sim: LarkSim, credentials: AppCredentials) -> str:
    async def ignore(_: bytes) -> None:
        """Accept any event."""

    connection = LarkConnection(credentials, ignore, SystemClock(), PACE)
    connection.start()
    try:
        async with asyncio.timeout(30):
            while connection.state.status == "starting":
                await sim.lark.changed_within(0.02)
        return connection.state.why or connection.state.status
    finally:
        await connection.stop()


@pytest.mark.needs("openssl")
async def test_a_conversation_goes_through_the_proxy(tmp_path: Path) -> None:
    async with (
        open_tls_lark(tmp_path, "user:p@ss:1") as lark,
        open_agent(tmp_path, [Reply("through the tunnel")]) as gateway,
    ):
        transport = LarkTransport(
            lark.credentials(proxy=f"http://user:p%40ss:1@127.0.0.1:{lark.proxy.port}"),
            QUIET,
            gateway.services.clock,
            texts=AUTO_TEXTS,
            timeouts=PACE,
        )
        async with open_lark(gateway, lark.sim, transport=transport):
            person = lark.sim.people[0]
            await lark.sim.send_text(person, lark.sim.dm(person), "hello")
            await lark.sim.until(
                lambda _: any(
                    one.sender_type == "app" for one in lark.sim.messages(lark.sim.dm(person))
                )
            )
        assert lark.hosts == {lark.server}
        assert len(lark.proxy.tunnels) >= 3  # discovery, websocket, REST


@pytest.mark.needs("openssl")
async def test_an_unknown_certificate_is_refused_with_the_setting(tmp_path: Path) -> None:
    async with open_tls_lark(tmp_path) as lark:
        credentials = lark.credentials(ca_file=None)
        said = await failure_of_rest(credentials)
        assert f"the certificate of {HOST} is not trusted" in str(said)
        assert "set channels.lark.ca_file" in str(said)
        assert not said.unconfirmed
        assert "set channels.lark.ca_file" in await failure_of_connection(lark.sim, credentials)


@pytest.mark.needs("openssl")
async def test_a_proxy_that_wants_a_password_is_named(tmp_path: Path) -> None:
    async with open_tls_lark(tmp_path, "user:secret-7") as lark:
        credentials = lark.credentials(proxy=f"http://user:wrong-9@127.0.0.1:{lark.proxy.port}")
        said = await failure_of_rest(credentials)
        assert re.search(r"the proxy refused .*407.*; check channels\.lark\.proxy", str(said))
        assert not said.unconfirmed
        assert "407" in (why := await failure_of_connection(lark.sim, credentials))
        assert "wrong-9" not in str(said) + why + repr(credentials.network)
        assert lark.proxy.tunnels == []


async def test_a_proxy_that_is_down_is_named(tmp_path: Path) -> None:
    async with open_tls_lark(tmp_path) as lark:
        credentials = lark.credentials(proxy="http://127.0.0.1:9")
        assert "through the proxy 127.0.0.1:9" in str(await failure_of_rest(credentials))
        assert "through the proxy 127.0.0.1:9" in await failure_of_connection(lark.sim, credentials)


@pytest.mark.needs("openssl")
async def test_hosts_of_no_proxy_are_reached_directly(tmp_path: Path) -> None:
    async with open_tls_lark(tmp_path) as lark:
        said = await failure_of_rest(lark.credentials(no_proxy=("lark.test",)))
        assert "is unreachable" in str(said)  # only the proxy knows the name
        assert lark.proxy.tunnels == []


async def test_loopback_hosts_are_reached_without_the_proxy() -> None:
    async with LarkSim([APP]) as sim, open_connect_proxy() as proxy:
        credentials = AppCredentials(APP.app_id, APP.secret, sim.url, LarkNetwork(proxy.url))
        client = LarkClient(credentials, SystemClock())
        assert (await client.call(BOT_INFO))["bot"]["open_id"] == APP.open_id
        await client.close()
        assert await failure_of_connection(sim, credentials) == "connected"
        assert proxy.tunnels == []
