"""The long connection: lark-oapi's websocket client in a thread of its own, supervised by us.

The client's own reconnect gives up on some errors and waits minutes on others, it cannot be
stopped, and its discovery has no timeout. It therefore runs with `auto_reconnect=False`; its
private names are used in this module only, and lark-oapi is pinned for that reason.
"""
# ruff: noqa: SLF001 - see the docstring

import asyncio
import base64
import logging
import random
import ssl
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from internal.agent.app.background_task import wait_shielded
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.secrets import mask_secrets, register_secret
from internal.agent.domain.text import truncate_line
from internal.agent.ports.runtime import Clock
from internal.channels.chat.transport import TransportUnavailable
from internal.channels.lark.network import (
    KEEPALIVE_SECONDS,
    LarkNetwork,
    read_log_id,
    with_log_id,
)
from internal.channels.lark.sdk import load_websocket_client
from internal.egress.messages import SessionRequest, quoted_url
from internal.egress.session_loader import load_sessions

if TYPE_CHECKING:
    from internal.egress.session import HttpSession

log = logging.getLogger(__name__)

EventHandler = Callable[[bytes], Awaitable[dict[str, Any] | None]]
ConnectionStatus = Literal["starting", "connected", "reconnecting", "refused", "stopped"]
_WRONG_DOMAIN, _TOO_MANY_CONNECTIONS = 1000040351, 514
_SECRET_PARAMETERS = {"access_key", "ticket"}
_REFUSAL_HINTS = {
    _WRONG_DOMAIN: "the app belongs to the other service; set channels.lark.domain",
    # the client raises ClientException with 514 for autherrcode 1000040350 only
    _TOO_MANY_CONNECTIONS: "more than 50 connections of this app are open, and Lark allows no more;"
    " stop other processes that use the app",
}


class ConnectionState(NamedTuple):
    """The status of the connection, since when (RFC 3339) and why."""

    status: ConnectionStatus
    since: str
    why: str = ""


class LineActivity(NamedTuple):
    """The number of openings of the connection, and the start of its silence.

    `quiet_since` is the time of the last event or of the last opening, in monotonic seconds.
    """

    opened: int = 0
    quiet_since: float = 0.0


class AppCredentials(NamedTuple):
    """An app's id and secret, the origin of its service, and the way to it."""

    app_id: str
    secret: str
    origin: str
    network: LarkNetwork = LarkNetwork()

    def __repr__(self) -> str:
        """Return a representation without the secret."""
        return f"AppCredentials({self.app_id} at {self.origin})"


class ConnectionTimeouts(NamedTuple):
    """Timeouts and delays in seconds.

    The reconnect delay doubles from `first_delay` to `max_delay`, with jitter, and is reset by a
    connection that lasted `stable_after`. A websocket ping is sent every `line_ping`; without a
    pong within `line_pong` the connection is lost. `ping_interval` is that of Lark's own pings if
    Lark names none.
    """

    first_delay: float = 1.0
    max_delay: float = 60.0
    stable_after: float = 5.0
    discovery: float = 10.0
    handshake: float = 15.0
    ping_interval: float = 120.0
    line_ping: float = 10.0
    line_pong: float = 15.0
    close: float = 1.0


class ConnectionLost(Exception):
    """The connection ended; the message is the reason."""


