"""The delivery of the answer of a run to the client that asked for it."""

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    aclosing,
    contextmanager,
    suppress,
)
from functools import partial
from typing import Any, Self

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from internal.agent.app.idempotency import RepeatableRequest
from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.errors import Conflict, InvalidRequest, StoreError
from internal.agent.domain.tasks import Run
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import RETRY_HEADER, HttpError, to_http_error
from internal.channels.web.event_streams import TRANSPORT_KEY
from internal.channels.web.requests import ClientDisconnected, while_connected

STOP_HEADER = "x-larkspur-stop-on-disconnect"
"""Header of a client that wants its run to stop when it closes the connection: `true`."""

_RETRY_COUNT_HEADER = b"x-stainless-retry-count"
"""Header in which the client libraries of OpenAI and others say how often they asked before."""

SESSION_HEADER = "x-larkspur-session"
"""Header that names the session of a request and of its answer."""

USER_HEADERS = (b"x-openwebui-user-id", b"x-openwebui-chat-id")
"""Headers by which Open WebUI tells apart the people and conversations of one caller."""

_WORTH_REPEATING = frozenset({429, 503})


class Delivery:
    """The delivery of one answer. A client that leaves does not stop the run, unless it asks.

    Args:
        request: the request of the client.
        is_repeatable: the request is recognised by its content when it is sent again.

    Raises:
        InvalidRequest: a header is not valid.
    """

    def __init__(self, request: ApiRequest[Any, Any], *, is_repeatable: bool = False) -> None:
        self._request = request
        self._readers = request.services.readers
        self._stops = _stops_on_disconnect(request)
        self._exit = ExitStack()
        self.repeatable: RepeatableRequest | None = None
        """Identification of a repeated request; None if it has a key."""
        if is_repeatable:
            self.repeatable = self._repeatable()

    def __enter__(self) -> Self:
        if self.repeatable is not None:
            self._exit.enter_context(self._waiting(self.repeatable.fingerprint))
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    async def joined(self) -> Submitted | None:
        """Return the run that a repeated request joins, or None."""
        repeated = self._request.services.gateway.repeated_requests
        return await repeated.find(self.repeatable, self._request.principal)

    async def settled_run(self, submitted: Submitted, wait: Coroutine[Any, Any, Run]) -> Run:
        """Wait for a run, and return its state then.

        Args:
            submitted: the run.
            wait: returns the run once it is settled, or the client has waited long enough.

        Raises:
            ClientDisconnected: the client has left before the run settled.
        """
        try:
            with self._waiting(submitted.run_id):
                run = await while_connected(self._request.receive, wait)
        except ClientDisconnected:
            # at once, so that a repetition joins the run
            self._exit.close()
            await self._leave(submitted)
            raise
        if run.is_settled and not self._has_left():
            await self.mark_read(submitted)
        return run

    def stream(
        self, submitted: Submitted, chunks: AsyncGenerator[bytes], headers: Mapping[str, str]
    ) -> StreamingResponse:
        """Return a response with server-sent events, at whose end the client has read the answer.

        It is the client's wait from now on that the delivery counts.
        """
        self._exit.enter_context(self._waiting(submitted.run_id))
        return _StreamedAnswer(chunks, headers, partial(self._end, submitted), self._exit.pop_all())

    def _waiting(self, name: str) -> AbstractContextManager[None]:
        return self._readers.waiting(name, self._has_left)

    def _has_left(self) -> bool:
        # known before the application is told: a client may ask again at once
        connection = self._request.context.scope.get("state", {}).get(TRANSPORT_KEY)
        return connection is not None and connection.is_closed

    async def _end(self, submitted: Submitted, is_read: bool, /) -> None:
        if self._request.services.gateway.is_closed:  # a stream that this process cut
            return
        await (self.mark_read(submitted) if is_read else self._leave(submitted))

    async def mark_read(self, submitted: Submitted) -> None:
        """Record that the client gets the answer of a run, even if the run continues."""
        request = self._request
        repeated = request.services.gateway.repeated_requests
        # without it a repetition gets this answer once more
        with suppress(StoreError):
            await repeated.mark_read(self.repeatable, request.principal, submitted.run_id)

    async def _leave(self, submitted: Submitted) -> None:
        request, gateway = self._request, self._request.services.gateway
        has_others = self._readers.count(submitted.run_id) > 0
        if not self._stops or has_others or gateway.is_closed:
            return
        with suppress(Conflict):  # it has ended
            await gateway.stop(submitted.task_id, request.principal, request.channel)

    def _repeatable(self) -> RepeatableRequest:
        context, fingerprint = self._request.context, _fingerprint(self._request)
        counts = context.headers(_RETRY_COUNT_HEADER)
        is_repeat = any(count.isdigit() and int(count) > 0 for count in counts)
        return RepeatableRequest(
            fingerprint,
            is_repeat=is_repeat,
            has_reader=self._readers.count(fingerprint) > 0,
            joins_stopped=is_repeat and not self._stops,
        )


class _StreamedAnswer(StreamingResponse):
    def __init__(
        self,
        chunks: AsyncGenerator[bytes],
        headers: Mapping[str, str],
        on_end: Callable[[bool], Awaitable[None]],
        count: ExitStack,
    ) -> None:
        self._on_end, self._count = on_end, count
        self._is_read = False
        super().__init__(self._noticed(chunks), 200, headers, "text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._count:
            await super().__call__(scope, receive, send)
        await self._on_end(self._is_read)  # not after an error: the client did not leave

    async def _noticed(self, chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
        self._is_read = True


@contextmanager
def errors_of_created_run(headers: Mapping[str, str] | None = None) -> Generator[None]:
    """Mark errors of a block so that client libraries do not repeat a request with a created run.

    Errors worth repeating are not marked, since a repeated request joins the run.

    Args:
        headers: further headers of the errors.
    """
    try:
        yield
    except ClientDisconnected:
        raise
    except Exception as error:
        known = to_http_error(error)
        retry = {} if known.status in _WORTH_REPEATING else {RETRY_HEADER: "false"}
        given = {**known.headers, **retry, **(headers or {})}
        raise HttpError(
            *(known.status, known.code, str(known), given),
            reason_code=known.reason_code,
            **known.params,
        ) from error


def _stops_on_disconnect(request: ApiRequest[Any, Any]) -> bool:
    values = request.context.headers(STOP_HEADER.encode())
    if any(value not in {b"true", b"false"} for value in values):
        raise InvalidRequest(f"The header {STOP_HEADER} is true or false.")
    return b"true" in values


def _fingerprint(request: ApiRequest[Any, Any]) -> str:
    context = request.context
    parts = [context.scope["path"].encode()]
    for name in (SESSION_HEADER.encode(), *USER_HEADERS):
        parts += [name, *context.headers(name)]
    said = hashlib.sha256(msgspec.json.encode(parts))
    said.update(request.content)
    return said.hexdigest()
