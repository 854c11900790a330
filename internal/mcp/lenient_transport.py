"""A transport that corrects the answers of servers before the SDK reads them."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from mcp.client._transport import TransportStreams
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from internal.agent.domain.text import escape_hidden, truncate_line
from internal.mcp.answers import corrected_result, without_nulls
from internal.mcp.message_parser import DamagedMessage

MAX_SHOWN_CHARS = 200

_Received = SessionMessage | Exception
_Stream = TypeVar("_Stream", bound=ReadStream[Any] | WriteStream[Any])


class UnreadableMessage(Exception):
    """A server sent a message that cannot be read. Ends the request that it answers."""

    def __init__(self, damaged: DamagedMessage) -> None:
        super().__init__("it sent a message that cannot be read")
        self.damaged = damaged


def received_items(
    parsed: list[dict[str, Any]] | DamagedMessage | None,
) -> Iterator[SessionMessage | Exception]:
    """Yield the messages that the SDK should read."""
    if parsed is None:
        return
    if isinstance(parsed, DamagedMessage):
        yield UnreadableMessage(parsed)
        return
    for each in parsed:
        try:
            yield SessionMessage(jsonrpc_message_adapter.validate_python(each, by_name=False))
        except ValueError:
            number = each["id"] if isinstance(each.get("id"), int | str) else None
            yield UnreadableMessage(DamagedMessage(number, json.dumps(each)))


class OpenRequests:
    """The requests without an answer, with their methods."""

    def __init__(self) -> None:
        self._methods: dict[str, tuple[int | str, str]] = {}

    def note(self, sent: SessionMessage) -> None:
        """Remember a request that is sent, and forget one that is cancelled."""
        match sent.message:
            case JSONRPCRequest(id=number, method=method):
                self._methods[str(number)] = number, method
            case JSONRPCNotification(method="notifications/cancelled", params=params):
                self._methods.pop(str((params or {}).get("requestId")), None)
            case _:
                pass

    def correct(self, received: _Received) -> list[_Received]:
        """Return the items that the SDK reads in place of one that was received."""
        if isinstance(received, UnreadableMessage):
            shown = truncate_line(escape_hidden(received.damaged.text), MAX_SHOWN_CHARS)
            said = ErrorData(code=PARSE_ERROR, message=f"a message that cannot be read: {shown}")
            return self._failed(received.damaged.id, said)
        if isinstance(received, Exception):
            return [received]
        message = received.message
        match message:
            case JSONRPCResponse():
                _, method = self._methods.pop(str(message.id), (0, ""))
                message.result = corrected_result(method, message.result)
            case JSONRPCError(id=None):
                return self._failed(None, message.error)
            case JSONRPCError():
                self._methods.pop(str(message.id), None)
            case JSONRPCRequest() | JSONRPCNotification() if message.params:
                message.params = without_nulls(message.params)
            case _:
                pass
        return [received]

    def _failed(self, number: int | str | None, error: ErrorData) -> list[_Received]:
        """Return the error as the answer to a request, or to all if it names none."""
        if number is not None:
            numbers = [self._methods.pop(str(number), (number, ""))[0]]
        else:
            numbers = [each for each, _ in self._methods.values()]
            self._methods.clear()
        return [
            SessionMessage(JSONRPCError(jsonrpc="2.0", id=each, error=error)) for each in numbers
        ]


class LenientTransport(AbstractAsyncContextManager[TransportStreams]):
    """Another transport, whose messages are corrected in the way."""

    def __init__(self, inner: AbstractAsyncContextManager[TransportStreams]) -> None:
        self._inner = inner

    async def __aenter__(self) -> TransportStreams:
        received, sent = await self._inner.__aenter__()
        requests = OpenRequests()
        return _CorrectedStream(received, requests), _NotedStream(sent, requests)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _Wrapper(Generic[_Stream]):
    """A stream around another one, with which it is opened and closed."""

    def __init__(self, inner: _Stream, requests: OpenRequests) -> None:
        self._inner, self._requests = inner, requests

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _CorrectedStream(_Wrapper[ReadStream[_Received]]):
    def __init__(self, inner: ReadStream[_Received], requests: OpenRequests) -> None:
        super().__init__(inner, requests)
        self._waiting: deque[_Received] = deque()

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> _Received:
        while not self._waiting:
            self._waiting.extend(self._requests.correct(await self._inner.receive()))
        return self._waiting.popleft()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _Received:
        while not self._waiting:
            self._waiting.extend(self._requests.correct(await anext(self._inner)))
        return self._waiting.popleft()


class _NotedStream(_Wrapper[WriteStream[SessionMessage]]):
    async def send(self, item: SessionMessage, /) -> None:
        self._requests.note(item)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()
