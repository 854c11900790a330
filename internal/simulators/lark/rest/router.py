"""Routes of the REST API: authentication, rate limits, faults and Lark's response envelope."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from internal.simulators.lark.auth import TOKEN_SECONDS
from internal.simulators.lark.cards import cardkit, clicks
from internal.simulators.lark.errors import BODY_INVALID, LarkError, rate_limited
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import App, Json, encode
from internal.simulators.lark.rest import application, im_contacts, im_media, im_messages
from internal.simulators.lark.rest.call import BinaryResult, RestCall, RestEndpoint, TopLevelResult
from internal.simulators.lark.rest.form_data import FormField, read_form
from internal.simulators.lark.rest.scopes import check_scopes
from internal.simulators.lark.server import CONNECTION_KEY, AbortableHttpProtocol
from internal.simulators.lark.services import LarkServices

ENDPOINTS = (
    *im_messages.ENDPOINTS,
    *im_media.ENDPOINTS,
    *im_contacts.ENDPOINTS,
    *application.ENDPOINTS,
    *cardkit.ENDPOINTS,
    *clicks.ENDPOINTS,
)
"""All calls that need a token."""
MAX_BODY_BYTES = 40 * 1024 * 1024
MAX_SECRET_BYTES = 1 << 16
"""The largest request for a token."""
BAD_GATEWAY = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n</html>\r\n"


def routes(lark: LarkServices) -> list[Route]:
    """Return the routes of all calls."""

    def calling(endpoint: RestEndpoint) -> Route:
        async def answer(request: Request) -> Response:
            lark_token = request.headers.get("authorization")
            return await _answer(
                lark,
                request,
                lambda body: _call(lark, endpoint, request, body),
                check=lambda: lark.tokens.check(lark_token),
            )

        return Route(endpoint.path, answer, methods=[endpoint.method])

    async def token(request: Request) -> Response:
        return await _answer(
            lark, request, lambda body: (None, _token(lark, body)), largest=MAX_SECRET_BYTES
        )

    path = "/open-apis/auth/v3/tenant_access_token/internal"
    return [Route(path, token, methods=["POST"]), *map(calling, ENDPOINTS)]


Handler = Callable[[bytes], tuple[App | None, Json | BinaryResult | TopLevelResult]]


def _token(lark: LarkServices, body: bytes) -> TopLevelResult:
    given = read_json(body)
    app = lark.tokens.app(given.get("app_id"), given.get("app_secret"))
    return TopLevelResult({"tenant_access_token": lark.tokens.issue(app), "expire": TOKEN_SECONDS})


def _call(
    lark: LarkServices, endpoint: RestEndpoint, request: Request, body: bytes
) -> tuple[App, Json | BinaryResult | TopLevelResult]:
    app = lark.tokens.check(request.headers.get("authorization"))
    check_scopes(app, endpoint.scopes)
    lark.state.limits.call(app.app_id, f"{endpoint.method} {endpoint.path}")
    kind = request.headers.get("content-type", "")
    fields: Json = {}
    form: dict[str, FormField] = {}
    if kind.lower().startswith("multipart/"):
        form = read_form(kind, body)
    elif body:
        fields = read_json(body)
    query = request.query_params
    call = RestCall(app, request.path_params, dict(query), fields, form, query.multi_items())
    return app, endpoint.handler(lark.state, call)


def read_json(body: bytes) -> Json:
    """Return the JSON object of a body.

    Raises:
        LarkError: The body is not a JSON object.
    """
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise LarkError(BODY_INVALID, "Bad Request: the body is not JSON") from error
    if not isinstance(value, dict):
        raise LarkError(BODY_INVALID, "Bad Request: the body is not a JSON object")
    return value


async def read_body(request: Request, largest: int = MAX_BODY_BYTES) -> bytes:
    """Return the body.

    Raises:
        LarkError: It is too large.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > largest:
            raise LarkError(BODY_INVALID, "the body is too large", 413)
    return bytes(body)


