"""`larkspur lark-sim`: the local Lark, until it is told to stop."""

import asyncio
import errno
import secrets
import signal

from internal.channels.cli.exit_codes import FAILED, OK, USAGE, CliExit
from internal.observability.logs import configure_logging
from internal.simulators.lark.model import App
from internal.simulators.lark.simulator import LarkSim

APP_ID = "cli_larksim"
"""The app that there is when none is named."""
HIGHEST_PORT = 65_535


def lark_sim(port: int, app_id: str | None = None, app_secret: str | None = None) -> int:
    """Serve the simulator on 127.0.0.1 until SIGTERM, SIGINT or SIGHUP, and return 0.

    Prints where it is and who the app is. A secret that is not given is made up; port 0 is any.

    Raises:
        Leave: the port is taken, or an argument is none.
    """
    app = App(_plain(app_id, APP_ID), _plain(app_secret, secrets.token_hex(16)))
    if not 0 <= port <= HIGHEST_PORT:
        raise CliExit(USAGE, f"--port is 0 to {HIGHEST_PORT}.")
    configure_logging(secrets=[app.secret])
    try:
        asyncio.run(_serve(LarkSim([app], port=port)))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            sentence = f"Port {port} of 127.0.0.1 is in use; name another one with --port."
            raise CliExit(FAILED, sentence) from error
        raise CliExit(FAILED, f"Cannot listen on port {port}: {error.strerror}.") from error
    return OK


async def _serve(sim: LarkSim) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with sim:
        print("A simulator of Lark, for trying and testing. Nothing leaves this machine.")
        print(f"chat page   {sim.page}")
        print(f"domain      {sim.url}")
        print(f"app id      {sim.app.app_id}")
        print(f"app secret  {sim.app.secret}", flush=True)
        await stopping.wait()


def _plain(given: str | None, default: str) -> str:
    """Return what was given: an id or a secret in printable ASCII, as HTTP headers carry it."""
    text = default if given is None else given
    if not (text.isascii() and text.isprintable() and text.strip() == text != ""):
        raise CliExit(USAGE, "--app-id and --app-secret are not blank, in plain ASCII.")
    return text
