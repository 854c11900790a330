"""The control API under `/_sim/`, for the page and for tests in another process.

It can act as any simulated person, so requests need the key printed by the command as
`Authorization: Bearer`. It is not accepted as a cookie: browsers send those to all ports of a host.
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from internal.simulators.lark.chat_page import changes_since
from internal.simulators.lark.control.actions import ACTIONS
from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.model import encode
from internal.simulators.lark.rest.im_media import media_result
from internal.simulators.lark.rest.router import read_body
from internal.simulators.lark.services import LarkServices

MAX_BODY_BYTES = 48 * 1024 * 1024
POLL_TIMEOUT_SECONDS = 20.0
Handler = Callable[[Request], Awaitable[Response]]


class ControlError(Exception):
    """A rejected request: HTTP status and message."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class ControlApi:
    """The routes; all of them check the key."""

    def __init__(self, lark: LarkServices, key: str) -> None:
        self._lark = lark
        self._key = key

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/_sim/changes", _protected(self._changes, self._key), methods=["GET"]),
            Route("/_sim/media/{key}", _protected(self._media, self._key), methods=["GET"]),
            Route("/_sim/{action}", _protected(self._act, self._key), methods=["POST"]),
        ]

    async def _changes(self, request: Request) -> Response:
        """Return the changes; wait for a change if there is none."""
        lark = self._lark
        since, log = _number(request, "since"), _number(request, "log")
        if lark.state.version <= since and lark.log.number <= log:
            await lark.changed_within(POLL_TIMEOUT_SECONDS)
        return _json(changes_since(lark, since, log))

    async def _media(self, request: Request) -> Response:
        found = self._lark.state.media.get(request.path_params["key"])
        if found is None:
            raise ControlError(404, "No such file.")
        data, kind, name = media_result(found)
        response = Response(data, media_type=kind)
        if found.kind != "image":
            plain = name.encode("ascii", "replace").decode().translate(_UNSAFE)
            response.headers["content-disposition"] = f'attachment; filename="{plain}"'
        return response

    async def _act(self, request: Request) -> Response:
        action = ACTIONS.get(request.path_params["action"])
        if action is None:
            raise ControlError(404, f"Unknown action. Actions: {', '.join(sorted(ACTIONS))}.")
        try:
            return _json(await action.do(self._lark, await _read_request(request, action.takes)))
        except (LarkError, ValueError) as error:
            raise ControlError(400, str(error)) from error


_UNSAFE = str.maketrans(dict.fromkeys('"\\\r\n\t', "_"))


def _protected(handler: Handler, key: str) -> Handler:
    async def guarded(request: Request) -> Response:
        try:
            _check_origin(request)
            _check_key(request, key)
            return await handler(request)
        except ControlError as refused:
            return JSONResponse({"error": str(refused)}, refused.status)

    return guarded


def _check_origin(request: Request) -> None:
    """Reject state-changing requests from pages of other origins."""
    if request.method == "GET":
        return
    own = f"http://{request.headers['host']}".lower()
    origin = request.headers.get("origin", own).lower()
    site = request.headers.get("sec-fetch-site", "none")
    if origin != own or site not in {"same-origin", "none"}:
        raise ControlError(403, "Cross-origin requests are not allowed.")
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise ControlError(415, "Content-Type must be application/json.")


def _check_key(request: Request, key: str) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(given.encode("utf-8", "replace"), key.encode()):
        raise ControlError(
            401, "Open the address that larkspur lark-sim printed. It contains the key."
        )


async def _read_request(request: Request, kind: Any) -> Any:
    try:
        return msgspec.json.decode(await read_body(request, MAX_BODY_BYTES), type=kind)
    except LarkError as error:
        raise ControlError(413, error.msg) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ControlError(400, str(error)) from error


def _number(request: Request, name: str) -> int:
    value = request.query_params.get(name, "0")
    if not (value.isascii() and value.isdigit() and len(value) < 16):  # noqa: PLR2004 - fits 64 bits
        raise ControlError(400, f"{name} must be a number.")
    return int(value)


def _json(value: object) -> Response:
    return Response(encode(value), media_type="application/json")
