"""Parser of JSON-RPC messages in the output of a server, as lenient as possible."""

import json
import re
from typing import Any

import msgspec

from internal.agent.domain.text import replace_surrogates_in
from internal.mcp.answers import Json
from internal.mcp.limits import MAX_MESSAGE_BYTES

_INTERNAL_ERROR = -32603
_BEGIN = '{"'
_OPEN_ENDS = ("{", "[", ",")
"""Ends of lines after which a message continues."""
_INTENDED = re.compile(r"""["']jsonrpc["']""")
_REQUEST = re.compile(r"""["']method["']\s*:""")  # a server may log our requests
_NUMBER = re.compile(r"""["']id["']\s*:\s*(?:(\d+)|"([^"]{1,100})"|'([^']{1,100})')""")
_HALF = re.compile(r"\\ud[89a-f]", re.IGNORECASE)


class DamagedMessage(msgspec.Struct, frozen=True):
    """A line that was meant as a message. `id` is the request that it answers, if that is known."""

    id: int | str | None
    text: str


class MessageParser:
    """Finds the messages in lines, also one that is written over several lines."""

    def __init__(self) -> None:
        self._begun = ""

    def parse(self, line: bytes) -> list[Json] | DamagedMessage | None:
        """Return the messages of a line; None if there is none, or only a part of one."""
        text = decoded(line)
        found = read_messages(text)
        if found is None and self._begun:
            return self._continued(text)
        self._begun = ""
        if found is None and text.startswith(("{", "[")) and text.rstrip()[-1:] in _OPEN_ENDS:
            self._begun = text
            return None
        return (_within(text) or _damaged(text)) if found is None else found

    def _continued(self, text: str) -> list[Json] | DamagedMessage | None:
        """Return the message that a line completes; only a line without indentation does."""
        self._begun = f"{self._begun}\n{text}"
        is_last = text.startswith(("}", "]"))
        if not is_last and len(self._begun) <= MAX_MESSAGE_BYTES:
            return None
        whole, self._begun = self._begun, ""
        return read_messages(whole) or _damaged(whole)


def decoded(data: bytes) -> str:
    """Return the text of a message; bytes that are not UTF-8 are replaced."""
    return data.decode("utf-8-sig", "replace")


def read_messages(text: str) -> list[Json] | None:
    """Return the message or the batch of messages in a text; None if it has none."""
    try:
        # Control characters within texts are not JSON; they are understood all the same.
        value = json.loads(text, strict=False, parse_constant=lambda _name: None)
        if _HALF.search(text):
            value = replace_surrogates_in(value)
    except (ValueError, RecursionError):
        return None
    batch = value if isinstance(value, list) else [value]
    return [_corrected(each) for each in batch if _is_message(each)] or None


def _within(text: str) -> list[Json] | None:
    """Return the answers in a line with other text or several messages.

    Requests in such a line are ignored: a log of received messages contains them, too.
    """
    decoder = json.JSONDecoder(strict=False, parse_constant=lambda _name: None)
    found: list[Json] = []
    position = text.find(_BEGIN)
    while position >= 0:
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if _is_message(value) and "method" not in value:
            found.append(_corrected(value))
        position = text.find(_BEGIN, position)
    return found or None


def _damaged(text: str) -> DamagedMessage | None:
    """Describe an unreadable message; None if the text was not meant as a message."""
    is_begun = text.lstrip().startswith(("{", "["))
    if not is_begun or not _INTENDED.search(text) or _REQUEST.search(text):
        return None
    found = _NUMBER.search(text)
    if found is None:
        return DamagedMessage(None, text)
    return DamagedMessage(int(found[1]) if found[1] else found[2] or found[3], text)


def _is_message(value: Any) -> bool:
    """Return True for a message, False for JSON from loggers."""
    if not isinstance(value, dict):
        return False
    return "jsonrpc" in value or ("id" in value and bool({"result", "error"} & value.keys()))


def _corrected(message: Json) -> Json:
    """Return a message with the members that its kind has, and no others."""
    base: Json = {"jsonrpc": "2.0"}
    number = message.get("id")
    if "method" in message:
        optional = {
            name: message[name] for name in ("id", "params") if message.get(name) is not None
        }
        return {**base, "method": message["method"], **optional}
    if message.get("error") is not None:
        return {**base, "id": number, "error": _corrected_error(message["error"])}
    result = message.get("result")
    if not isinstance(result, dict):
        result = {} if result is None else {"content": result}
    return {**base, "id": number, "result": result}


def _corrected_error(given: Any) -> Json:
    error = given if isinstance(given, dict) else {"message": given}
    code, message = error.get("code"), error.get("message")
    if not isinstance(message, str):
        message = "" if message is None else json.dumps(message, ensure_ascii=False)
    data = {"data": error["data"]} if error.get("data") is not None else {}
    is_code = isinstance(code, int) and not isinstance(code, bool)
    return {"code": code if is_code else _INTERNAL_ERROR, "message": message, **data}
