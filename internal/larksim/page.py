"""The chat page: plain files that need no build and ask for nothing foreign."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_FOLDER = Path(__file__).with_name("static")
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def routes() -> list[Route]:
    """Return a route for each file; the page itself stands at the root."""
    return [_route(file) for file in sorted(_FOLDER.iterdir()) if file.suffix in _KINDS]


def _route(file: Path) -> Route:
    data = file.read_bytes()

    async def give(_: Request) -> Response:
        return Response(data, media_type=_KINDS[file.suffix])

    path = "/" if file.name == "index.html" else f"/{file.name}"
    return Route(path, give, methods=["GET"])
