"""Input that a server requests from people during a call (elicitation).

In protocol 2026-07-28 the request is the result of the call, which is repeated with the responses.
In 2025-11-25 it is a request during the call, which stays open until there is a response.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.react.input_forms import (
    FieldKind,
    InputField,
    InputForm,
    InputReply,
    InputRequest,
    InputResponse,
    InputValue,
)
from internal.agent.domain.text import escape_hidden, replace_surrogates, truncate_json
from internal.mcp.limits import CallTimedOut

MAX_FORMS, MAX_FIELDS, MAX_VALUES = 5, 20, 200
MAX_STATE_CHARS = 100_000
_CONNECTION_LOST = (
    "the server waited for the answer within the call, and its connection is closed: the outcome of"
    " the call is unknown"
)
_MAX_MESSAGE_BYTES, _MAX_LABEL_BYTES = 4_000, 500
_MAX_NAME_CHARS = 200
_MAX_URL_CHARS, _MAX_DEFAULT_CHARS = 2_000, 1_000
_KINDS: dict[str, FieldKind] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
}


class _Const(msgspec.Struct, frozen=True):
    const: str
    title: str = ""


class _Items(msgspec.Struct, frozen=True, rename="camel"):
    enum: list[str] = []
    any_of: list[_Const] = []


class _Property(msgspec.Struct, frozen=True, rename="camel"):
    """The schema of one value; which fields it has depends on the type."""

    type: str = ""
    title: str = ""
    description: str = ""
    default: Any = None
    enum: list[str] = []
    enum_names: list[str] = []
    one_of: list[_Const] = []
    items: _Items = _Items()
    minimum: float | None = None
    maximum: float | None = None
    min_length: float | None = None
    max_length: float | None = None
    min_items: float | None = None
    max_items: float | None = None
    format: str = ""

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The bounds for its type."""
        match self.type:
            case "string":
                return self.min_length, self.max_length
            case "array":
                return self.min_items, self.max_items
            case _:
                return self.minimum, self.maximum


class _Schema(msgspec.Struct, frozen=True):
    properties: dict[str, _Property] = {}
    required: list[str] = []


class _Params(msgspec.Struct, frozen=True, rename="camel"):
    message: str
    mode: str = "form"
    requested_schema: _Schema = _Schema()
    url: str = ""


class _Request(msgspec.Struct, frozen=True):
    method: str
    params: dict[str, Any] = {}


class _Result(msgspec.Struct, frozen=True, rename="camel"):
    input_requests: dict[str, _Request] = {}
    request_state: str | None = None


Progress = Callable[[float, float | None, str], None]
"""Receives the progress, the total if it is known, and a message."""

DECLINED = InputResponse("", "decline")


DECLINED_KEY = "larkspur/declined"
"""The key of a result under which it has why requests of the server were declined."""
SEVERAL_CALLS = "several of its calls run, and it does not say which of them asks"


class _OpenCall:
    """A call at the server. `asked` has the parameters of its request once it waits for people.

    `declined` has the reasons why requests were declined without asking anybody.
    """

    def __init__(self, on_progress: Progress) -> None:
        self.on_progress = on_progress
        self.declined: list[str] = []
        self.asked: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[dict[str, Any]]
        self._response: asyncio.Future[InputResponse] | None = None

    def report(self, done: float, total: float | None, message: str) -> None:
        """Report progress to the run that waits for the call now."""
        self.on_progress(done, total, message)

    async def ask(self, params: dict[str, Any]) -> InputResponse:
        """Return the response of people."""
        self._response = asyncio.get_running_loop().create_future()
        self.asked.set_result(params)
        return await self._response

    def respond(self, response: InputResponse) -> None:
        """Let the call continue."""
        self.asked = asyncio.get_running_loop().create_future()
        if self._response is not None and not self._response.done():
            self._response.set_result(response)

    async def cancel(self) -> None:
        """End the call; the server is told."""
        self.respond(DECLINED)
        self.task.cancel()
        await asyncio.wait({self.task})
        if not self.task.cancelled():
            self.task.exception()  # retrieved, if nobody waits for the call any more


