"""Reads error responses of any shape: status, codes, and the words of the server itself."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from internal.llm.lenient_json import decode_json, encode_json, one_line

NO_REASON = "it gave no reason"
_CODE_FIELDS = (
    "code",
    "type",
    "status",
    "error_type",
    "__type",
    "status_code",
    "reason",
    "quotaId",
    "error",
)
_WAIT_FIELDS = ("retryDelay", "retry_after", "retry_after_seconds", "estimated_time")
_HEADER = "header "
_MESSAGE_FIELDS = ("message", "Message", "msg", "detail", "status_msg", "error_description")
_INNER_FIELDS = ("errors", "details", "violations", "innererror", "base_resp", "response")
_MAX_CHARACTERS = 2_000
_MAX_DEPTH = 8
_MAX_QUOTATION = 60
_QUOTATION = r"""(?s)(?<!\w)(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'(?!\w))"""
# Validators of Python repeat the refused value after its place and kind.
_REFUSED_VALUE = (
    r"""(?s)['"]input['"]\s*:.*?(?=['"](?:ctx|url)['"]\s*:|$)"""
    r"""|\binput_value=.*?(?=,\s*input_type=|$)"""
)
_TITLE = r"(?is)<title>\s*(.*?)\s*</title>"


class ErrorAnswer(NamedTuple):
    """An error response, or an error inside a stream, where `status` is None.

    `codes` are the values of the fields that a program reads. `message` is what a person reads,
    with the words of a server behind a router. `words` is the message without long quotations and
    refused values, which are not of the server. `waits` are the values of fields that say how long
    to wait, and `headers` those of a server behind a router. `filtered` is the role or a part of
    the text of the message that a content filter names, "" if it names none.
    """

    status: int | None
    codes: tuple[str, ...]
    message: str
    words: str
    waits: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    filtered: str = ""


def read_answer(status: int | None, body: object) -> ErrorAnswer:
    """Return the codes and words of the body of an error response: decoded JSON or text."""
    facts: dict[str, list[str]] = {"code": [], "message": [], "wait": [], "filtered": []}
    headers: dict[str, str] = {}
    for kind, value in _facts(body, 0):
        if kind in facts:
            facts[kind].append(value)
        else:
            headers[kind.removeprefix(_HEADER)] = value
    message = " ".join(dict.fromkeys(facts["message"])).strip()
    if not message and body is not None:
        message = body.strip() if isinstance(body, str) else encode_json(body).decode()
    message = message[: 4 * _MAX_CHARACTERS] or NO_REASON
    words = re.sub(_QUOTATION, _shorten_quotation, re.sub(_REFUSED_VALUE, "", message))
    return ErrorAnswer(
        status,
        tuple(dict.fromkeys(facts["code"])),
        one_line(message, _MAX_CHARACTERS),
        one_line(words, _MAX_CHARACTERS),
        tuple(facts["wait"]),
        headers,
        next(iter(facts["filtered"]), ""),
    )


def _shorten_quotation(quoted: re.Match[str]) -> str:
    """Leave out a long quotation: a person or a tool wrote it. Those of fields are short."""
    return quoted[0] if len(quoted[0]) <= _MAX_QUOTATION else "…"


def _facts(body: object, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the codes, messages, waits and headers of a body, the outermost object first."""
    if depth > _MAX_DEPTH:
        return
    match body:
        case str():
            yield from _facts_of_text(body, depth)
        case list():
            for item in body[:3]:
                yield from _facts(item, depth + 1)
        case dict():
            yield from _facts_of_object(body, depth)
        case _:
            pass  # a number, or nothing


def _facts_of_text(text: str, depth: int) -> Iterator[tuple[str, str]]:
    stripped = text.strip()
    if stripped[:1] in {"{", "["}:
        try:
            inner = decode_json(stripped.encode())
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, dict | list):
            yield from _facts(inner, depth + 1)
            return
    if re.match(r"(?i)\s*<(?:!doctype|html|head|body|h1)\b", text):
        yield from _facts_of_page(text)
    elif stripped:
        yield "message", stripped


def _facts_of_page(page: str) -> Iterator[tuple[str, str]]:
    """Yield the title of an HTML page, and its text as it is: it is shown to nobody."""
    title = re.search(_TITLE, page)
    if title is not None:
        yield "code", " ".join(title[1].split())
    yield "message", page[:_MAX_CHARACTERS]


def _facts_of_object(body: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, str]]:
    yield from _codes_of(body)
    for name in _MESSAGE_FIELDS:
        value = body.get(name)
        if isinstance(value, str):
            yield from _facts_of_text(value, depth)
        elif name in {"detail", "message"} and isinstance(value, dict | list):
            yield from _facts(value, depth + 1)
    yield from _place_of(body)
    yield from _filtered_message(body)
    error = body.get("error")
    if isinstance(error, dict | list) or (isinstance(error, str) and "message" not in body):
        yield from _facts(error, depth + 1)
    for name in _INNER_FIELDS:
        if isinstance(body.get(name), dict | list):
            yield from _facts(body[name], depth + 1)
    for name in _WAIT_FIELDS:
        if isinstance(body.get(name), str | int | float):
            yield "wait", str(body[name])
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        yield from _facts_of_router(metadata, depth)


def _place_of(body: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yield the field that was refused, as a validator of Python or OpenAI names it."""
    if isinstance(body.get("loc"), list):
        yield "message", " → ".join(map(str, body["loc"]))
    if isinstance(body.get("param"), str) and body["param"]:
        yield "message", f"({body['param']})"


def _filtered_message(body: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yield the role or the text of the message that a content filter refuses (GLM, OpenRouter)."""
    match body:
        case {"contentFilter": [{"role": str(role)}, *_]}:
            yield "filtered", role
        case {"metadata": {"flagged_input": str(text)}}:
            yield "filtered", text
        case _:
            pass  # most filters name none


def _facts_of_router(metadata: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, str]]:
    """Yield the facts of a server behind a router, whose own message is often empty."""
    raw, headers = metadata.get("raw"), metadata.get("headers")
    if isinstance(raw, str) and raw.strip():
        yield from _facts(raw, depth + 1)
    if isinstance(headers, dict):
        for name, value in headers.items():
            yield f"{_HEADER}{str(name).lower()}", str(value)


def _codes_of(body: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for name in _CODE_FIELDS:
        value = body.get(name)
        is_code = isinstance(value, str | int) and not isinstance(value, bool)
        # `error` is a code beside a message, else the message itself
        if is_code and (name != "error" or "message" in body):
            yield "code", str(value)
