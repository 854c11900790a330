"""Middleware: the checks that every request passes, and the headers that every response gets.

Order: request ID, Host, Origin, CORS preflight, authentication, rate limit, route. Every error
becomes a JSON response here.
"""

import asyncio
import contextlib
import hmac
import logging
import math
import secrets
from collections.abc import Callable
from functools import partial

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.web.auth import COOKIE_CHARACTERS, LoginSecrets, token_id
from internal.channels.web.errors import (
    RETRY_HEADER,
    HttpError,
    error_response,
    to_http_error,
)
from internal.channels.web.public_address import (
    cookie_name,
    is_own_host,
    origin_of,
    own_origins,
    page_origin,
)
from internal.channels.web.requests import SAFE_METHODS, ClientDisconnected, RequestContext
from internal.channels.web.services import WebServices
from internal.settings.server import ServerSettings

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-dns-prefetch-control", b"off"),  # the hosts of links are not resolved before a click
)
"""Headers of every response. Other origins can embed none; requests with CORS are not affected."""
CONTEXT_KEY = "larkspur.context"
"""Key in the ASGI scope under which a route finds its `RequestContext`."""
SENDER_KEY = "larkspur.sender"
"""Key in the ASGI scope under which a route finds its `ResponseSender`."""
NOTE_LOGIN_KEY = "larkspur.note_login"
"""Key in `scope["state"]` of a function that is told whether a request has credentials."""
LOGIN_KEY_HEADER = b"x-larkspur-login-key"
"""Header in which the page sends the login key; other origins cannot send it."""
EXPOSED_HEADERS = (
    "content-disposition",
    "larkspur-pages",
    "mcp-protocol-version",
    "mcp-session-id",
    "retry-after",
    "x-larkspur-session",
    "x-request-id",
    "x-should-retry",
)
"""Response headers that pages of allowed origins can read."""
LINGER_TIMEOUT_SECONDS = 2.0
"""How long a refusal waits for the rest of the request's body."""
MAX_BYTES_BEFORE_REFUSAL = 65_536
"""The largest body that is read, and discarded, before a refusal is sent."""
CONTENT_TOO_LARGE = 413

_NO_STORE = (b"cache-control", b"no-store")

_log = logging.getLogger("larkspur.web")

RequestCheck = Callable[[RequestContext], None]
"""Raises `HttpError` to reject a request; may set its principal."""


