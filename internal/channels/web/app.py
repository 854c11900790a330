"""The ASGI application."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence

import msgspec
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from internal.channels.web.endpoints import ApiRequest, Endpoint, StreamRequest
from internal.channels.web.errors import HttpError, is_model_api
from internal.channels.web.event_streams import EventStreams
from internal.channels.web.middleware import (
    CONTEXT_KEY,
    SENDER_KEY,
    RequestMiddleware,
    ResponseSender,
)
from internal.channels.web.public_address import PublicPath, page_address
from internal.channels.web.requests import (
    SAFE_METHODS,
    RequestContext,
    decode_body,
    decode_query,
    read_body,
    stream_body,
)
from internal.channels.web.routes.table import ROUTES
from internal.channels.web.schemas import RequestModel
from internal.channels.web.services import McpEndpoint, WebServices

MCP_PATH = "/mcp"
MAX_MCP_BODY_BYTES = 4_194_304
"""More than the longest instruction of a task takes as JSON."""
MAX_MCP_WAIT_SECONDS = 60
MIN_COMPRESSED_BYTES = 2048
_NOT_COMPRESSED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream")


def build_app(
    services: WebServices,
    streams: EventStreams | None = None,
    routes: Sequence[Endpoint] = ROUTES,
) -> ASGIApp:
    """Return the ASGI application with these endpoints.

    It needs no server: it can be called in memory with a scope of type `http` whose headers
    carry a valid Host and `Authorization: Bearer` with `services.token`. Heartbeats are sent and
    old streams are closed only while the caller runs `streams.keep_alive()`.
    """
    open_streams = streams or EventStreams(services)
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in routes:
        by_path.setdefault(endpoint.route, {})[endpoint.method] = endpoint

    resources = [
        Route(path, Resource(services, open_streams, endpoints))
        for path, endpoints in by_path.items()
    ]
    if services.mcp is not None:
        resources.append(Route(MCP_PATH, McpResource(services, services.mcp)))
    router = Router(resources, redirect_slashes=False, default=UnknownPath(routes))
    app = RequestMiddleware(services, router, is_public=_public_path_predicate(routes))
    return PublicPath(app, services.settings.path)


def _public_path_predicate(endpoints: Iterable[Endpoint]) -> Callable[[str], bool]:
    patterns = [compile_path(endpoint.path)[0] for endpoint in endpoints if endpoint.public]
    return lambda path: any(pattern.match(path) for pattern in patterns)


class UnknownPath:
    """A path without endpoints. Below `/v1`, the error names the available OpenAI endpoints."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._of_openai = [
            f"{endpoint.method} {endpoint.path}"
            for endpoint in endpoints
            if is_model_api(endpoint.path)
        ]

    async def __call__(self, scope: Scope, _receive: Receive, _send: Send) -> None:
        """Refuse a request that passed the middleware."""
        path: str = scope["path"]
        message = f"The path {path[:80]} does not exist."
        if is_model_api(path) and self._of_openai:
            message += f" Of OpenAI's API there are: {', '.join(self._of_openai)}."
        raise HttpError(404, "not_found", message, reason_code="no_path", path=path[:80])


class Resource:
    """A path with its endpoints by method."""

    def __init__(
        self, services: WebServices, streams: EventStreams, endpoints: Mapping[str, Endpoint]
    ) -> None:
        self._services = services
        self._streams = streams
        head = {"HEAD": endpoints["GET"]} if "GET" in endpoints else {}
        self._endpoints = {**endpoints, **head}

    async def __call__(self, scope: Scope, receive: Receive, _send: Send) -> None:
        """Serve a request that passed the middleware."""
        context: RequestContext = scope[CONTEXT_KEY]
        sender: ResponseSender = scope[SENDER_KEY]
        endpoint = self._endpoints.get(context.method)
        if endpoint is None:
            allowed = ", ".join(sorted(self._endpoints))
            message = f"Method {context.method} is not allowed for this path. Allowed: {allowed}."
            raise HttpError(405, "method_not_allowed", message, {"allow": allowed})
        content, body = await self._body(endpoint, context, receive)
        seconds: float | None = None
        if not endpoint.streams_body:
            seconds = self._services.timeouts.request_seconds + endpoint.max_wait_seconds
        async with asyncio.timeout(seconds):
            query = decode_query(scope, endpoint.query)
            path: dict[str, str] = scope["path_params"]
            request = ApiRequest(
                self._services, context, path, query, body, content=content, receive=receive
            )
            result = await endpoint.handler(request)
            if not isinstance(result, StreamRequest | StreamingResponse):
                response = _response(endpoint, result)
                compressed = GZipMiddleware(
                    response,
                    MIN_COMPRESSED_BYTES,
                    compresslevel=1,
                    exclude_content_types=_NOT_COMPRESSED,
                )
                await compressed(scope, receive, sender)
                return
        if isinstance(result, StreamingResponse):  # as long as the client goes on reading
            await result(scope, receive, sender)
            return
        with self._streams.reserve(context.principal.id if context.principal else ""):
            await self._streams.serve(result, scope, receive, sender)

    async def _body(
        self, endpoint: Endpoint, context: RequestContext, receive: Receive
    ) -> tuple[bytes, RequestModel | AsyncGenerator[bytes] | None]:
        """Return the body as it was sent, unless it is streamed, and as the handler receives it."""
        if context.method in SAFE_METHODS:
            return b"", None
        if endpoint.streams_body:
            return b"", stream_body(
                context,
                receive,
                max_bytes=endpoint.max_body_bytes,
                timeout_seconds=self._services.timeouts.request_seconds,
            )
        timeouts = self._services.timeouts
        body = await read_body(
            context,
            receive,
            max_bytes=min(endpoint.max_body_bytes, self._services.settings.max_body_bytes),
            timeout_seconds=(
                timeouts.head_seconds if context.principal is None else timeouts.request_seconds
            ),
        )
        if endpoint.may_omit_body:
            body = body or b"{}"
        return body, decode_body(body, endpoint.body)


class McpResource:
    """The path of the MCP server, which has neither sessions nor a stream to open with GET."""

    def __init__(self, services: WebServices, mcp: McpEndpoint) -> None:
        self._services = services
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, _send: Send) -> None:
        """Serve a request that passed the middleware."""
        context: RequestContext = scope[CONTEXT_KEY]
        if context.method != "POST":
            message = f"Method {context.method} is not allowed for this path. Allowed: POST."
            raise HttpError(405, "method_not_allowed", message, {"allow": "POST"})
        settings, seconds = self._services.settings, self._services.timeouts.request_seconds
        body = await read_body(
            context,
            receive,
            max_bytes=min(MAX_MCP_BODY_BYTES, settings.max_body_bytes),
            timeout_seconds=seconds,
        )
        async with asyncio.timeout(seconds + MAX_MCP_WAIT_SECONDS):
            is_served = await self._mcp.serve(
                scope,
                _replay(body, receive),
                scope[SENDER_KEY],
                principal=context.require_principal(),
                origin=page_address(context, settings),
            )
        if not is_served:
            raise HttpError(
                501,
                "not_installed",
                "Install Larkspur with its extra for MCP: larkspur-gateway[mcp].",
            )


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns the body once more, and then waits for the disconnect."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _response(endpoint: Endpoint, result: msgspec.Struct | Response | None) -> Response:
    if isinstance(result, Response):
        return result
    if result is None:
        return Response(status_code=endpoint.status)
    return Response(msgspec.json.encode(result), endpoint.status, media_type="application/json")
