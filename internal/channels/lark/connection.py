"""The long connection: Lark's client in a thread and loop of its own, under our supervisor.

The client's own reconnect gives up on some errors and waits minutes on others, it has no stop, and
its discovery has no time limit. So it gets `auto_reconnect=False`, and its private names are used
here and nowhere else; lark-oapi is pinned for that reason.
"""
# ruff: noqa: SLF001 - the reason stands above; architecture.md allows it here

import asyncio
import logging
import random
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, NamedTuple

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.text import truncate_line
from internal.agent.ports.runtime import Clock
from internal.channels.lark.sdk import load_websocket_client

log = logging.getLogger(__name__)

EventHandler = Callable[[bytes], dict[str, Any] | None]
ConnectionStatus = Literal["starting", "connected", "reconnecting", "refused", "stopped"]
_WRONG_DOMAIN = 1000040351
_WORSE = {_WRONG_DOMAIN: "the app belongs to the other service: set channels.lark.domain"}


class ConnectionState(NamedTuple):
    """How the connection is, since when (RFC 3339), and why."""

    status: ConnectionStatus
    since: str
    why: str = ""


class AppCredentials(NamedTuple):
    """The app, its secret and the origin that it belongs to."""

    app_id: str
    secret: str
    origin: str

    def __repr__(self) -> str:
        """Return it without the secret."""
        return f"Login({self.app_id} at {self.origin})"


class ConnectionTimeouts(NamedTuple):
    """Time limits and waits, in seconds. A wait doubles from `first` to `most`, with jitter."""

    first: float = 1.0
    most: float = 60.0
    settled: float = 5.0
    discovery: float = 10.0
    handshake: float = 15.0
    ping: float = 120.0
    goodbye: float = 1.0


class ConnectionLost(Exception):
    """The connection is over; the text says why."""


