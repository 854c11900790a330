"""The connection to one server: opened by a call, owned by one task, closed when it is not used."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from internal.agent.app.background_task import wait_shielded
from internal.agent.domain.errors import ToolError
from internal.agent.domain.react.input_forms import InputReply
from internal.agent.ports.sandbox import Sandbox, SandboxCommand
from internal.mcp.definitions import ServerDefinition
from internal.mcp.elicitation import Progress
from internal.mcp.limits import RENEWAL_BYTES, CallTimedOut, LoginRequired, ServerFailure
from internal.mcp.login.token_file import ServerLogin
from internal.mcp.manifest import ListedTool

if TYPE_CHECKING:
    from internal.mcp.sdk_client import SdkSession, ServerEndpoint

logger = logging.getLogger(__name__)

FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS = 0.5, 30.0
"""The pause after the first failure, which doubles, and the longest one."""
LIST_SECONDS = 60.0
"""Maximum age of the list of tools when a tool is called."""
CHANGE_PAUSE_SECONDS = 1.0
"""The pause after a list that the server asked for by saying that its tools have changed."""

SILENCE_SECONDS = 4.0
"""Maximum silence of a server after a line in place of an answer."""
MAX_WAIT_SECONDS = 3_600.0
"""Time for which a server without other calls is kept for a call that waits for people."""

OnTools = Callable[[list[ListedTool]], None]
"""Receives the tools whenever they have been listed; may block for a file, and is not awaited."""


class ServerConnection:
    """Starts a server for a call, and stops it when it has not been called for a while.

    Args:
        definition: the server.
        sandbox: runs its command.
        command: None for a server with an address.
        version: the version of Larkspur, sent to servers.
        on_tools: receives the tools.
        login: the login of a server that demands one.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        sandbox: Sandbox,
        command: SandboxCommand | None,
        *,
        version: str,
        on_tools: OnTools,
        login: ServerLogin | None = None,
    ) -> None:
        self.definition = definition
        self._sandbox, self._command, self._version = sandbox, command, version
        self._on_tools, self._login = on_tools, login
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[SdkSession]
        self._done, self._has_changed = asyncio.Event(), asyncio.Event()
        self._endpoint: ServerEndpoint | None = None
        self._is_closed = False
        self._calls = 0
        self._timer: asyncio.TimerHandle | None = None
        self._lost: ServerFailure | None = None
        self._failures, self._failed_at = 0, 0.0
        self._listing, self._listed_at = asyncio.Lock(), 0.0
        self._changes = 0
        """Number of times the server said that its tools have changed."""
        self._lost_answers = 0

    @property
    def is_open(self) -> bool:
        """True while the server is connected."""
        return self._owner is not None and self._ready.done() and not self._done.is_set()

    async def list_tools(self) -> list[ListedTool]:
        """Return the tools as the server lists them now.

        Raises:
            ServerFailure: it cannot be started, or does not list them.
        """
        async with self._session() as session, self._listing:
            return await self._list(session)

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        on_progress: Progress,
        check: Callable[[], object] = lambda: None,
        *,
        key: str = "",
        reply: InputReply | None = None,
    ) -> dict[str, Any]:
        """Return the result of a call as JSON. The server is started if it does not run.

        `check` is called first, once the tools of this connection are listed. `reply` continues the
        call with this key, which required input.

        Raises:
            ToolError: the server answers with an error, or not in time; or `check` raises it.
            LoginRequired: a person must sign in first.
            ServerFailure: it cannot be started, or ends during the call.
        """
        async with self._session() as session:
            # a server that waits for a reply may not answer anything else
            if reply is None:
                await self._list_if_old(session)
            check()
            endpoint = self._endpoint
            try:
                seconds = self.definition.call_timeout_seconds
                sent = session.call(tool, arguments, seconds, on_progress, key=key, reply=reply)
                result = await self._answer(session, sent)
            except CallTimedOut as error:
                self._failures = 0
                stray = endpoint.stray_line if endpoint else ""
                if not stray:
                    raise
                raise ToolError(f"{error}; it wrote a line that is no message: {stray}") from error
            except (ToolError, LoginRequired):
                self._failures = 0
                raise
            except ServerFailure as error:
                reason = endpoint.failure if endpoint else ""
                self._lost = ServerFailure(f"it ended during the call: {reason or error}")
                self._end()
                raise self._lost from error
        self._failures = 0
        return result

    async def _answer(
        self, session: "SdkSession", sent: Coroutine[Any, Any, dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the answer to a call.

        A server that answers its only call with a line that is not a message never answers it. One
        that has written such lines before logs there, and is waited for.

        Raises:
            ToolError: such a line came, and then nothing, although the server takes requests.
            Exception: of the call.
        """
        endpoint = self._endpoint
        if endpoint is None or endpoint.stray_lines > self._lost_answers or self._calls > 1:
            return await sent
        call = asyncio.create_task(sent)
        lost = asyncio.create_task(_until_lost(session, endpoint))
        try:
            await asyncio.wait({call, lost}, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return call.result()
            self._lost_answers = endpoint.stray_lines
            raise ToolError(
                "the server wrote a line that is no message, and then nothing for"
                f" {SILENCE_SECONDS:g} s; the outcome of the call is unknown: {endpoint.stray_line}"
            )
        finally:
            for task in (call, lost):
                task.cancel()
            await asyncio.wait({call, lost})

    async def close(self) -> None:
        """Stop the server for good. Calls that are running fail."""
        self._is_closed = True
        self._end()
        if self._owner is not None:
            if not self._ready.done():
                self._owner.cancel()
            await asyncio.wait({self._owner})

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator["SdkSession"]:
        """Yield the session, which stays open within the block unless the server ends.

        Raises:
            ServerFailure: it cannot be started.
        """
        self._calls += 1
        if self._timer is not None:
            self._timer.cancel()
        try:
            while self._owner is not None and self._done.is_set():
                await asyncio.wait({self._owner})
            if self._owner is None:
                await self._pause()
            if self._is_closed:
                raise ServerFailure("it is being stopped")
            if self._owner is None:  # several calls may have waited
                self._done, self._lost = asyncio.Event(), None
                self._ready = asyncio.get_running_loop().create_future()
                self._owner = asyncio.create_task(self._own())
            yield await wait_shielded(self._ready)
        finally:
            self._calls -= 1
            if not self._calls:
                self._stop_later()

    def _stop_later(self) -> None:
        seconds = self.definition.idle_seconds
        if self._is_waiting():
            seconds = max(seconds, MAX_WAIT_SECONDS)
        elif self._endpoint and self._endpoint.received_bytes > RENEWAL_BYTES:
            self._end()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._end)

    def _is_waiting(self) -> bool:
        """Return True if a call waits for people within the connection."""
        if not self.is_open or self._ready.exception() is not None:
            return False
        return self._ready.result().is_waiting

    def _end(self) -> None:
        self._done.set()
        if self._timer is not None:
            self._timer.cancel()

    async def _pause(self) -> None:
        """Wait after a failure, the longer the more failures there were."""
        if self._failures:
            delay = min(FIRST_DELAY_SECONDS * 2 ** (self._failures - 1), MAX_DELAY_SECONDS)
            passed = asyncio.get_running_loop().time() - self._failed_at
            await asyncio.sleep(max(delay - passed, 0.0))

    async def _own(self) -> None:
        """Open the connection, hold it until it is to end or breaks, and close it."""
        failure: ServerFailure | None = None
        try:
            async with AsyncExitStack() as stack:
                session = await self._open(stack)
                self._ready.set_result(session)
                await self._hold(session)
        except ServerFailure as error:
            failure = error
        except Exception:  # a fault of ours or of the SDK must not leave calls waiting
            logger.exception("mcp connection failed", extra={"server": self.definition.name})
            failure = ServerFailure("its connection failed; the log says why")
        finally:
            self._done.set()
            self._owner = None
            self._endpoint = None
            if failure is not None and not isinstance(failure, LoginRequired):
                self._note_failure(failure)
            if not self._ready.done():
                self._ready.set_exception(failure or ServerFailure("it is being stopped"))
                self._ready.exception()  # retrieved, if no call waits any more

    async def _open(self, stack: AsyncExitStack) -> "SdkSession":
        """Start the server and list its tools.

        Raises:
            ServerFailure: it does not start in time, or ends.
        """
        kind = await asyncio.to_thread(load_sdk)
        endpoint = self._endpoint = kind(
            self.definition, self._sandbox, self._command, login=self._login
        )
        seconds = self.definition.start_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                session = await stack.enter_async_context(
                    endpoint.connect(self._version, self._note_change)
                )
                async with self._listing:
                    await self._list(session)
        except TimeoutError as error:
            said = f": {endpoint.failure}" if endpoint.failure else ""
            known = endpoint.describe_failure("")
            raise ServerFailure(
                f"it did not start in {seconds:g} s{said}",
                refused=known.refused,
                refused_addresses=known.refused_addresses,
            ) from error
        except LoginRequired:
            raise
        except ServerFailure as error:
            raise endpoint.describe_failure(str(error)) from error
        logger.info(
            "mcp server connected",
            extra={"server": self.definition.name, "protocol": session.protocol},
        )
        return session

    async def _hold(self, session: "SdkSession") -> None:
        """Wait until the connection is to end, and list the tools when they change meanwhile.

        Raises:
            ServerFailure: it broke, or the process has ended by itself.
        """
        endpoint = self._endpoint
        if endpoint is None:
            return
        waits: list[asyncio.Task[Any]] = [
            asyncio.create_task(one.wait()) for one in (endpoint.ended, self._done)
        ]
        waits.append(asyncio.create_task(self._list_changes(session)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        if self._lost is not None:
            raise self._lost
        if endpoint.ended.is_set():
            raise ServerFailure(endpoint.failure)

    async def _list_if_old(self, session: "SdkSession") -> None:
        """List the tools if that is long ago or they have changed since."""
        async with self._listing:
            if asyncio.get_running_loop().time() - self._listed_at > LIST_SECONDS:
                await self._list(session)

    async def _list(self, session: "SdkSession") -> list[ListedTool]:
        """List the tools. They are known when all of this is done, and not before."""
        changes = self._changes
        listed = await session.list_tools()
        await asyncio.to_thread(self._on_tools, listed)
        if changes == self._changes:  # else the list may be older than the change
            self._listed_at = asyncio.get_running_loop().time()
        return listed

    def _note_change(self) -> None:
        self._listed_at = float("-inf")
        self._changes += 1
        self._has_changed.set()

    async def _list_changes(self, session: "SdkSession") -> None:
        """List the tools whenever the server reports a change; people see it at once."""
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            try:
                await self._list_if_old(session)
            except ServerFailure as error:  # the next call lists them again
                extra = {"server": self.definition.name, "reason": str(error)}
                logger.warning("mcp tools that have changed cannot be listed", extra=extra)
            # a server may announce a change whenever it is asked
            await asyncio.sleep(CHANGE_PAUSE_SECONDS)

    def _note_failure(self, failure: ServerFailure) -> None:
        self._failures += 1
        self._failed_at = asyncio.get_running_loop().time()
        logger.warning(
            "mcp server failed",
            extra={"server": self.definition.name, "reason": str(failure)},
        )


async def _until_lost(session: "SdkSession", endpoint: "ServerEndpoint") -> None:
    """Wait for a stray line, after which the server takes requests and writes nothing else."""
    before = endpoint.stray_lines
    while endpoint.stray_lines == before:
        endpoint.has_written.clear()
        await endpoint.has_written.wait()
    while True:
        # a server that does one thing at a time answers after the call
        await session.ping()
        seen = endpoint.received_bytes
        await asyncio.sleep(SILENCE_SECONDS)
        if endpoint.received_bytes == seen:
            return


def load_sdk() -> "type[ServerEndpoint]":
    """Import the SDK. Blocks for more than a second.

    Raises:
        ServerFailure: it is not installed.
    """
    try:
        from internal.mcp.sdk_client import ServerEndpoint  # noqa: PLC0415  # slow import; its only place
    except ModuleNotFoundError as error:
        raise ServerFailure(
            "the package mcp is not installed; install the extra larkspur-gateway[mcp]"
        ) from error
    return ServerEndpoint
