"""Trying: the local Lark beside a gateway that has no Lark app of its own."""

import asyncio
import secrets
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, NamedTuple

from internal.config.loader import load
from internal.simulators.lark.model import App
from internal.simulators.lark.simulator import LarkSim
from larkspur.larksim import APP_ID
from larkspur.serve import serve

PORT = 8430


def serve_trying(config: str | None, flags: dict[str, Any]) -> int:
    """Serve, beside a local Lark when no app is set, until told to stop; return 0.

    Raises:
        LarkspurError, ConfigError, HomeError, OSError: it cannot start.
    """
    loaded = load(config=config, flags=flags)
    if loaded.settings.channels.lark.enabled:
        return serve(loaded)
    with local_lark() as lark:
        said = f"{lark.page}   a simulator: write to the bot there; {lark.operator} may approve"
        return serve(load(config=config, flags={**flags, **lark.flags}), said)


class LocalLark(NamedTuple):
    """A simulator at work: its chat page, its operator, the settings that lead a gateway to it."""

    page: str
    operator: str
    flags: dict[str, Any]


class _Opened(NamedTuple):
    sim: LarkSim
    stop: Callable[[], object]


@contextmanager
def local_lark() -> Generator[LocalLark]:
    """Run the simulator in a thread and a loop of its own, at port 8430 or any other free one.

    The gateway reaches it over HTTP and websocket only, as it would reach Lark.

    Raises:
        OSError: no port is free.
    """
    app = App(APP_ID, secrets.token_hex(16))
    opened: SimpleQueue[_Opened | OSError] = SimpleQueue()
    thread = threading.Thread(
        target=asyncio.run, args=(_simulate(app, opened),), name="lark-sim", daemon=True
    )
    thread.start()
    local = opened.get()
    if isinstance(local, OSError):
        raise local
    first = local.sim.people[0]
    lark = {
        "enabled": True,
        "app_id": app.app_id,
        "app_secret": app.secret,
        "domain": local.sim.url,
        "access": {"operate": [first.open_id]},
    }
    try:
        yield LocalLark(local.sim.page, first.name, {"channels": {"lark": lark}})
    finally:
        local.stop()
        thread.join()


async def _simulate(app: App, opened: SimpleQueue[_Opened | OSError]) -> None:
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for port in (PORT, 0):
        try:
            async with LarkSim([app], port=port) as sim:
                opened.put(_Opened(sim, lambda: loop.call_soon_threadsafe(stopping.set)))
                await stopping.wait()
                return
        except OSError as error:
            if port == 0:
                opened.put(error)
