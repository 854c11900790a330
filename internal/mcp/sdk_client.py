"""A connection of the `mcp` SDK to a server. Importing this module takes more than a second."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client._transport import TransportStreams
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    REQUEST_TIMEOUT,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    InputRequiredResult,
    InputResponses,
    LoggingMessageNotificationParams,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from internal.agent.domain.errors import ToolError
from internal.agent.domain.react.input_forms import InputReply, InputResponse
from internal.agent.domain.text import escape_hidden, truncate_line
from internal.agent.ports.sandbox import Sandbox, SandboxCommand
from internal.mcp.answers import PROBLEM
from internal.mcp.definitions import ServerDefinition
from internal.mcp.elicitation import DECLINED_KEY, OpenCalls, Progress
from internal.mcp.http_transport import ServerTransport, connect_http, open_transport
from internal.mcp.lenient_transport import LenientTransport
from internal.mcp.limits import MAX_PAGES, CallTimedOut, LoginRequired, ServerFailure
from internal.mcp.login.login_transport import LoginTransport
from internal.mcp.login.sign_in import Authorize, sign_in
from internal.mcp.login.token_file import ServerLogin
from internal.mcp.login.token_store import TokenStore
from internal.mcp.manifest import MAX_TOOLS, ListedTool
from internal.mcp.server_messages import LOGGED_KEY, SHOWN_LEVEL, ServerMessages
from internal.mcp.server_tasks import call_as_task, needs_task, task_problem
from internal.mcp.sse_transport import connect_sse
from internal.mcp.stdio_transport import ServerProcess

logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs session ids, and text of servers

MAX_ERROR_CHARS = 2_000
_MAX_REPEATS, _FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 8, 0.05, 0.25
"""Number of times a call is sent in a row, and the pauses between, which double."""
_DECLINED = (
    "[During this call the server asked a person for input, which was declined: it cannot be shown,"
    " or several calls of the server were running. Call it alone.]"
)
_LOGIN_HINT = "it answered 401; its definition needs the key login, or a header with a valid token"
_SESSION_ENDED = "Session terminated"  # of the SDK, for an unknown session id over HTTP

_Answer = CallToolResult | InputRequiredResult
_Send = Callable[..., Awaitable[_Answer]]
_Connect = Callable[
    [AbstractAsyncContextManager[TransportStreams], LoginTransport | None],
    AbstractAsyncContextManager["SdkSession"],
]


class SdkSession:
    """An open connection.

    Args:
        client: the entered client.
        calls: forwards the input requests of the server to people.
        login: the transport of a server that demands a login.
    """

    def __init__(
        self,
        client: Client,
        calls: OpenCalls,
        messages: ServerMessages,
        *,
        login: LoginTransport | None,
    ) -> None:
        self._client, self._calls, self._login = client, calls, login
        self._messages = messages
        self._task_tools: frozenset[str] = frozenset()
        """The tools that are called as tasks only."""

    @property
    def protocol(self) -> str:
        """The version of the protocol that is spoken."""
        return self._client.protocol_version

    @property
    def is_waiting(self) -> bool:
        """True if a call waits for people within the connection."""
        return self._calls.is_waiting

    async def ping(self) -> None:
        """Wait until the server takes requests, or the connection is closed."""
        closed = anyio.ClosedResourceError, anyio.BrokenResourceError
        with contextlib.suppress(MCPError, ValueError, *closed):
            await self._client.session.send_ping()

    async def list_tools(self) -> list[ListedTool]:
        """Return the tools, one more than can be offered at most.

        Raises:
            ServerFailure: the server does not list them.
        """
        found: list[ListedTool] = []
        cursor, asked = None, set[str]()
        try:
            for _ in range(MAX_PAGES):
                page = await self._client.list_tools(cursor=cursor)
                # a server that repeats a cursor repeats tools as well
                new = [tool for tool in map(self._listed, page.tools) if tool not in found]
                found += new[: MAX_TOOLS + 1 - len(found)]
                cursor = page.next_cursor
                if cursor is None or cursor in asked or len(found) > MAX_TOOLS:
                    break
                asked.add(cursor)
        except (MCPError, ValueError) as error:
            raise _failure(self._login) or ServerFailure(_describe(error)) from error
        return found

    def _listed(self, tool: Tool) -> ListedTool:
        problem = str((tool.meta or {}).get(PROBLEM, ""))
        if needs_task(tool):
            self._task_tools |= {tool.name}
            problem = problem or task_problem(self._client.server_capabilities, self.protocol)
        else:
            self._task_tools -= {tool.name}
        return ListedTool(
            tool.name, tool.description or "", tool.input_schema, tool.title or "", problem
        )

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        timeout_seconds: float,
        on_progress: Progress,
        *,
        key: str = "",
        reply: InputReply | None = None,
    ) -> dict[str, Any]:
        """Return the result of a call as JSON. Cancelling it notifies the server.

        The result may require input; the call is continued with a `reply`. `key` identifies it.

        Raises:
            ToolError: the server answers with an error, or not in time.
            LoginRequired: it demands that a person signs in; the connection stays open.
            ServerFailure: the connection is closed.
        """
        with self._messages.during_call() as logged:
            if self.protocol in MODERN_PROTOCOL_VERSIONS:
                send = partial(self._client.session.call_tool, tool, arguments, timeout_seconds)
                result = await self._send(send, on_progress, timeout_seconds, reply=reply)
            else:
                result = await self._calls.run(
                    key,
                    lambda report: self._send_legacy(tool, arguments, report, timeout_seconds),
                    timeout_seconds=timeout_seconds,
                    on_progress=on_progress,
                    reply=reply,
                )
        if DECLINED_KEY in result and "content" in result:
            result["content"].append({"type": "text", "text": _DECLINED})
        return {**result, LOGGED_KEY: logged} if logged else result

    async def _send_legacy(
        self, tool: str, arguments: dict[str, Any], on_progress: Progress, timeout_seconds: float
    ) -> dict[str, Any]:
        """Return the result of a call in protocol 2025-11-25, which may be one of a task."""
        session = self._client.session

        async def send_task(report: ProgressFnT, **_more: Any) -> CallToolResult:
            return await call_as_task(session, tool, arguments, report=report)

        send: _Send = partial(session.call_tool, tool, arguments, None)
        return await self._send(
            send_task if tool in self._task_tools else send, on_progress, timeout_seconds
        )

    async def _send(
        self,
        send: _Send,
        on_progress: Progress,
        timeout_seconds: float,
        *,
        reply: InputReply | None = None,
    ) -> dict[str, Any]:
        """Return the result of a call as JSON; see `call`."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, message or "")

        try:
            result = await self._repeat(partial(send, report, allow_input_required=True), reply)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or error.message == _SESSION_ENDED:
                raise ServerFailure(_describe(error)) from error
            if (failure := _failure(self._login)) is not None:
                is_persons = isinstance(failure, LoginRequired)
                raise failure if is_persons else ToolError(str(failure)) from error
            if error.code == REQUEST_TIMEOUT:
                raise CallTimedOut(timeout_seconds) from error
            raise ToolError(f"the server answered: {_describe(error)}") from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise ServerFailure("the connection is closed") from error
        except (ValueError, RuntimeError) as error:  # ValueError: of pydantic as well
            raise ToolError("the server answered with something that is no result") from error
        dumped: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return dumped

    async def _repeat(self, send: _Send, reply: InputReply | None) -> _Answer:
        """Send a call, again if the server only wants that or the tool's headers have changed.

        Raises:
            MCPError, RuntimeError, ValueError: of the SDK.
        """
        responses, state = _responses(reply)
        delay = _FIRST_PAUSE_SECONDS
        for _ in range(_MAX_REPEATS):
            try:
                result = await send(input_responses=responses, request_state=state)
            except MCPError as error:
                if error.code != HEADER_MISMATCH:
                    raise
                await self.list_tools()
                continue
            if isinstance(result, CallToolResult) or result.input_requests:
                return result
            responses, state = None, result.request_state
            await asyncio.sleep(delay)
            delay = min(2 * delay, _MAX_PAUSE_SECONDS)
        raise RuntimeError("the server asks again and again to repeat the call")


