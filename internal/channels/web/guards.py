"""Guards: what every request passes before it reaches a route. Each raises or lets it go on."""

import hmac
import math
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.types import Scope

from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.web.auth import Logins
from internal.channels.web.channel import WebSettings
from internal.channels.web.errors import HttpRefusal

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_BUCKETS = 4096


@dataclass(slots=True)
class Exchange:
    """A request on its way through the guards. `principal` is whoever its credential proves.

    `login` names the login when that credential is a cookie.
    """

    scope: Scope
    request_id: str
    public: bool
    principal: Principal | None = None
    login: str = ""

    @property
    def method(self) -> str:
        """The method in capitals."""
        return str(self.scope["method"])

    def headers(self, name: bytes) -> list[bytes]:
        """Return every value of a header; a client may send none, one or several."""
        return [value for key, value in self.scope["headers"] if key == name]


Guard = Callable[[Exchange], None]


def _authority(url: str) -> str:
    return urlsplit(url).netloc.lower()


def origin_of(url: str) -> str:
    """Return the origin of an address, as a browser writes it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def own_hosts(settings: WebSettings) -> frozenset[str]:
    """Return the Host headers that name this door; any other one is a rebound name."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    names = {"127.0.0.1", "localhost", "[::1]", host.lower()}
    hosts = {f"{name}:{settings.port}" for name in names}
    if settings.port == 80:  # noqa: PLR2004 - the port that http does not write
        hosts |= names
    if settings.public_url:
        hosts.add(_authority(settings.public_url))
    return frozenset(hosts)


def own_origins(settings: WebSettings) -> frozenset[str]:
    """Return the origins whose pages are ours."""
    origins = {f"http://{host}" for host in own_hosts(settings)}
    if settings.public_url:
        origins.discard(f"http://{_authority(settings.public_url)}")
        origins.add(origin_of(settings.public_url))
    return frozenset(origins)


class HostGuard:
    """Refuses a Host that is not ours: a page on a rebound name must not reach this door."""

    def __init__(self, settings: WebSettings) -> None:
        self._hosts = own_hosts(settings)

    def __call__(self, exchange: Exchange) -> None:
        """Check the one Host header."""
        hosts = exchange.headers(b"host")
        if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in self._hosts:
            raise HttpRefusal(
                421,
                "foreign_host",
                "This address is not one of ours: use 127.0.0.1, localhost or the public address.",
            )


class OriginGuard:
    """Refuses what a foreign page asks to change. Programs send no Origin and pass."""

    def __init__(self, settings: WebSettings) -> None:
        self._allowed = frozenset(origin_of(origin) for origin in settings.allowed_origins)
        self._own = own_origins(settings)

    def __call__(self, exchange: Exchange) -> None:
        """Check Origin and Sec-Fetch-Site of a request that changes something."""
        if exchange.method in SAFE_METHODS:
            return
        origins = [value.decode("latin-1").lower() for value in exchange.headers(b"origin")]
        listed = len(origins) == 1 and origins[0] in self._allowed
        own = not origins or (len(origins) == 1 and origins[0] in self._own)
        sites = set(exchange.headers(b"sec-fetch-site"))
        if listed or (own and sites <= {b"same-origin", b"none"}):
            return
        raise HttpRefusal(403, "foreign_origin", "Pages of other origins may not change anything.")


class TokenGuard:
    """Finds out who asks: the holder of the local token is the owner."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def __call__(self, exchange: Exchange) -> None:
        """Set the principal when there is one Authorization header and it holds the token."""
        values = exchange.headers(b"authorization")
        if len(values) != 1:
            return
        scheme, _, given = values[0].partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._token):
            exchange.principal = LOCAL_OWNER


def cookie_name(settings: WebSettings) -> str:
    """Return the cookie's name: a browser's cookies are shared by all ports of a host."""
    return f"larkspur-{settings.port}"


class CookieGuard:
    """Finds out who asks with a browser: whoever logged in by a one-time code is the owner."""

    def __init__(self, logins: Logins, settings: WebSettings) -> None:
        self._logins = logins
        self._prefix = f"{cookie_name(settings)}="

    def __call__(self, exchange: Exchange) -> None:
        """Set the principal when the one cookie of ours names a good login.

        What changes something needs an Origin beside it, which every browser sends.
        """
        if exchange.principal is not None:
            return
        sent = b";".join(exchange.headers(b"cookie")).decode("latin-1")
        words = [word.strip() for word in sent.split(";")]
        ours = [word.removeprefix(self._prefix) for word in words if word.startswith(self._prefix)]
        if len(ours) != 1 or not (exchange.method in SAFE_METHODS or exchange.headers(b"origin")):
            return
        name = self._logins.name(ours[0])
        if self._logins.good(name):
            exchange.principal, exchange.login = LOCAL_OWNER, name


class RateGuard:
    """A bucket of requests for each principal; those without a credential share their address's."""

    def __init__(self, settings: WebSettings, monotonic: Callable[[], float]) -> None:
        self._rate = settings.rate_limit_per_minute / 60
        self._burst = float(settings.rate_limit_burst)
        self._monotonic = monotonic
        self._buckets: dict[str, tuple[float, float]] = {}

    def __call__(self, exchange: Exchange) -> None:
        """Take one request out of the bucket."""
        client = exchange.scope.get("client") or ("",)
        who = f"ip:{client[0]}" if exchange.principal is None else exchange.principal.id
        now = self._monotonic()
        left, seen = self._buckets.get(who, (self._burst, now))
        left = min(self._burst, left + (now - seen) * self._rate)
        if left < 1:
            self._buckets[who] = (left, now)
            wait = max(1, math.ceil((1 - left) / self._rate))
            raise HttpRefusal(
                429,
                "too_many_requests",
                f"Too many requests; try again in {wait} s.",
                {"retry-after": str(wait)},
            )
        if len(self._buckets) >= MOST_BUCKETS:
            self._drop_full(now)
        self._buckets[who] = (left - 1, now)

    def _drop_full(self, now: float) -> None:
        """Forget who has not asked for so long that the bucket is full again."""
        full = self._burst / self._rate
        self._buckets = {
            who: (left, seen) for who, (left, seen) in self._buckets.items() if now - seen < full
        }


def require_principal(exchange: Exchange) -> None:
    """Refuse whoever did not prove who they are, except where the route is for everybody."""
    if exchange.principal is None and not exchange.public:
        raise HttpRefusal(
            401,
            "unauthorized",
            "Send the local token: Authorization: Bearer, then what the file token in the home"
            " folder holds.",
            {"www-authenticate": "Bearer"},
        )
