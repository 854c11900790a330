"""CORS for the origins that the settings name, and for no other: nothing is reflected."""

from starlette.responses import Response

from internal.channels.web.channel import WebSettings
from internal.channels.web.guards import Exchange, origin_of

_PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, PATCH, DELETE",
    "access-control-allow-headers": "authorization, content-type, last-event-id",
    "access-control-max-age": "600",
}


class Cors:
    """Lets pages of `allowed_origins` read what they are answered."""

    def __init__(self, settings: WebSettings) -> None:
        self._allowed = frozenset(origin_of(origin) for origin in settings.allowed_origins)

    def headers(self, exchange: Exchange) -> list[tuple[bytes, bytes]]:
        """Return the headers of an answer to such a page, none for others."""
        if not self._allowed:
            return []
        vary = (b"vary", b"Origin")
        for origin in exchange.headers(b"origin"):
            if origin.decode("latin-1").lower() in self._allowed:
                return [vary, (b"access-control-allow-origin", origin)]
        return [vary]

    def preflight(self, exchange: Exchange) -> Response | None:
        """Return the answer to a browser that asks before it sends, None when it is no such."""
        asks = exchange.method == "OPTIONS" and exchange.headers(b"access-control-request-method")
        if asks and len(self.headers(exchange)) > 1:
            return Response(status_code=204, headers=_PREFLIGHT)
        return None