class LarkConnection:
    """Keeps the bot connected.

    `on_event` receives each event's JSON in the connection's loop before the acknowledgement. Its
    return value is the response, with code 200; if it raises, the code is 500 and Lark sends the
    event again, except clicks. It is called in the order of arrival; while it awaits, it is called
    for further events. `on_open` is called in the connection's loop whenever it is opened.
    """

    def __init__(
        self,
        credentials: AppCredentials,
        on_event: EventHandler,
        clock: Clock,
        timeouts: ConnectionTimeouts | None = None,
        *,
        on_open: Callable[[], None] = lambda: None,
    ) -> None:
        self._credentials, self._on_event, self._clock = credentials, on_event, clock
        self._on_open = on_open
        self._session: _ClientSession | None = None
        self.activity = LineActivity(quiet_since=clock.monotonic())
        self._timeouts = timeouts or ConnectionTimeouts()
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finished: Future[None] = Future()
        self.state = ConnectionState("starting", rfc3339(clock.now()))

    def start(self) -> None:
        """Start in a new thread: importing the client takes seconds. May be called after `stop`."""
        self._stopping, self._finished = asyncio.Event(), Future()
        self._loop = asyncio.new_event_loop()
        # each thread has its own: an earlier one may still run when `stop` did not wait for it
        own = (self._loop, self._stopping, self._finished)
        # a daemon: a hanging import or discovery must not delay the exit of the process
        threading.Thread(target=self._main, args=own, name="lark", daemon=True).start()

    async def wait(self) -> None:
        """Return when the thread has ended: after `stop`, or because the client cannot be used."""
        await wait_shielded(asyncio.wrap_future(self._finished))

    async def stop(self, seconds: float = 3.0) -> None:
        """Disconnect and stop receiving; return after `seconds` at the latest."""
        if self._loop is None:
            return
        with suppress(RuntimeError):  # the loop is closed: the thread has ended
            self._loop.call_soon_threadsafe(self._stopping.set)
        with suppress(TimeoutError):
            await asyncio.wait_for(wait_shielded(asyncio.wrap_future(self._finished)), seconds)

    def reconnect(self, why: str) -> None:
        """Replace the connection, if there is one; may be called from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._lose, why)

    def _lose(self, why: str) -> None:
        if self._session is not None:
            self._session.lose(why)

    async def _receive(self, payload: bytes) -> dict[str, Any] | None:
        self.activity = self.activity._replace(quiet_since=self._clock.monotonic())
        return await self._on_event(payload)

    def _main(
        self, loop: asyncio.AbstractEventLoop, stopping: asyncio.Event, finished: Future[None]
    ) -> None:
        loop.set_exception_handler(_log_loop_error)
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(self._supervise(stopping))
        except Exception as error:
            log.exception("the Lark client cannot be used")
            self._set_state("refused", f"the client cannot be used: {error}")
        finally:
            finished.set_result(None)

    async def _supervise(self, stopping: asyncio.Event) -> None:
        """Reconnect until stopped."""
        sdk = load_websocket_client()
        sdk.__dict__["loop"] = asyncio.get_running_loop()  # the module keeps the first loop it saw
        wait = self._timeouts.first_delay
        while not stopping.is_set():
            begun = self._clock.monotonic()
            session = _ClientSession(
                sdk,
                self._credentials,
                self._receive,
                clock=self._clock,
                timeouts=self._timeouts,
            )
            try:
                await self._connected(session, stopping)
            except sdk.ClientException as error:  # retrying rarely helps
                self._set_state("refused", with_log_id(_refusal(error), session.log_id))
                wait = self._timeouts.max_delay
            except Exception as error:  # noqa: BLE001  # a channel's outer loop must continue
                if self._clock.monotonic() - begun >= self._timeouts.stable_after:
                    wait = self._timeouts.first_delay
                why = with_log_id(self._reason(error), session.log_id)
                self._set_state("reconnecting", why)
            if await _is_set_within(stopping, wait * random.uniform(0.5, 1)):  # noqa: S311  # no secret
                break
            wait = min(wait * 2, self._timeouts.max_delay)
        self._set_state("stopped", "")

    async def _connected(self, session: "_ClientSession", stopping: asyncio.Event) -> None:
        """Maintain one connection until it is lost.

        Raises:
            Exception: It cannot be established, or is lost.
        """
        try:
            await session.open()
            self._session = session
            self.activity = LineActivity(self.activity.opened + 1, self._clock.monotonic())
            self._set_state("connected", "")
            self._on_open()
            await session.wait_until_lost(stopping)
        finally:
            self._session = None
            await session.close()

    def _reason(self, error: Exception) -> str:
        credentials = self._credentials
        match error:
            case ConnectionLost() | TransportUnavailable():
                return str(error)
            case TimeoutError():
                return "Lark did not respond in time"
            case _:
                return credentials.network.explain(error, credentials.origin)

    def _set_state(self, status: ConnectionStatus, why: str) -> None:
        before, why = self.state, truncate_line(mask_secrets(why), 300)
        since = before.since if before.status == status else rfc3339(self._clock.now())
        self.state = ConnectionState(status, since, why)
        if (status, why) != (before.status, before.why):
            level = logging.INFO if status in {"connected", "stopped"} else logging.WARNING
            log.log(level, "Lark connection %s", status, extra={"why": why} if why else {})


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


class _ClientSession:
    """One connection of one client."""

    def __init__(
        self,
        sdk: ModuleType,
        credentials: AppCredentials,
        on_event: EventHandler,
        *,
        clock: Clock,
        timeouts: ConnectionTimeouts,
    ) -> None:
        self._network, self._clock, self._timeouts = credentials.network, clock, timeouts
        self._address = ""
        self._tls: ssl.SSLContext | bool = True
        self.log_id = ""
        """Lark's id of the call that failed, "" if there is none."""
        self._lost = asyncio.Event()
        self._why = "closed"
        self._last_received = clock.monotonic()
        self._tasks: list[asyncio.Task[None]] = []
        self._sdk = sdk
        self._client: Any = sdk.Client(
            credentials.app_id,
            credentials.secret,
            log_level=sdk.LogLevel.ERROR,
            event_handler=None,  # see _on_data
            domain=credentials.origin,
            auto_reconnect=False,
        )
        self._handle, self._disconnect = self._client._handle_message, self._client._disconnect
        self._on_event = on_event
        self._client._handle_message = self._on_message
        self._client._handle_data_frame = self._on_data
        self._client._disconnect = self._on_disconnect

    async def open(self) -> None:
        """Find the address, in a thread since the client blocks there, and connect to it."""
        with self._own_network():
            await self._open()
        self._last_received = self._clock.monotonic()
        self._tasks = [
            asyncio.create_task(self._client._ping_loop()),
            asyncio.create_task(self._watch_line(self._client._conn)),
        ]

    @contextmanager
    def _own_network(self) -> Generator[None]:
        """Replace the connecting functions of the client's module for the length of a block."""
        module = self._sdk.__dict__
        ours = {
            "requests": SimpleNamespace(post=self._discover),
            "_ws_connect_kwargs": self._connect_options,
        }
        before = {name: module[name] for name in ours}
        module.update(ours)
        try:
            yield
        finally:
            module.update(before)

    async def _open(self) -> None:
        async with asyncio.timeout(self._timeouts.discovery + 1):
            self._address = await _run_in_thread(self._client._get_conn_url)
        for name, value in parse_qsl(urlsplit(self._address).query):
            if name in _SECRET_PARAMETERS:
                register_secret(value, renewed=f"{name} of a Lark connection")
        self._client._get_conn_url = lambda: self._address
        self._fix_ping_interval()
        try:
            async with asyncio.timeout(self._timeouts.handshake):
                await self._client._connect()
        except Exception as error:
            self.log_id = _log_id_of_handshake(error)
            raise
        self.log_id = ""

    async def wait_until_lost(self, stopping: asyncio.Event) -> None:
        """Return when told to stop.

        Raises:
            ConnectionLost: no pong arrived, or no frame for two ping intervals of Lark, or the
                connection was closed.
        """
        ends = [asyncio.create_task(event.wait()) for event in (stopping, self._lost)]
        try:
            while not stopping.is_set():
                left = (
                    self._last_received + 2 * self._client._ping_interval - self._clock.monotonic()
                )
                if left <= 0:
                    raise ConnectionLost("no frame and no pong for two ping intervals")
                await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if self._lost.is_set() and not stopping.is_set():
                    raise ConnectionLost(self._why)
        finally:
            for end in ends:
                end.cancel()

    def lose(self, why: str) -> None:
        """Treat the connection as lost."""
        self._why = why
        self._lost.set()

    async def close(self) -> None:
        """Stop the client's remaining tasks and disconnect; abort after the close timeout."""
        self._client._cache._cron.cancel()
        for task in self._tasks:
            task.cancel()
        connected = self._client._conn
        try:
            async with asyncio.timeout(self._timeouts.close):
                await self._disconnect()
        except TimeoutError:
            if connected is not None:
                connected.transport.abort()

    def _discover(self, url: str, **request: Any) -> Any:
        """Find the address; called by the client in a thread, in place of `requests.post`."""
        policy = self._network.policy()
        self._tls = policy.tls
        return asyncio.run(self._post(load_sessions(lambda: policy), url, **request))

    async def _post(
        self,
        open_session: "Callable[..., HttpSession]",
        url: str,
        *,
        headers: Mapping[str, str],
        json: Mapping[str, str],
    ) -> Any:
        request = SessionRequest(
            "POST",
            quoted_url(url),
            {**headers, "content-type": "application/json"},
            msgspec.json.encode(json),
        )
        session = open_session(keepalive_seconds=KEEPALIVE_SECONDS)
        try:
            async with asyncio.timeout(self._timeouts.discovery):
                response = await session.fetch(request)
        finally:
            await session.close()
        self.log_id = read_log_id(response.headers)
        return SimpleNamespace(status_code=response.status, content=response.body)

    def _connect_options(self, _: object = None) -> dict[str, Any]:
        """Return the options of `websockets.connect`; called by the client."""
        options: dict[str, Any] = {
            "proxy": _with_plain_login(self._network.proxy_for(self._address)),
            "ping_interval": None,  # _watch_line is quicker and says why the connection is lost
            "close_timeout": self._timeouts.close,
        }
        if self._address.startswith("wss:"):
            options["ssl"] = self._tls
        if str(options["proxy"]).startswith("https:"):
            options["proxy_ssl"] = self._tls
        return options

    async def _watch_line(self, connection: Any) -> None:
        """End the connection when a ping is not answered: it may be open on this side only."""
        while not self._lost.is_set():
            await asyncio.sleep(self._timeouts.line_ping)
            try:
                async with asyncio.timeout(self._timeouts.line_pong):
                    await (await connection.ping())
            except TimeoutError:
                self.lose(f"no pong within {self._timeouts.line_pong:g} s")

    async def _on_message(self, message: bytes) -> None:
        self._last_received = self._clock.monotonic()
        await self._handle(message)
        self._fix_ping_interval()  # a pong may change the interval

    async def _on_data(self, frame: Any) -> None:
        """Handle an event and acknowledge it.

        The client calls its handler synchronously, so that events would wait for one another.
        """
        headers = {header.key: header.value for header in frame.headers}
        payload, count = frame.payload, int(headers["sum"])
        if count > 1:  # a part of an event; None until the others have arrived
            name, number = headers["message_id"], int(headers["seq"])
            payload = self._client._combine(name, count, number, payload)
        if payload is None or headers["type"] != "event":
            return
        begun, acknowledgement = self._clock.monotonic(), dict[str, Any](code=200)
        try:
            if (response := await self._on_event(payload)) is not None:
                acknowledgement["data"] = base64.b64encode(msgspec.json.encode(response)).decode()
        except Exception as error:  # noqa: BLE001  # a channel's outer loop: Lark sends it again
            log.warning(
                "event not acknowledged", extra={"reason": f"{type(error).__name__}: {error}"}
            )
            acknowledgement["code"] = 500
        seconds = self._clock.monotonic() - begun
        frame.headers.add(key="biz_rt", value=str(round(seconds * 1000)))
        frame.payload = msgspec.json.encode(acknowledgement)
        await self._client._write_message(frame.SerializeToString())

    async def _on_disconnect(self) -> None:
        if (open_ := self._client._conn) is not None and open_.close_code is not None:
            self._why = f"the connection was closed: {open_.close_code} {open_.close_reason}"
        await self._disconnect()
        self._lost.set()

    def _fix_ping_interval(self) -> None:
        """A ping interval that Lark left out would end the pings with a TypeError."""
        interval = self._client._ping_interval
        if not isinstance(interval, int | float) or interval <= 0:
            self._client._ping_interval = self._timeouts.ping_interval


