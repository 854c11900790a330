"""Discovery of the websocket address, and the websocket itself."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import urlencode

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.model import App, Json, encode
from internal.simulators.lark.rest.router import read_body, read_json, with_log_id
from internal.simulators.lark.server import CONNECTION_KEY
from internal.simulators.lark.services import LarkServices
from internal.simulators.lark.websocket.connection import AppConnection

PATH = "/ws/v2"
MAX_SILENT_INTERVALS = 3
"""A connection without a frame for so many ping intervals is closed; its process may be stopped.

How long Lark itself waits is not known.
"""
SYSTEM_BUSY, REFUSED = 1, 1000040344
FORBIDDEN, AUTH_FAILED, TOO_MANY = 403, 514, 1000040350
_REFUSALS = {
    "limit": (AUTH_FAILED, TOO_MANY, "the number of connections exceeded the limit"),
    "forbidden": (FORBIDDEN, 0, "forbidden"),
    "busy": (AUTH_FAILED, 1000040343, "system busy"),
}


def routes(lark: LarkServices) -> list[Route | WebSocketRoute]:
    """Return both routes."""

    async def endpoint(request: Request) -> Response:
        return await _discover(lark, request)

    async def connect(websocket: WebSocket) -> None:
        await _connect(lark, websocket)

    path = "/callback/ws/endpoint"
    return [Route(path, endpoint, methods=["POST"]), WebSocketRoute(PATH, connect)]


async def _discover(lark: LarkServices, request: Request) -> Response:
    body = b""
    try:
        body = await read_body(request, 1 << 16)
        answer, status = await _discovery_answer(lark, body, request.url)
    except LarkError as error:
        answer, status = {"code": error.code, "msg": error.msg}, 200
    data = encode(answer)
    what = f"POST {request.url.path}"
    lark.log.add("call", "", what, sent=body, got=data, status=status, code=answer["code"])
    return Response(data, status, with_log_id({}), media_type="application/json")


async def _discovery_answer(lark: LarkServices, body: bytes, url: URL) -> tuple[Json, int]:
    while lark.faults.discovery == "hang" and not lark.closing:
        await lark.changes.wait()
    match lark.faults.discovery:
        case "busy":
            return {"code": SYSTEM_BUSY, "msg": "system busy"}, 200
        case "error":
            return {"code": 1, "msg": "internal error"}, 500
        case "refuse":
            return {"code": REFUSED, "msg": "app is forbidden"}, 200
        case _:
            given = read_json(body)
            app = lark.tokens.app(given.get("AppID"), given.get("AppSecret"))
            config = {name: getattr(lark.config, name) for name in lark.config.__struct_fields__}
            data = {"URL": _websocket_url(lark, app, url), "ClientConfig": config}
            return {"code": 0, "msg": "", "data": data}, 200


def _websocket_url(lark: LarkServices, app: App, url: URL) -> str:
    query = {
        "device_id": str(secrets.randbelow(10**18) + 10**18),
        "access_key": secrets.token_hex(16),
        "service_id": str(_service_id(lark, app)),
        "ticket": lark.tokens.ticket(app),
    }
    scheme = "wss" if url.is_secure else "ws"
    return f"{scheme}://{url.netloc}{PATH}?{urlencode(query)}"


def _service_id(lark: LarkServices, app: App) -> int:
    return 33554678 + list(lark.state.apps).index(app.app_id)


async def _connect(lark: LarkServices, websocket: WebSocket) -> None:
    query = websocket.query_params
    app = lark.tokens.of_ticket(query.get("ticket", ""))
    if refusal := lark.faults.handshake or ("forbidden" if app is None else ""):
        return await _refuse(lark, websocket, refusal)
    assert app is not None  # noqa: S101 - rejected above; mypy cannot infer it
    connection = AppConnection(
        app.app_id,
        query.get("device_id", ""),
        _service_id(lark, app),
        _sender(websocket),
        websocket.scope["state"][CONNECTION_KEY],
        lark.log,
    )
    try:
        lark.delivery.add_connection(connection)
    except LarkError:
        return await _refuse(lark, websocket, "limit")
    try:
        await websocket.accept()
        with suppress(ConnectionError):  # the client left before its ping was answered
            await _receive_frames(lark, websocket, connection)
    except TimeoutError:
        lark.log.add("socket", app.app_id, f"silent {connection.device_id}")
        connection.socket.abort()
    finally:
        lark.delivery.remove_connection(connection)
    return None


def _sender(websocket: WebSocket) -> Callable[[bytes], Awaitable[None]]:
    """Return a function that sends a frame or raises ConnectionError if the client is gone."""

    async def send(data: bytes) -> None:
        try:
            await websocket.send_bytes(data)
        except (WebSocketDisconnect, RuntimeError) as error:
            # RuntimeError: not accepted yet, or the closing handshake has begun
            raise ConnectionError("the websocket is not open") from error

    return send


async def _receive_frames(
    lark: LarkServices, websocket: WebSocket, connection: AppConnection
) -> None:
    while (message := await _receive(lark, websocket))["type"] == "websocket.receive":
        data = message.get("bytes")
        if data is None:
            lark.log.add("frame.in", connection.app_id, "not a frame: text message")
        else:
            await connection.receive(data, lark.config, lark.faults)


async def _receive(lark: LarkServices, websocket: WebSocket) -> Message:
    async with asyncio.timeout(MAX_SILENT_INTERVALS * lark.config.PingInterval):
        return await websocket.receive()


async def _refuse(lark: LarkServices, websocket: WebSocket, why: str) -> None:
    lark.log.add("socket", "", f"handshake rejected: {why}")
    headers = with_log_id({})
    if why in _REFUSALS:
        status, code, msg = _REFUSALS[why]
        headers |= {"handshake-status": str(status), "handshake-msg": msg}
        headers |= {"handshake-autherrcode": str(code)}
    await websocket.send_denial_response(Response(status_code=403, headers=headers))
