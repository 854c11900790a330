"""Reads streamed responses of any wire format. No I/O: bytes in, text deltas and a response out."""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from internal.agent.domain.errors import ModelError, ModelUnreachable
from internal.agent.domain.text import replace_surrogates
from internal.agent.ports.llm import MAX_REPLY_CHARACTERS, ModelResponse, TextDelta
from internal.llm.lenient_json import decode_json, load_json

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_TOKENS = 2**53
"""A token count of this size or more is not one: it has no exact representation on the page."""

_EVENT = re.compile(rb"(?m:^)(?:event:[^\n]*\n)?data: ([^\n]*)\n\n")
_FIELD = re.compile(rb"[A-Za-z_-]*(:|$)")
_INVALID = "The model's address did not send a valid response."
_log = logging.getLogger(__name__)


class EventDataReader:
    """Splits a server-sent event stream, cut anywhere, into the `data` of its events.

    Event names are ignored: the known providers repeat them inside the data. Lines end with LF or
    CRLF. An event is complete at its empty line (WHATWG HTML, section 9.2.6). Unknown fields are
    ignored.
    """

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes and return the data of the events that they complete.

        Raises:
            ModelUnreachable: a line is no field of an event, or exceeds `MAX_LINE_BYTES`.
        """
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            return self._hold(chunk)
        if self._held:
            head = b"".join((*self._held, head))
            self._held, self._held_bytes = [], 0
        if tail:
            self._hold(tail)
        if b"\r" in head:
            head = head.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if not self._data:
            pieces = _EVENT.split(head + b"\n")
            if not any(pieces[::2]):  # almost always: nothing is between such events
                return pieces[1::2]
        return self._take_lines(head.split(b"\n"))

    def _take_lines(self, lines: list[bytes]) -> list[bytes]:
        complete: list[bytes] = []
        data = self._data
        for line in lines:
            if not line:
                if data:
                    complete.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line.startswith(b"data: "):
                data.append(line[6:])
            elif not line.startswith(b"event:"):
                self._take_field(line)
        return complete

    def _hold(self, piece: bytes) -> list[bytes]:
        self._held.append(piece)  # joined once a newline comes, to avoid quadratic copying
        self._held_bytes += len(piece)
        if self._held_bytes > MAX_LINE_BYTES:
            raise ModelUnreachable("The provider sent a line that exceeds the size limit.")
        return []

    def _take_field(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not _FIELD.match(line):
            raise ModelUnreachable(_INVALID)


_T = TypeVar("_T")


class ResponseReader(ABC):
    """Reads one response from server-sent events.

    `is_complete` is True once the whole response arrived: later events may add token counts, and a
    broken connection no longer matters. `is_finished` is True once no further event is of use.
    """

    def __init__(self) -> None:
        self.is_complete = self.is_finished = False
        self._cut = False  # the response exceeded MAX_REPLY_CHARACTERS
        self._failure: ModelError | None = None
        self._stream = EventDataReader()
        self._size = 0
        self._words: list[TextDelta] = []
        self._pieces: list[str] = []  # of the next delta
        self._reasoning = False  # what kind they are
        self._halves = {False: "", True: ""}  # of a character that two deltas share, by `reasoning`

    @property
    def size(self) -> int:
        """How many characters of text and arguments were received so far."""
        return self._size

    def feed(self, chunk: bytes) -> list[TextDelta]:
        """Take the next bytes of the stream and return their text deltas, joined by kind.

        An error among them is kept for `reply`, because the text before it was received.
        """
        self._words = []
        try:
            for data in self._stream.feed(chunk):
                if self.is_finished:
                    break
                self._take(data)
        except ModelError as error:
            self._fail(error)
        self._join_pieces()
        return self._words

    def end(self) -> list[TextDelta]:
        """Take the end of the stream and return text that was held back until now."""
        return []

    def reply(self) -> ModelResponse:
        """Return the complete response.

        Raises:
            ModelUnreachable: the stream ended early, or this is not the protocol.
            ModelError: the provider reported an error inside the stream.
        """
        if self._failure is not None:
            raise self._failure
        if not (self.is_complete or self._cut):
            raise ModelUnreachable(
                "The connection to the model was lost in the middle of a response."
            )
        return self._reply()

    @abstractmethod
    def _take(self, data: bytes) -> None:
        """Process the data of one event."""

    @abstractmethod
    def _reply(self) -> ModelResponse:
        """Build the response, which is complete or cut at the size limit."""

    def _fail(self, error: ModelError) -> None:
        self.is_finished = True
        if not self.is_complete:
            self._failure = error

    def _say(self, text: str | None, *, reasoning: bool = False) -> None:
        if not text:
            return
        self._grow(len(text))
        if reasoning is not self._reasoning:
            self._join_pieces()
            self._reasoning = reasoning
        self._pieces.append(text)

    def _join_pieces(self) -> None:
        if not self._pieces:
            return
        text, n, reasoning = "".join(self._pieces), len(self._pieces), self._reasoning
        self._pieces = []
        text = self._halves[reasoning] + text
        whole = len(text) - ("\ud800" <= text[-1] <= "\udbff")
        self._halves[reasoning] = text[whole:]
        if text := replace_surrogates(text[:whole]):
            self._words.append(TextDelta(text, n, reasoning))

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > MAX_REPLY_CHARACTERS:
            self._cut = self.is_finished = True


def parse_arguments(raw: str, *, cut: bool = False) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of a call; if they are not a JSON object, none and the raw text.

    No text stands for no arguments, unless the call was `cut`.
    """
    if not raw.strip() and not cut:
        return {}, None
    try:
        arguments = decode_json(replace_surrogates(raw).encode())
    except (ValueError, RecursionError):
        arguments = None
    return (arguments, None) if isinstance(arguments, dict) else ({}, raw)


def decode_event(data: bytes, decode: Callable[[bytes], _T], kind: type[_T]) -> _T:
    """Decode an event, tolerating broken UTF-8. Lone surrogates stay: the next event has the rest.

    Raises:
        ModelUnreachable: this is not the protocol.
    """
    try:
        return decode(data)
    except (ValueError, RecursionError):
        pass
    try:
        return msgspec.convert(load_json(data), kind)
    except (ValueError, RecursionError) as error:
        raise ModelUnreachable(_INVALID) from error


def token_count(value: object) -> int | None:
    """Return a token count of a provider, or None if it is none or cannot be right."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_TOKENS:
        return value
    if value is not None:
        _log.warning("token count of the provider ignored", extra={"count": str(value)[:80]})
    return None
