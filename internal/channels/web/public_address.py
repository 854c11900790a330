"""The addresses of a gateway: which hosts and origins are its own, and the path of the page.

Behind a proxy, `server.public_url` is where people reach it. The proxy removes the path of this
address or leaves it, and keeps the Host header, with or without the port.
"""

import re
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from internal.channels.web.requests import RequestContext
from internal.settings.server import ServerSettings

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(\[[^\[\]]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")


def page_origin(context: RequestContext, settings: ServerSettings) -> str:
    """Return the origin of the pages that this server serves at the host of a request.

    Browsers send no Origin with most requests to the own origin, so it follows from the Host.
    """
    host = context.headers(b"host")[0].decode("latin-1").lower()
    is_public = settings.public_url is not None and not _is_local(host, settings)
    return origin_of(settings.public_url or "") if is_public else f"http://{host}"


def page_address(context: RequestContext, settings: ServerSettings) -> str:
    """Return the address of the page at the host of a request, without a slash at its end."""
    origin = page_origin(context, settings)
    is_public = settings.public_url is not None and origin == origin_of(settings.public_url)
    return f"{origin}{settings.path}" if is_public else origin


def origin_of(url: str) -> str:
    """Return the origin of a URL as browsers send it, without the port of its scheme."""
    parts = urlsplit(url)
    host = parts.netloc.lower().removesuffix(f":{_DEFAULT_PORTS.get(parts.scheme)}")
    return f"{parts.scheme}://{host}"


def is_own_host(host: str, settings: ServerSettings) -> bool:
    """Return True for a Host header that names this server.

    The name of the public address counts with any port and with none, as proxies send it: only the
    name protects against DNS rebinding.
    """
    host = host.lower()
    if host in _local_hosts(settings.host, settings.port):
        return True
    found = _HOST.fullmatch(host)
    return found is not None and settings.public_url is not None and found[1] == _name(settings)


def own_origins(settings: ServerSettings) -> frozenset[str]:
    """Return the origins of the pages that this server serves."""
    origins = {f"http://{host}" for host in _local_hosts(settings.host, settings.port)}
    if settings.public_url:
        origins.discard(f"http://{urlsplit(settings.public_url).netloc.lower()}")
        origins.add(origin_of(settings.public_url))
    return frozenset(origins)


def cookie_name(origin: str) -> str:
    """Return the name of the login cookie of pages of an origin.

    All ports of a host share their cookies. Gateways behind one proxy have the same origin.
    """
    parts = urlsplit(origin)
    return f"larkspur-{parts.port or _DEFAULT_PORTS.get(parts.scheme, 80)}"


class PublicPath:
    """Serves an application also below a path, for proxies that do not remove the path.

    The page sends all requests below this path, also without a proxy.

    Args:
        app: the application.
        path: such as `/larkspur`, or "".
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app, self._path = app, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path: str = scope["path"]
        if self._path and (path == self._path or path.startswith(f"{self._path}/")):
            rest = path[len(self._path) :] or "/"
            raw = scope.get("raw_path", b"")[len(self._path) :] or b"/"
            scope = {**scope, "path": rest, "raw_path": raw}
        await self._app(scope, receive, send)


def _is_local(host: str, settings: ServerSettings) -> bool:
    """Return True for an address of the gateway itself that is not also the public one."""
    if settings.public_url and host == urlsplit(settings.public_url).netloc.lower():
        return False
    return host in _local_hosts(settings.host, settings.port)


@lru_cache(maxsize=16)
def _local_hosts(address: str, port: int) -> frozenset[str]:
    """Return the values of the Host header for the address on which the gateway listens."""
    host = f"[{address}]" if ":" in address else address
    names = {"127.0.0.1", "localhost", "[::1]", host.lower()}
    hosts = {f"{name}:{port}" for name in names}
    # browsers omit the port of the scheme
    return frozenset(hosts | names if port == _DEFAULT_PORTS["http"] else hosts)


def _name(settings: ServerSettings) -> str:
    found = _HOST.fullmatch(urlsplit(settings.public_url or "").netloc.lower())
    return found[1] if found else ""