def _failure(login: LoginTransport | None) -> ServerFailure | None:
    """Return why the last request had no usable token, None if it had one."""
    if login is None or not login.failure:
        return None
    return (LoginRequired if login.needs_person else ServerFailure)(login.failure)


def _responses(reply: InputReply | None) -> tuple[InputResponses | None, str | None]:
    """Return the responses of people and the state, as the SDK takes them."""
    if reply is None:
        return None, None
    return {each.key: _elicit_result(each) for each in reply.responses}, reply.state


def _elicit_result(response: InputResponse) -> ElicitResult:
    if response.action == "accept" and response.values:
        return ElicitResult(action="accept", content=dict(response.values))
    return ElicitResult(action=response.action)


class ServerEndpoint:
    """Connection details of a server, with the outcome of its last connection.

    Args:
        definition: the server.
        sandbox: runs the command.
        command: None for a server with an address.
        login: the login of a server that demands one.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        sandbox: Sandbox,
        command: SandboxCommand | None,
        *,
        login: ServerLogin | None,
    ) -> None:
        self._definition = definition
        self._login = login
        self.ended = asyncio.Event()
        """Set when the process has ended."""
        self.has_written = asyncio.Event()
        """Set with each line of the process that is no message."""
        self._process = None
        if command is not None:
            self._process = ServerProcess(
                sandbox, command, definition.name, self.ended.set, on_stray=self.has_written.set
            )

    @property
    def failure(self) -> str:
        """The reason why the process ended, or the end of its output; "" if nothing is known."""
        return self._process.failure if self._process else ""

    def describe_failure(self, otherwise: str) -> ServerFailure:
        """Return why the process ended and which hosts it may not reach; `otherwise` if unknown."""
        if self._process is None:
            return ServerFailure(otherwise)
        return ServerFailure(
            self._process.failure or otherwise,
            refused=self._process.refused,
            refused_addresses=self._process.refused_addresses,
        )

    @property
    def received_bytes(self) -> int:
        """The number of bytes that the process has written."""
        return self._process.received_bytes if self._process else 0

    @property
    def stray_line(self) -> str:
        """The last line of the process that was not a message; "" if there is none."""
        return self._process.stray_line if self._process else ""

    @property
    def stray_lines(self) -> int:
        """The number of lines that were not messages."""
        return self._process.stray_lines if self._process else 0

    @contextlib.asynccontextmanager
    async def connect(
        self, version: str, on_tools_changed: Callable[[], None]
    ) -> AsyncGenerator[SdkSession]:
        """Connect in either version of the protocol. No process is left after the block.

        A server without streamable HTTP is connected to with HTTP+SSE, unless the definition names
        the transport.

        Raises:
            ServerFailure: the connection cannot be opened, or broke.
        """
        connect = partial(self._connect, version=version, on_tools_changed=on_tools_changed)
        async with contextlib.AsyncExitStack() as stack:
            if self._process:
                yield await stack.enter_async_context(connect(self._process.connect(), None))
            else:
                yield await self._reach(stack, connect)

    async def _reach(self, stack: contextlib.AsyncExitStack, connect: _Connect) -> SdkSession:
        """Connect to an address, with HTTP+SSE if the definition says so or nothing else works.

        Raises:
            ServerFailure: the connection cannot be opened.
        """
        one = self._definition
        checked, login = await self._open_transport()
        if one.transport == "sse":
            streams = connect_sse(one.url, one.headers, login or checked)
            return await stack.enter_async_context(connect(streams, login))
        try:
            streams = connect_http(one.url, one.headers, login or checked)
            return await stack.enter_async_context(connect(streams, login))
        except ServerFailure as failure:
            if one.transport is not None or not checked.has_refused_message:
                raise
            checked, login = await self._open_transport()
            streams = connect_sse(one.url, one.headers, login or checked)
            try:
                return await stack.enter_async_context(connect(streams, login))
            except LoginRequired:
                raise
            except ServerFailure:
                raise failure from None

    async def _open_transport(self) -> tuple[ServerTransport, LoginTransport | None]:
        one = self._definition
        hint = "" if self._login else _LOGIN_HINT
        checked = await open_transport(private=one.allow_private_networks, login_hint=hint)
        if self._login is None:
            return checked, None
        store = TokenStore(self._login.file, one, self._login.principal)
        return checked, LoginTransport(one, store, checked)

    @contextlib.asynccontextmanager
    async def _connect(
        self,
        transport: AbstractAsyncContextManager[TransportStreams],
        login: LoginTransport | None,
        *,
        version: str,
        on_tools_changed: Callable[[], None],
    ) -> AsyncGenerator[SdkSession]:
        """Speak to the server over a transport.

        Raises:
            ServerFailure: the connection cannot be opened, or broke.
        """

        async def handle(message: IncomingMessage) -> None:
            if isinstance(message, ToolListChangedNotification):
                on_tools_changed()

        calls, messages = OpenCalls(), ServerMessages(self._definition.name)

        async def log(params: LoggingMessageNotificationParams) -> None:
            messages.note(params.level, params.data)

        async def ask(
            context: ClientRequestContext,  # noqa: ARG001 - the SDK passes it by name
            params: ElicitRequestParams,
        ) -> ElicitResult:
            asked = params.model_dump(mode="json", by_alias=True, exclude_none=True)
            return _elicit_result(await calls.ask(asked))

        client = Client(
            LenientTransport(transport),
            client_info=Implementation(name="larkspur", version=version),
            message_handler=handle,
            elicitation_callback=ask,
            logging_callback=log,
            log_level=SHOWN_LEVEL,
            cache=None,
        )
        try:
            async with client:
                watch = asyncio.create_task(_watch_tools(client, on_tools_changed))
                try:
                    yield SdkSession(client, calls, messages, login=login)
                finally:
                    watch.cancel()
                    await asyncio.wait({watch})
                    await calls.close()
        except (ServerFailure, MCPError, httpx2.HTTPError, OSError, ValueError) as error:
            raise _failure(login) or ServerFailure(_describe(error)) from error
        except ExceptionGroup as group:
            raise _failure(login) or ServerFailure(_describe(_first(group))) from group

    @staticmethod
    async def sign_in(
        definition: ServerDefinition, login: ServerLogin, redirect_uri: str, authorize: Authorize
    ) -> None:
        """Let a person sign in with a browser, which ends at `redirect_uri`, and store the login.

        Raises:
            ServerFailure: the person does not agree in time, or the server accepts no login.
            LoginsUnreadable: the login cannot be stored.
        """
        store = TokenStore(login.file, definition, login.principal)
        await asyncio.to_thread(store.check)
        async with await open_transport(private=definition.allow_private_networks) as checked:
            found = await sign_in(definition, checked, redirect_uri, authorize)
        await asyncio.to_thread(store.put, found)


async def _watch_tools(client: Client, on_tools_changed: Callable[[], None]) -> None:
    """Listen for changes of the tools in protocol 2026-07-28; earlier servers send them unasked."""
    tools = client.server_capabilities.tools
    is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
    if not is_modern or tools is None or not tools.list_changed:
        return
    ends = MCPError, RuntimeError, ValueError, anyio.ClosedResourceError, anyio.BrokenResourceError
    with contextlib.suppress(*ends):  # the list is asked for again after a while in any case
        async with client.listen(tools_list_changed=True) as changes:
            async for _ in changes:
                on_tools_changed()


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _describe(error: BaseException) -> str:
    """Return an error as the end of a sentence; text of a server without hidden characters."""
    match error:
        case MCPError() | ServerFailure() | OSError() | httpx2.HTTPError():
            return truncate_line(escape_hidden(str(error)), MAX_ERROR_CHARS) or "no reason is known"
        case ValueError():
            return "it sent something that does not follow the protocol"
        case _:
            return type(error).__name__