class RequestMiddleware:
    """The outermost ASGI application: applies the checks, then calls the router."""

    def __init__(
        self, services: WebServices, app: ASGIApp, *, is_public: Callable[[str], bool]
    ) -> None:
        """Args: is_public returns whether a path can be requested without authentication."""
        settings = services.settings
        self._app = app
        self._is_public = is_public
        self._max_body_bytes = settings.max_body_bytes
        self._monotonic = services.clock.monotonic
        self._cors = _cors(app, settings)
        self._checks_before_preflight: tuple[RequestCheck, ...] = (
            HostCheck(settings),
            OriginCheck(settings),
        )
        self._checks: tuple[RequestCheck, ...] = (
            Authentication(services),
            RateLimiter(settings, services.clock.monotonic),
            require_principal,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        context = RequestContext(scope, secrets.token_hex(8), self._is_public(scope["path"]))
        body = RequestBody(context, receive)
        if self._cors is not None and context.headers(b"origin"):
            send = partial(self._cors.send, send=send, request_headers=Headers(scope=scope))
        sender = ResponseSender(send, context.request_id)
        scope[CONTEXT_KEY], scope[SENDER_KEY] = context, sender
        started = self._monotonic()
        try:
            await self._serve(context, body, sender)
        except ClientDisconnected:
            pass
        except Exception as error:  # the outer loop of the channel: every error gets a response
            http_error = to_http_error(error)
            if isinstance(error, TimeoutError) and context.method not in SAFE_METHODS:
                http_error.headers = {RETRY_HEADER: "false"}  # it may have been carried out
            if http_error.code == "internal":
                _log.exception("request failed", extra={"request_id": context.request_id})
            if sender.status:
                raise  # the response has started: the server closes the connection
            await self._send_error(http_error, context, body, sender)
        finally:
            self._log_request(context, sender.status, started)

    async def _serve(
        self, context: RequestContext, receive: Receive, sender: "ResponseSender"
    ) -> None:
        for check in self._checks_before_preflight:
            check(context)
        if context.is_preflight:
            response = self._preflight(context)
            await response(context.scope, receive, sender)
            return
        for check in self._checks:
            check(context)
        await self._app(context.scope, receive, sender)

    def _preflight(self, context: RequestContext) -> Response:
        """Return the preflight response for a page of an allowed origin.

        Raises:
            HttpError: the origin is not allowed, or the page asks for the login of this page.
        """
        asked = b",".join(context.headers(b"access-control-request-headers")).lower()
        if LOGIN_KEY_HEADER in {name.strip() for name in asked.split(b",")}:
            raise HttpError(403, "foreign_origin", "Pages of other origins cannot use a login.")
        if self._cors is not None:
            response = self._cors.preflight_response(Headers(scope=context.scope))
            if response.status_code < 400:  # noqa: PLR2004 - else not an allowed origin
                return response
        text = "Pages of this origin may send no requests: it is not in server.allowed_origins."
        raise HttpError(403, "foreign_origin", text)

    async def _send_error(
        self,
        error: HttpError,
        context: RequestContext,
        body: "RequestBody",
        sender: "ResponseSender",
    ) -> None:
        if "connection" not in error.headers:
            await body.discard_small()
        response = error_response(error, context.request_id, context.scope["path"])
        head = {"type": "http.response.start", "status": error.status}
        await sender({**head, "headers": response.raw_headers})
        text = bytes(response.body)
        await sender({"type": "http.response.body", "body": text, "more_body": True})
        if error.status == CONTENT_TOO_LARGE:
            await body.discard(self._max_body_bytes)
        await sender({"type": "http.response.body", "body": b"", "more_body": False})

    def _log_request(self, context: RequestContext, status: int, started: float) -> None:
        if _log.isEnabledFor(logging.DEBUG):
            fields = {
                "request_id": context.request_id,
                "method": context.method,
                "path": context.scope["path"],
                "status": status,
                "ms": round((self._monotonic() - started) * 1000),
            }
            _log.debug("request", extra=fields)


class RequestBody:
    """Receives a request, and discards the unread part of its body.

    A client that is still sending its body when a refusal arrives may miss the refusal: because
    the server closes the connection, or because Caddy drops the response in favour of the request.
    """

    def __init__(self, context: RequestContext, receive: Receive) -> None:
        size = _announced_bytes(context)
        self._receive = receive
        self._is_read = size == 0
        # a client that expects 100 sends the body only when it is asked for it
        self._is_small = size <= MAX_BYTES_BEFORE_REFUSAL and not context.headers(b"expect")

    async def __call__(self) -> Message:
        """Receive an ASGI message."""
        message = await self._receive()
        self._is_read = self._is_read or not message.get("more_body", False)
        return message

    async def discard_small(self) -> None:
        """Read a small body briefly, unless it was read."""
        if self._is_small:
            await self.discard(MAX_BYTES_BEFORE_REFUSAL)

    async def discard(self, max_bytes: int) -> None:
        """Read on briefly, up to about `max_bytes`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_TIMEOUT_SECONDS):
                while max_bytes > 0 and not self._is_read:
                    max_bytes -= len((await self()).get("body", b""))


def _announced_bytes(context: RequestContext) -> int:
    """Return the size of a body; 1 if its end is not known, or its size is not valid."""
    if context.headers(b"transfer-encoding"):
        return 1
    length = next(iter(context.headers(b"content-length")), b"0")
    return int(length) if length.isdigit() else 1


class ResponseSender:
    """Sends a response with the common headers.

    Attributes:
        send: The `send` of the server, for the messages after the response head.
        status: The status that was sent; 0 before the response has started.
    """

    def __init__(self, send: Send, request_id: str) -> None:
        self.send = send
        self.status = 0
        self._headers = [*SECURITY_HEADERS, (b"x-request-id", request_id.encode()), _NO_STORE]

    async def __call__(self, message: Message) -> None:
        """Send an ASGI message. A header that the response sets itself is not replaced."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = message["headers"]
            names = {name for name, _ in own}
            common = [header for header in self._headers if header[0] not in names]
            message["headers"] = [*own, *common]
        await self.send(message)


class HostCheck:
    """Rejects an unknown Host header, which protects against DNS rebinding."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings

    def __call__(self, context: RequestContext) -> None:
        """Require exactly one Host header that names this server."""
        hosts = context.headers(b"host")
        if len(hosts) != 1 or not is_own_host(hosts[0].decode("latin-1"), self._settings):
            raise HttpError(
                421,
                "foreign_host",
                "Unknown host name. Use 127.0.0.1, localhost or the address in server.public_url.",
            )


class OriginCheck:
    """Rejects changes requested by pages of other origins. Programs send no Origin and pass."""

    def __init__(self, settings: ServerSettings) -> None:
        self._allowed = frozenset(origin_of(origin) for origin in settings.allowed_origins)
        self._own = own_origins(settings)

    def __call__(self, context: RequestContext) -> None:
        """Check Origin and Sec-Fetch-Site unless the method is safe."""
        if context.method in SAFE_METHODS:
            return
        origins = [value.decode("latin-1").lower() for value in context.headers(b"origin")]
        is_allowed = len(origins) == 1 and origins[0] in self._allowed
        is_own = not origins or (len(origins) == 1 and origins[0] in self._own)
        sites = set(context.headers(b"sec-fetch-site"))
        if is_allowed or (is_own and sites <= {b"same-origin", b"none"}):
            return
        raise HttpError(403, "foreign_origin", "Pages of other origins cannot change anything.")


class Authentication:
    """Authenticates the local owner: by the local token, or by the secrets of a browser login."""

    def __init__(self, services: WebServices) -> None:
        self._services = services

    def __call__(self, context: RequestContext) -> None:
        """Set the principal of the request, or the rejection of its credentials."""
        try:
            token = self._services.local_token()
        except HttpError as error:
            context.rejection = error
            return
        if _has_token(context, token) or self._has_login(context, token):
            context.principal, context.token_id = LOCAL_OWNER, token_id(token)
        note_login = context.scope.get("state", {}).get(NOTE_LOGIN_KEY)
        if note_login is not None:  # not a call in memory
            note_login(context.principal is not None)

    def _has_login(self, context: RequestContext, token: str) -> bool:
        """Check the cookies and the login key, which must be sent exactly once.

        Any server of the host, and with https any server of the domain, can add cookies of this
        name: only that of the key counts. Unsafe methods also need an Origin header, which every
        browser sends.
        """
        header = b";".join(context.headers(b"cookie")).decode("latin-1")
        keys = [value.decode("latin-1") for value in context.headers(LOGIN_KEY_HEADER)]
        if not header and not keys:
            return False
        origin = page_origin(context, self._services.settings)
        prefix = f"{cookie_name(origin)}="
        cookies = [cookie.strip() for cookie in header.split(";")]
        own = [cookie.removeprefix(prefix) for cookie in cookies if cookie.startswith(prefix)]
        if not own and not keys:
            return False
        context.rejection = _unauthorized(
            "This browser is not logged in at this address. Open a new link of `larkspur serve`."
        )
        if len(keys) != 1:
            return False
        if not (context.method in SAFE_METHODS or context.headers(b"origin")):
            return False
        found = (
            self._services.logins.find(LoginSecrets(cookie, keys[0]), token, origin)
            for cookie in own
            if len(cookie) == COOKIE_CHARACTERS
        )
        context.login_id = next(filter(None, found), "")
        return bool(context.login_id)


def _has_token(context: RequestContext, token: str) -> bool:
    """Return True if there is exactly one Authorization header and it contains the token."""
    values = context.headers(b"authorization")
    if len(values) != 1:
        return False
    scheme, _, sent = values[0].partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(sent.strip(), token.encode())


class RateLimiter:
    """A token bucket per principal.

    Requests without a login have none: to reject them costs as much as to answer them, and behind a
    proxy one client would take the requests of all others. Neither have the page's files and
    `/health`.
    """

    def __init__(self, settings: ServerSettings, monotonic: Callable[[], float]) -> None:
        self._rate = settings.rate_limit_per_minute / 60
        self._burst = float(settings.rate_limit_burst)
        self._monotonic = monotonic
        self._buckets: dict[str, tuple[float, float]] = {}

    def __call__(self, context: RequestContext) -> None:
        """Take one request from the bucket."""
        if context.principal is None or context.is_public:
            return
        key, now = context.principal.id, self._monotonic()
        left, updated = self._buckets.get(key, (self._burst, now))
        left = min(self._burst, left + (now - updated) * self._rate)
        if left < 1:
            self._buckets[key] = (left, now)
            wait = max(1, math.ceil((1 - left) / self._rate))
            raise HttpError(
                429,
                "too_many_requests",
                f"Too many requests. Try again in {wait} s.",
                {"retry-after": str(wait)},
                reason_code="too_many_requests",
                seconds=wait,
            )
        self._buckets[key] = (left - 1, now)


def require_principal(context: RequestContext) -> None:
    """Reject an unauthenticated request unless the route is public."""
    if context.principal is None and not context.is_public:
        raise context.rejection or _unauthorized(
            "Missing or invalid credentials. Send the header Authorization: Bearer with the content"
            " of the file token in the Larkspur home directory."
        )


def _unauthorized(message: str) -> HttpError:
    return HttpError(401, "unauthorized", message, {"www-authenticate": "Bearer"})


def _cors(app: ASGIApp, settings: ServerSettings) -> CORSMiddleware | None:
    """Return the CORS policy: exact origins and fixed methods; None without origins.

    Pages of other origins authenticate with the token. They may send every header but the login
    key: each client library has headers of its own.
    """
    if not settings.allowed_origins:
        return None
    return CORSMiddleware(
        app,
        allow_origins=[origin_of(origin) for origin in settings.allowed_origins],
        allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
        allow_headers=("*",),
        expose_headers=EXPOSED_HEADERS,
        max_age=600,
    )
