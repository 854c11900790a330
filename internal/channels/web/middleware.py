"""The chain: what every request goes through, whatever it asks for and however it ends.

Request id, Host, Origin, who asks, rate, credential; then the route with its body and its time.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from internal.channels.web.channel import WebDoor
from internal.channels.web.cors import Cors
from internal.channels.web.errors import HttpRefusal, as_refusal, refusal_response
from internal.channels.web.guards import (
    CookieGuard,
    Exchange,
    Guard,
    HostGuard,
    OriginGuard,
    RateGuard,
    TokenGuard,
    require_principal,
)
from internal.channels.web.requests import Gone
from internal.channels.web.responses import Sender

EXCHANGE = "larkspur.exchange"
"""The scope's key under which a route finds its `Exchange`; `SENDER` the way back."""
SENDER = "larkspur.sender"
LINGER_SECONDS = 2.0
TOO_LARGE = 413

_log = logging.getLogger("larkspur.web")


class Chain:
    """The outermost application. Every error leaves it as JSON in one shape."""

    def __init__(self, door: WebDoor, public: Callable[[str], bool], app: ASGIApp) -> None:
        """Args: public, which says whether a path answers without a credential."""
        settings = door.settings
        self._app = app
        self._public = public
        self._most = settings.max_body_bytes
        self._monotonic = door.clock.monotonic
        self._cors = Cors(settings)
        self._before_preflight: tuple[Guard, ...] = (HostGuard(settings), OriginGuard(settings))
        self._guards: tuple[Guard, ...] = (
            TokenGuard(door.token),
            CookieGuard(door.logins, settings),
            RateGuard(settings, door.clock.monotonic),
            require_principal,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        exchange = Exchange(scope, secrets.token_hex(8), self._public(scope["path"]))
        sender = Sender(send, exchange.request_id, self._cors.headers(exchange))
        scope[EXCHANGE], scope[SENDER] = exchange, sender
        began = self._monotonic()
        try:
            await self._serve(exchange, receive, sender)
        except Gone:
            pass
        except Exception as error:  # the channel's outer loop: whatever it is, it is answered
            refusal = as_refusal(error)
            if refusal.code == "internal":
                _log.exception("request failed", extra={"request_id": exchange.request_id})
            if sender.status:
                raise  # too late for an answer: the server cuts the connection
            await self._refuse(refusal, exchange, receive, sender)
        finally:
            self._note(exchange, sender.status, began)

    async def _serve(self, exchange: Exchange, receive: Receive, sender: Sender) -> None:
        for guard in self._before_preflight:
            guard(exchange)
        if preflight := self._cors.preflight(exchange):
            await preflight(exchange.scope, receive, sender)
            return
        for guard in self._guards:
            guard(exchange)
        await self._app(exchange.scope, receive, sender)

    async def _refuse(
        self, refusal: HttpRefusal, exchange: Exchange, receive: Receive, sender: Sender
    ) -> None:
        response = refusal_response(refusal, exchange.request_id)
        head = {"type": "http.response.start", "status": refusal.status}
        await sender({**head, "headers": response.raw_headers})
        body = {"type": "http.response.body", "body": bytes(response.body), "more_body": True}
        await sender(body)
        if refusal.status == TOO_LARGE:
            await self._linger(receive)
        await sender({"type": "http.response.body", "body": b"", "more_body": False})

    async def _linger(self, receive: Receive) -> None:
        """Read on for a while: a client whose bytes meet a closed socket never sees the answer."""
        left = self._most
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return

    def _note(self, exchange: Exchange, status: int, began: float) -> None:
        if _log.isEnabledFor(logging.DEBUG):
            fields = {
                "request_id": exchange.request_id,
                "method": exchange.method,
                "path": exchange.scope["path"],
                "status": status,
                "ms": round((self._monotonic() - began) * 1000),
            }
            _log.debug("request", extra=fields)
