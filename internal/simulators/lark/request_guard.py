"""Middleware that checks the Host header and simulates an outage."""

from collections.abc import Iterable
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from internal.simulators.lark.server import CONNECTION_KEY
from internal.simulators.lark.services import LarkServices

POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; object-src 'none'"
)
"""Content security policy of the page: no inline scripts, foreign resources or frames."""
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"x-larkspur": b"lark simulator",
}
LARK = ("/open-apis/", "/callback/", "/ws/")


class RequestGuard:
    """ASGI middleware around all routes. `hosts` are the accepted Host headers."""

    def __init__(self, app: ASGIApp, lark: LarkServices, hosts: Iterable[str]) -> None:
        self._app = app
        self._lark = lark
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, reject a foreign Host, or drop the connection during an outage."""
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            refusal = PlainTextResponse("The simulator does not serve this host name.\n", 421)
            if scope["type"] == "websocket":
                scope["state"][CONNECTION_KEY].abort()
            else:
                await refusal(scope, receive, send)
            return
        if self._lark.down and scope["path"].startswith(LARK):
            scope["state"][CONNECTION_KEY].abort()
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", ())}
                more = [item for item in HEADERS.items() if item[0] not in given]
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        with suppress(ClientDisconnect):  # the client has left
            await self._app(scope, receive, sent)