class OpenCalls:
    """The calls of a connection in protocol 2025-11-25, which stay open while their runs pause.

    A request of a server does not name its call: it is declined unless exactly one call is running.
    """

    def __init__(self) -> None:
        self._running: set[_OpenCall] = set()
        self._waiting: dict[str, _OpenCall] = {}

    @property
    def is_waiting(self) -> bool:
        """True if a call waits for people."""
        return bool(self._waiting)

    async def run(
        self,
        key: str,
        send: Callable[[Progress], Coroutine[Any, Any, dict[str, Any]]],
        *,
        timeout_seconds: float,
        on_progress: Progress,
        reply: InputReply | None,
    ) -> dict[str, Any]:
        """Start a call, or continue the one with this key. Return its result or input request.

        Raises:
            ToolError: it does not end in time, or is no longer open.
        """
        if reply is None:
            call = _OpenCall(on_progress)
            call.task = asyncio.create_task(send(call.report))
        elif (found := self._waiting.pop(key, None)) is not None:
            call = found
            call.on_progress = on_progress
            call.respond(reply.responses[0])
        else:
            raise ToolError(_CONNECTION_LOST)
        self._running.add(call)
        try:
            await asyncio.wait(
                {call.task, call.asked},
                timeout=timeout_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if call.task.done():
                result = call.task.result()
                return {**result, DECLINED_KEY: call.declined} if call.declined else result
            if call.asked.done():
                self._waiting[key] = call
                return _input_required(call.asked.result())
            raise CallTimedOut(timeout_seconds)
        finally:
            self._running.discard(call)
            if call is not self._waiting.get(key):
                await call.cancel()

    async def ask(self, params: dict[str, Any]) -> InputResponse:
        """Return the response to a request of the server."""
        running = [call for call in self._running if not call.asked.done()]
        why = SEVERAL_CALLS if len(running) > 1 else _why_not_asked(params)
        if len(running) == 1 and not why:
            return await running[0].ask(params)
        for call in running:
            call.declined = [*call.declined, why][:MAX_FORMS]
        return DECLINED

    async def close(self) -> None:
        """End all calls that wait."""
        while self._waiting:
            await self._waiting.popitem()[1].cancel()


def _why_not_asked(params: dict[str, Any]) -> str:
    """Return why people cannot be asked this, "" if they can."""
    try:
        read_input_request("", _input_required(params))
    except ToolError as error:
        return str(error)
    return ""


def _input_required(params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of protocol 2026-07-28 that asks the same."""
    request = {"method": "elicitation/create", "params": params}
    return {"resultType": "input_required", "inputRequests": {"": request}}


def requires_input(result: dict[str, Any]) -> bool:
    """Return True if the result of a call is a request for input."""
    return result.get("resultType") == "input_required"


def read_input_request(server: str, result: dict[str, Any]) -> InputRequest:
    """Return the input that a server requests. Hidden characters in its texts are escaped.

    Raises:
        ToolError: the request cannot be shown to people.
    """
    try:
        found = msgspec.convert(result, _Result)
        if not 0 < len(found.input_requests) <= MAX_FORMS:
            raise ToolError(f"the server asks for more than {MAX_FORMS} forms at once")
        forms = tuple(_read_form(*item) for item in found.input_requests.items())
    except msgspec.ValidationError as error:
        raise ToolError("the server asks people something that cannot be shown") from error
    state = found.request_state
    if state is not None and not _is_short(state, MAX_STATE_CHARS):
        raise ToolError(f"the server's state has more than {MAX_STATE_CHARS:,} characters")
    return InputRequest(source_of(server), forms, state)


def source_of(server: str) -> str:
    """Return the name of a server as the requester, for people."""
    return f"The MCP server “{server}”"


def _read_form(key: str, request: _Request) -> InputForm:
    if request.method != "elicitation/create":
        raise ToolError(f"the server asks for {escape_hidden(request.method)[:80]}, not offered")
    params = msgspec.convert(request.params, _Params)
    message = _shown(params.message, _MAX_MESSAGE_BYTES)
    if not _is_short(key, _MAX_NAME_CHARS):
        raise ToolError("the server's form has a key that is too long")
    if params.mode == "url":
        url = params.url
        if not url.startswith("https://") or escape_hidden(url) != url or len(url) > _MAX_URL_CHARS:
            raise ToolError("the server asks people to open an address that is no https address")
        return InputForm(key, message, url=url)
    if params.mode != "form":
        raise ToolError("the server asks people in a way that is not known")
    schema = params.requested_schema
    if len(schema.properties) > MAX_FIELDS:
        raise ToolError(f"the server asks people for more than {MAX_FIELDS} values")
    fields = [
        _read_field(name, each, required=name in schema.required)
        for name, each in schema.properties.items()
    ]
    return InputForm(key, message, tuple(fields))


def _read_field(name: str, schema: _Property, *, required: bool) -> InputField:
    choices = _choices(schema)
    kind: FieldKind | None = _KINDS.get(schema.type)
    if schema.type == "array" and choices:
        kind = "choices"
    elif choices and kind in (None, "text"):
        kind = "choice"
    if kind is None or not _is_short(name, _MAX_NAME_CHARS) or len(choices) > MAX_VALUES:
        raise ToolError(f"the server asks for a value that cannot be asked: {_shown(name, 100)}")
    least, most = schema.bounds if kind != "choice" else (None, None)
    labels = tuple(_shown(choice.title or choice.const, _MAX_LABEL_BYTES) for choice in choices)
    values = tuple(choice.const for choice in choices)
    return InputField(
        name,
        kind,
        _shown(schema.title or name, _MAX_LABEL_BYTES),
        _shown(schema.description, _MAX_LABEL_BYTES) if schema.description else "",
        required,
        _default(kind, values, schema.default),
        values,
        labels,
        least,
        most,
        _shown(schema.format, 50) if schema.format and kind == "text" else "",
    )


def _choices(schema: _Property) -> list[_Const]:
    if schema.type == "array":
        return schema.items.any_of or [_Const(value) for value in schema.items.enum]
    if schema.one_of:
        return schema.one_of
    names = schema.enum_names if len(schema.enum_names) == len(schema.enum) else schema.enum
    return [_Const(value, name) for value, name in zip(schema.enum, names, strict=True)]


def _default(kind: FieldKind, values: tuple[str, ...], default: Any) -> InputValue | None:
    """Return the default, None without one and for one that does not fit the type."""
    match default:
        case bool():
            fits = kind == "boolean"
        case int() | float():
            fits = kind == "number" or (kind == "integer" and isinstance(default, int))
        case str():
            fits = default in values or (kind == "text" and _is_short(default, _MAX_DEFAULT_CHARS))
        case list():
            fits = kind == "choices" and all(each in values for each in default)
        case _:
            fits = False
    found: InputValue | None = default if fits else None
    return found


def _is_short(text: str, most: int) -> bool:
    return len(text) <= most and replace_surrogates(text) == text


def _shown(text: str, max_bytes: int) -> str:
    return truncate_json(escape_hidden(text), max_bytes)
