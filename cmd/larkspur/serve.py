"""`larkspur serve`: the gateway, until it is told to stop."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import uvloop
from msgspec import UNSET

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.events.envelope import rfc3339
from internal.channels.chat.channel import ChatChannel
from internal.channels.web.auth import Logins
from internal.channels.web.server import Address, WebServer
from internal.channels.web.services import ComponentHealth, Health, WebServices
from internal.config import home
from internal.config.home import GatewayAddress
from internal.config.loader import Loaded
from internal.dispatch.lock import dispatcher_lock
from internal.observability.logs import configure_logging
from internal.sandbox.process_privacy import deny_process_inspection
from larkspur.build import GatewayHouse, chat_channels, gateway_house
from larkspur.version import VERSION

GRACE_SECONDS = 5.0
"""How long runs may take to hand over."""
SWITCH_SECONDS = 0.0005
"""How long a thread of the storage waits for the interpreter while the loop is busy."""


def serve(loaded: Loaded, local_lark: str = "") -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP, which is no failure: return 0.

    `local_lark` is what people are told of a local Lark.

    Raises:
        LarkspurError, HomeError: it cannot start or go on; nothing half-done is left behind.
    """
    home.prepare(loaded.home)
    token = home.ensure_token(loaded.home)
    keys = (loaded.settings.llm.api_key, loaded.settings.channels.lark.app_secret)
    configure_logging(secrets=[token, *(key.get_secret_value() for key in keys if key is not None)])
    deny_process_inspection()
    sys.setswitchinterval(SWITCH_SECONDS)
    with (
        dispatcher_lock(loaded.home),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_serve(loaded, token, local_lark))
    return 0


async def _serve(loaded: Loaded, token: str, local_lark: str) -> None:
    stopping = asyncio.Event()

    def stop(number: signal.Signals) -> None:
        if stopping.is_set():  # told twice: what is stored is stored
            os._exit(128 + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        async with gateway_house(loaded) as house, _opened(loaded, house, token) as server:
            _announce(loaded, server, local_lark)
            await stopping.wait()
    except* LarkspurError as group:
        raise _first(group) from None


@asynccontextmanager
async def _opened(loaded: Loaded, house: GatewayHouse, token: str) -> AsyncGenerator[WebServer]:
    """Open the doors and dispatch for as long as the block; close in the opposite order."""
    channels = chat_channels(loaded, house)
    server = WebServer(_door(loaded, house, token, channels))
    async with asyncio.TaskGroup() as tasks:
        dispatching = tasks.create_task(house.dispatcher.run(house.coordinator))
        tasks.create_task(server.serve())
        await server.ready()
        home.write_address(loaded.home, _address(loaded, server.address))
        serving = [tasks.create_task(channel.run()) for channel in channels]
        try:
            yield server
        finally:
            home.remove_address(loaded.home, os.getpid())
            for channel in channels:
                channel.stop()
            if serving:
                await asyncio.wait(serving, timeout=GRACE_SECONDS)
            house.dispatcher.stop()
            await asyncio.wait([dispatching], timeout=GRACE_SECONDS)
            await server.stop()
            dispatching.cancel()


def _first(group: BaseExceptionGroup[LarkspurError]) -> LarkspurError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _door(
    loaded: Loaded, house: GatewayHouse, token: str, channels: Sequence[ChatChannel]
) -> WebServices:
    since = rfc3339(house.clock.now())

    def health() -> Health:
        failure, dispatcher = house.leases.failure, house.dispatcher
        states = {channel.name: _channel_health(channel) for channel in channels}
        return Health(
            status="failing" if failure else "ok",
            database=ComponentHealth(not failure, house.leases.since, failure),
            dispatcher=ComponentHealth(
                not dispatcher.is_stopping, since, f"{dispatcher.active_count} runs at work"
            ),
            channels=states,
            lark=states.get("lark", UNSET),
        )

    return WebServices(
        gateway=house.gateway,
        broadcaster=house.broadcaster,
        attachments=house.attachments,
        defaults=house.defaults,
        token=token,
        settings=loaded.settings.server,
        health=health,
        version=VERSION,
        clock=house.clock,
        logins=Logins(token, loaded.home / "logins.json"),
    )


def _channel_health(channel: ChatChannel) -> ComponentHealth:
    """Return the state of a channel. It does not affect the status of the gateway."""
    link, dead_letters = channel.health
    details = [f"{link.status}: {link.why}" if link.why else link.status]
    if dead_letters:
        details.append(f"{dead_letters} messages could not be sent; see the log")
    return ComponentHealth(link.status == "connected", link.since, "; ".join(details))


def _address(loaded: Loaded, address: Address) -> GatewayAddress:
    return GatewayAddress(
        host=address.host,
        port=address.port,
        pid=os.getpid(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        provider=loaded.settings.llm.provider,
        model=loaded.settings.llm.model,
        version=VERSION,
    )


def _announce(loaded: Loaded, server: WebServer, local_lark: str) -> None:
    """Say where the doors are and what to try, for a person at a terminal."""
    llm, token, url = loaded.settings.llm, loaded.home / "token", server.address.url
    model = f"{llm.model} of {llm.provider}"
    if llm.provider == "offline":
        model = "the offline demo model; set ANTHROPIC_API_KEY or another key for a real one"
    lark = [f"  lark   {local_lark}"] if local_lark else []
    lines = [
        f"larkspur {VERSION} is at {url}",
        f"  page   {server.link()}   opens once, within five minutes",
        *lark,
        f"  model  {model}",
        f"  data   {loaded.home} · tools run on this machine, not isolated · Ctrl+C stops",
        "",
        "Try, in another terminal:",
        f"  {sys.argv[0]}",
        f'  {sys.argv[0]} -p "list the files here"',
        f'  curl -s {url}/api/tasks -H "Authorization: Bearer $(cat {token})" \\',
        "    -H 'Content-Type: application/json' -d '{\"task\": \"what is 6*7\"}'",
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)
