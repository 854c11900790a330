"""The Lark simulator: as a process of its own, and beside a gateway."""

import asyncio
import errno
import secrets
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, NamedTuple

from internal.agent.domain.secrets import register_secret
from internal.channels.cli.exit_codes import FAILED, OK, USAGE, CliExit
from internal.observability.logs import configure_logging
from internal.simulators.lark.model import App
from internal.simulators.lark.simulator import LarkSim

SIMULATOR_APP_ID = "cli_larksim"
SIMULATOR_PORT = 8430

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_MAX_PORT = 65_535


def simulate_lark(port: int, app_id: str | None = None, app_secret: str | None = None) -> int:
    """Serve the simulator of Lark on 127.0.0.1 until a signal, then return 0.

    Prints its addresses and the app's credentials. A missing secret is generated; port 0 takes any
    free port.

    Raises:
        CliExit: the port is in use, or an argument cannot be used.
    """
    app = App(
        _checked_credential(app_id, SIMULATOR_APP_ID),
        _checked_credential(app_secret, secrets.token_hex(16)),
    )
    if not 0 <= port <= _MAX_PORT:
        raise CliExit(USAGE, f"--port must be between 0 and {_MAX_PORT}.")
    register_secret(app.secret)
    configure_logging()
    try:
        asyncio.run(_simulate(LarkSim([app], port=port)))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"Port {port} of 127.0.0.1 is in use; choose another one with --port."
            raise CliExit(FAILED, message) from error
        raise CliExit(FAILED, f"Cannot listen on port {port}: {error.strerror}.") from error
    return OK


class BackgroundSimulator(NamedTuple):
    """A running simulator: its page, its operator, and the settings that connect a gateway."""

    page: str
    operator: str
    flags: dict[str, Any]


class _RunningSimulator(NamedTuple):
    simulator: LarkSim
    stop: Callable[[], object]


@contextmanager
def background_simulator() -> Generator[BackgroundSimulator]:
    """Run the simulator in a thread with its own event loop, on port 8430 or any other free port.

    The gateway reaches it over HTTP and WebSocket only, as it would reach Lark.

    Raises:
        OSError: no port is free.
    """
    app = App(SIMULATOR_APP_ID, secrets.token_hex(16))
    started: SimpleQueue[_RunningSimulator | OSError] = SimpleQueue()
    thread = threading.Thread(
        target=asyncio.run, args=(_simulate_in_thread(app, started),), name="lark-sim", daemon=True
    )
    thread.start()
    running = started.get()
    if isinstance(running, OSError):
        raise running
    operator = running.simulator.people[0]
    lark = {
        "enabled": True,
        "app_id": app.app_id,
        "app_secret": app.secret,
        "domain": running.simulator.url,
        "access": {"operate": [operator.open_id]},
    }
    flags = {"channels": {"lark": lark}}
    try:
        yield BackgroundSimulator(running.simulator.page, operator.name, flags)
    finally:
        running.stop()
        thread.join()


async def _simulate_in_thread(app: App, started: SimpleQueue[_RunningSimulator | OSError]) -> None:
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for port in (SIMULATOR_PORT, 0):
        try:
            async with LarkSim([app], port=port) as simulator:
                started.put(
                    _RunningSimulator(simulator, lambda: loop.call_soon_threadsafe(stopping.set))
                )
                await stopping.wait()
                return
        except OSError as error:
            if port == 0:
                started.put(error)


async def _simulate(simulator: LarkSim) -> None:
    stopping = asyncio.Event()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with simulator:
        print("A simulator of Lark for development and tests. Nothing leaves this machine.")
        print(f"chat page   {simulator.page}")
        print(f"domain      {simulator.url}")
        print(f"app id      {simulator.app.app_id}")
        print(f"app secret  {simulator.app.secret}", flush=True)
        await stopping.wait()


def _checked_credential(given: str | None, default: str) -> str:
    """Return an id or a secret, which must be printable ASCII because it is sent in headers."""
    text = default if given is None else given
    if not (text.isascii() and text.isprintable() and text.strip() == text != ""):
        raise CliExit(USAGE, "--app-id and --app-secret must be printable ASCII and not blank.")
    return text