async def _answer(
    lark: LarkServices,
    request: Request,
    work: Handler,
    *,
    check: Callable[[], object] = lambda: None,
    largest: int = MAX_BODY_BYTES,
) -> Response:
    """Answer a request; `check` raises LarkError before the body is read."""
    started = time.monotonic()
    what = f"{request.method} {request.url.path}"
    fault: AnswerFault | None = None
    app_id, body = "", b""
    try:
        check()
        body = await read_body(request, largest)
        text = body.decode(errors="replace")
        fault = lark.faults.match_call(what, text)
        _raise_fault(fault, request.headers.get("authorization", "") + text)
        if fault is not None and fault.kind == "late":
            await lark.slow_down(fault.seconds)
        app, done = work(body)
        app_id = "" if app is None else app.app_id
        if fault is not None and fault.kind == "no_data":
            done = {}
        response, code = _success_response(done), 0
    except LarkError as error:
        response, code = _error_response(error), error.code
    if fault is not None and fault.kind == "bad_gateway":
        response = Response(BAD_GATEWAY, 502, media_type="text/html")
    if fault is not None and fault.kind == "slow":
        await lark.slow_down(fault.seconds)
    lost = fault is not None and fault.kind == "lost"
    lark.log.add(
        "call",
        app_id,
        what + (f"?{request.url.query}" if request.url.query else ""),
        sent=_loggable_body(request.headers.get("content-type", ""), body),
        got="(lost)"
        if lost
        else _loggable_body(response.headers["content-type"], bytes(response.body)),
        status=response.status_code,
        code=code,
        ms=round((time.monotonic() - started) * 1000, 1),
    )
    connection = request.scope["state"][CONNECTION_KEY]
    if lost:
        connection.abort()
    if fault is not None and fault.kind == "cut":
        return _cut(response, connection)
    return response


def _cut(response: Response, connection: AbortableHttpProtocol) -> Response:
    """Return a response that ends in the middle."""

    async def parts() -> AsyncGenerator[bytes]:
        body = bytes(response.body)
        yield body[: len(body) // 2]
        await asyncio.sleep(0)  # it is written first
        connection.abort()

    headers = {name: value for name, value in response.headers.items() if name != "content-type"}
    kind = response.headers["content-type"]
    return StreamingResponse(parts(), response.status_code, headers, media_type=kind)


def _raise_fault(fault: AnswerFault | None, sent: str) -> None:
    """Raise the error of a fault that prevents the call."""
    if fault is None:
        return
    match fault.kind:
        case "rate_limit":
            raise rate_limited(fault.seconds)
        case "code":
            raise LarkError(fault.code, "fault switch", fault.status)
        case "quote":
            raise LarkError(fault.code, f"not accepted: {sent}", fault.status)
        case "bad_gateway":
            raise LarkError(0, "")
        case _:
            pass


def _success_response(done: Json | BinaryResult | TopLevelResult) -> Response:
    if isinstance(done, BinaryResult):
        name = f"attachment; filename*=UTF-8''{quote(done.file_name, safe='')}"
        return Response(
            done.data,
            headers=with_log_id({"content-disposition": name}),
            media_type=done.media_type,
        )
    if isinstance(done, TopLevelResult):
        return _json({"code": 0, "msg": "ok", **done.fields})
    return _json({"code": 0, "msg": "success", "data": done})


def _error_response(error: LarkError) -> Response:
    headers = with_log_id(error.headers)
    body = {
        "code": error.code,
        "msg": error.msg,
        "error": {"log_id": headers["x-tt-logid"], "troubleshooter": "This is a simulator."},
    }
    return _json(body, error.status, headers)


def _json(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    kind = "application/json; charset=utf-8"
    return Response(encode(body), status, headers or with_log_id({}), media_type=kind)


def with_log_id(headers: dict[str, str]) -> dict[str, str]:
    """Return headers with a new id of the call."""
    return {**headers, "x-tt-logid": secrets.token_hex(16)}


def _loggable_body(kind: str, body: bytes) -> bytes:
    """Return a body as the log shows it."""
    if not body or "json" in kind or "text" in kind or not kind:
        return body
    return f"({len(body)} bytes of {kind.partition(';')[0]})".encode()