class LarkConnection:
    """Keeps the bot connected. `take` gets each event's JSON, in the thread, before its ack.

    The ack is 200 when `take` returns, and carries what it returned; 500 when it raises: Lark then
    sends the event again, a click excepted.
    """

    def __init__(
        self,
        login: AppCredentials,
        take: EventHandler,
        clock: Clock,
        pace: ConnectionTimeouts | None = None,
    ) -> None:
        self._login, self._take, self._clock = login, take, clock
        self._pace = pace or ConnectionTimeouts()
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: Future[None] = Future()
        self.state = ConnectionState("starting", rfc3339(clock.now()))

    def start(self) -> None:
        """Begin, in a thread of its own: the import of the client takes seconds."""
        self._loop = asyncio.new_event_loop()
        # a daemon: an import or a discovery that hangs must not hold the process at its end
        threading.Thread(target=self._main, args=(self._loop,), name="lark", daemon=True).start()

    async def stop(self, seconds: float = 3.0) -> None:
        """Disconnect; nothing is taken any more. Returns after so many seconds at the latest."""
        if self._loop is None:
            return
        with suppress(RuntimeError):  # the loop is closed: it is over already
            self._loop.call_soon_threadsafe(self._stopping.set)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._over)), seconds)

    def _main(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.set_exception_handler(_quietly)
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(self._supervise())
        except Exception as error:
            log.exception("the Lark client cannot be used")
            self._tell("refused", f"the client cannot be used: {error}")
        finally:
            self._over.set_result(None)

    async def _supervise(self) -> None:
        """Connect again and again, until told to stop."""
        sdk = load_websocket_client()
        sdk.__dict__["loop"] = asyncio.get_running_loop()  # else the first one that it ever saw
        wait = self._pace.first
        while not self._stopping.is_set():
            begun = self._clock.monotonic()
            try:
                await self._connected(sdk)
            except sdk.ClientException as error:  # more tries are of little use: somebody must act
                self._tell("refused", _refusal(error))
                wait = self._pace.most
            except Exception as error:  # noqa: BLE001  # a channel's outer loop: it must go on
                if self._clock.monotonic() - begun >= self._pace.settled:
                    wait = self._pace.first
                self._tell("reconnecting", _reason(error))
            if await self._told_to_stop(wait * random.uniform(0.5, 1)):  # noqa: S311  # no secret
                break
            wait = min(wait * 2, self._pace.most)
        self._tell("stopped", "")

    async def _connected(self, sdk: ModuleType) -> None:
        """Hold one connection until it is gone.

        Raises:
            Exception: it cannot be made, or is lost.
        """
        link = _Link(sdk, self._login, self._take, self._clock, self._pace)
        try:
            await link.open()
            self._tell("connected", "")
            await link.hold(self._stopping)
        finally:
            await link.close()

    async def _told_to_stop(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        return self._stopping.is_set()

    def _tell(self, status: ConnectionStatus, why: str) -> None:
        before, why = self.state, truncate_line(why, 300)
        since = before.since if before.status == status else rfc3339(self._clock.now())
        self.state = ConnectionState(status, since, why)
        if (status, why) != (before.status, before.why):
            level = logging.INFO if status in {"connected", "stopped"} else logging.WARNING
            log.log(level, "Lark connection %s", status, extra={"why": why} if why else {})


class _Link:
    """One connection of one client."""

    def __init__(
        self,
        sdk: ModuleType,
        login: AppCredentials,
        take: EventHandler,
        clock: Clock,
        pace: ConnectionTimeouts,
    ) -> None:
        self._clock, self._pace = clock, pace
        self._lost = asyncio.Event()
        self._why = "closed"
        self._heard = clock.monotonic()
        self._pinging: asyncio.Task[None] | None = None
        # the client looks `requests` up in its module and gives its call no time limit
        sdk.__dict__["requests"] = SimpleNamespace(post=_timed_post(pace.discovery))
        handler = SimpleNamespace(_do_without_validation=take)  # all that the client calls
        self._client: Any = sdk.Client(
            login.app_id,
            login.secret,
            log_level=sdk.LogLevel.ERROR,
            event_handler=handler,
            domain=login.origin,
            auto_reconnect=False,
        )
        self._handle, self._disconnect = self._client._handle_message, self._client._disconnect
        self._client._handle_message = self._on_message
        self._client._disconnect = self._on_disconnect

    async def open(self) -> None:
        """Find the address, in a thread since the client blocks there, and connect to it."""
        async with asyncio.timeout(self._pace.discovery + 1):
            address = await _in_thread(self._client._get_conn_url)
        self._client._get_conn_url = lambda: address
        self._mend()
        async with asyncio.timeout(self._pace.handshake):
            await self._client._connect()
        self._heard = self._clock.monotonic()
        self._pinging = asyncio.create_task(self._client._ping_loop())

    async def hold(self, stopping: asyncio.Event) -> None:
        """Return when told to stop.

        Raises:
            Gone: the connection is lost, or nothing was heard for two ping intervals.
        """
        ends = [asyncio.create_task(event.wait()) for event in (stopping, self._lost)]
        try:
            while not stopping.is_set():
                left = self._heard + 2 * self._client._ping_interval - self._clock.monotonic()
                if left <= 0:
                    raise ConnectionLost(
                        "Lark was silent: no frame and no pong for two ping intervals"
                    )
                await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if self._lost.is_set() and not stopping.is_set():
                    raise ConnectionLost(self._why)
        finally:
            for end in ends:
                end.cancel()

    async def close(self) -> None:
        """Stop what the client left running, and disconnect, politely if Lark lets us."""
        self._client._cache._cron.cancel()
        if self._pinging is not None:
            self._pinging.cancel()
        connected = self._client._conn
        try:
            async with asyncio.timeout(self._pace.goodbye):
                await self._disconnect()
        except TimeoutError:
            if connected is not None:
                connected.transport.abort()

    async def _on_message(self, message: bytes) -> None:
        self._heard = self._clock.monotonic()
        await self._handle(message)
        self._mend()  # a pong may have changed the interval

    async def _on_disconnect(self) -> None:
        if (open_ := self._client._conn) is not None and open_.close_code is not None:
            self._why = f"the connection was closed: {open_.close_code} {open_.close_reason}"
        await self._disconnect()
        self._lost.set()

    def _mend(self) -> None:
        """A ping interval that Lark left out would end the pings with a TypeError."""
        interval = self._client._ping_interval
        if not isinstance(interval, int | float) or interval <= 0:
            self._client._ping_interval = self._pace.ping


def _timed_post(seconds: float) -> Callable[..., Any]:
    def post(url: str, **more: Any) -> Any:
        import requests  # noqa: PLC0415  # comes with the SDK, and only when Lark is on

        with requests.Session() as session:
            session.trust_env = False  # the socket that follows takes no proxy either
            return session.post(url, timeout=seconds, **more)

    return post


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Do blocking work in a thread that nobody waits for at the end of the process."""
    done: Future[Any] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001  # raised again where it is awaited
            done.set_exception(error)

    threading.Thread(target=run, name="lark-discovery", daemon=True).start()
    waiting: Awaitable[Any] = asyncio.wrap_future(done)
    return await waiting


def _quietly(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The receive task of a lost connection ends in an exception that nobody reads: no news."""
    log.debug("in the Lark loop", extra={"what": context.get("message", "")})


def _refusal(error: Any) -> str:
    hint = _WORSE.get(error.code, "check channels.lark.app_id, app_secret and the app's status")
    return f"Lark refused: {error}; {hint}"


def _reason(error: Exception) -> str:
    match error:
        case ConnectionLost():
            return str(error)
        case TimeoutError():
            return "Lark did not answer in time"
        case _:
            return f"{type(error).__name__}: {error}"
