"""The door as one ASGI application."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

import msgspec
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.responses import Response
from starlette.routing import Route, Router, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from internal.channels.web.channel import WebDoor
from internal.channels.web.endpoints import Call, Endpoint, StreamPlan
from internal.channels.web.errors import HttpRefusal
from internal.channels.web.event_streams import Streams
from internal.channels.web.guards import SAFE_METHODS, Exchange
from internal.channels.web.middleware import EXCHANGE, SENDER, Chain
from internal.channels.web.requests import decode_body, decode_query, read_body
from internal.channels.web.responses import Sender
from internal.channels.web.routes.table import ROUTES
from internal.channels.web.schemas import Given, Nothing

SMALLEST_COMPRESSED = 2048
_NOT_COMPRESSED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream")


def build_app(door: WebDoor, streams: Streams) -> ASGIApp:
    """Return the application. It must run on `Connection`s, beside `streams.keep_alive`."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ROUTES:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint

    routes = [Route(path, Resource(door, streams, known)) for path, known in by_path.items()]
    router = Router(routes, redirect_slashes=False, default=_nowhere)
    return Chain(door, _publicity(ROUTES), router)


def _publicity(endpoints: Iterable[Endpoint]) -> Callable[[str], bool]:
    """Return what says of a path whether it answers without a credential."""
    patterns = [compile_path(endpoint.path)[0] for endpoint in endpoints if endpoint.public]
    return lambda path: any(pattern.match(path) for pattern in patterns)


async def _nowhere(scope: Scope, _receive: Receive, _send: Send) -> None:
    raise HttpRefusal(404, "not_found", f"There is nothing at {scope['path'][:80]}.")


class Resource:
    """One path and what can be done there."""

    def __init__(self, door: WebDoor, streams: Streams, known: Mapping[str, Endpoint]) -> None:
        self._door = door
        self._streams = streams
        self._known = {**known, **({"HEAD": known["GET"]} if "GET" in known else {})}

    async def __call__(self, scope: Scope, receive: Receive, _send: Send) -> None:
        """Serve one request that passed the guards."""
        exchange: Exchange = scope[EXCHANGE]
        sender: Sender = scope[SENDER]
        endpoint = self._known.get(exchange.method)
        if endpoint is None:
            allowed = ", ".join(sorted(self._known))
            sentence = f"{exchange.method} is not possible here; what is: {allowed}."
            raise HttpRefusal(405, "method_not_allowed", sentence, {"allow": allowed})
        body = await self._body(endpoint, exchange, receive)
        async with asyncio.timeout(self._door.settings.request_seconds):
            query = decode_query(scope, endpoint.query)
            path: dict[str, str] = scope["path_params"]
            answer = await endpoint.handler(Call(self._door, exchange, path, query, body))
            if not isinstance(answer, StreamPlan):
                response = _response(endpoint, answer)
                compressed = GZipMiddleware(
                    response,
                    SMALLEST_COMPRESSED,
                    compresslevel=1,
                    exclude_content_types=_NOT_COMPRESSED,
                )
                await compressed(scope, receive, sender)
                return
        with self._streams.place(exchange.principal.id if exchange.principal else ""):
            await self._streams.serve(answer, scope, receive, sender)

    async def _body(self, endpoint: Endpoint, exchange: Exchange, receive: Receive) -> Given | None:
        if exchange.method in SAFE_METHODS:
            return None
        settings = self._door.settings
        raw = await read_body(exchange, receive, settings.max_body_bytes, settings.request_seconds)
        # where nothing is asked for, nothing need be sent
        return decode_body(raw or b"{}" if endpoint.body is Nothing else raw, endpoint.body)


def _response(endpoint: Endpoint, answer: msgspec.Struct | Response | None) -> Response:
    if isinstance(answer, Response):
        return answer
    if answer is None:
        return Response(status_code=endpoint.status)
    return Response(msgspec.json.encode(answer), endpoint.status, media_type="application/json")