async def _run_in_thread(work: Callable[[], Any]) -> Any:
    """Run blocking work in a daemon thread, which does not delay the end of the process."""
    done: Future[Any] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001  # raised where the result is awaited
            done.set_exception(error)

    threading.Thread(target=run, name="lark-discovery", daemon=True).start()
    waiting: Awaitable[Any] = asyncio.wrap_future(done)
    return await waiting


def _log_loop_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore the unread exception of the receive task of a lost connection."""
    log.debug("in the Lark loop", extra={"what": context.get("message", "")})


def _with_plain_login(proxy: str | None) -> str | None:
    """Return the URL of a proxy with its login unquoted: websockets sends it unchanged."""
    parts = urlsplit(proxy or "")
    if parts.username is None:
        return proxy
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    if not {"/", "?", "#"}.isdisjoint(login):  # would end the host
        return proxy
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{login}@{host}"


def _log_id_of_handshake(error: BaseException) -> str:
    """Return the log id of a refused handshake; the client's exception hides its response."""
    response = getattr(error, "response", getattr(error.__context__, "response", None))
    return "" if response is None else read_log_id(response.headers)


def _refusal(error: Any) -> str:
    hint = _REFUSAL_HINTS.get(
        error.code, "check channels.lark.app_id, app_secret and the app's status"
    )
    return f"Lark refused: {error}; {hint}"
