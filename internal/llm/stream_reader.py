"""Reads streamed responses of any wire format. No I/O: bytes in, text deltas and a response out."""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from internal.agent.domain.errors import ModelError, ModelUnreachable
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.react.steps import ReplyStop
from internal.agent.domain.text import replace_surrogates
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import (
    MAX_REPLY_CHARACTERS,
    ModelRequest,
    ModelResponse,
    ReplyRevised,
    TextDelta,
)
from internal.llm.lenient_json import decode_json, load_json
from internal.llm.think_tags import Segment, ThinkTags, split_thinking
from internal.llm.written_calls import WrittenCalls

MAX_LINE_BYTES = 24 * 1024 * 1024
"""A picture comes in one line; see `MAX_PICTURE_BYTES`."""
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
StreamedText = TextDelta | ReplyRevised


STOPS: dict[str, ReplyStop] = {
    "stop": "end",
    "end_turn": "end",
    "stop_sequence": "end",
    "eos": "end",
    "tool_calls": "tools",
    "tool_use": "tools",
    "function_call": "tools",
    "pause_turn": "paused",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "filtered",
    "sensitive": "filtered",
    "refusal": "refused",
}
"""Reasons why a reply ended, in both formats; any other is an end."""
# A server may give several: one that says that the reply is not whole counts.
_STOP_ORDER: tuple[ReplyStop, ...] = ("end", "tools", "paused", "length", "filtered", "refused")


class ResponseReader(ABC):
    """Reads one response from server-sent events, or from one document in their place.

    `is_complete` is True once the whole response arrived: later events may add token counts, and a
    broken connection no longer matters. `is_finished` is True once no further event is of use.
    `has_usage` is True once the provider sent token counts.

    Args:
        tools: the tools that the model may call; calls of them are read from the text as well.
        begins_inside: the last reply of the model began with reasoning that only a closing tag
            ended; see `ThinkTags`.
    """

    def __init__(self, tools: Sequence[ToolSpec] = (), *, begins_inside: bool = False) -> None:
        self.is_complete = self.is_finished = self.has_usage = False
        self._tools, self._begins_inside = tools, begins_inside
        self._cut = False  # the response exceeded MAX_REPLY_CHARACTERS
        self._stop: ReplyStop | None = None
        self._failure: ModelError | None = None
        self._stream = EventDataReader()
        self._document: list[bytes] | None = None
        self._document_bytes = 0
        self._begun = False
        self._size = 0
        self._words: list[StreamedText] = []
        self._pieces: list[str] = []  # of the next delta
        self._reasoning = False  # what kind they are
        self._halves = {False: "", True: ""}  # of a character that two deltas share, by `reasoning`
        self._tags = ThinkTags(begins_inside=begins_inside, react=bool(tools))
        self._written = WrittenCalls(tools) if tools else None
        self._thoughts_said: list[str] = []  # in fields of their own

    @property
    def size(self) -> int:
        """Characters of text and arguments received so far."""
        return self._size

    @property
    def closed_alone(self) -> bool | None:
        """True if a closing tag alone ended the reasoning, False if none came as expected."""
        return self._tags.closed_alone

    def feed(self, chunk: bytes) -> list[StreamedText]:
        """Take the next bytes of the stream and return their text deltas, joined by kind.

        An error among them is kept for `reply`, because the text before it was received.
        """
        self._words = []
        if not self._begun:
            self._look_at_start(chunk)
        if self._document is not None:
            self._keep(chunk)
            return self._words
        try:
            for data in self._stream.feed(chunk):
                if self.is_finished:
                    break
                self._take(data)
        except ModelError as error:
            self._fail(error)
        if self._pieces:
            self._join_pieces()
        return self._words

    def end(self) -> list[StreamedText]:
        """Take the end of the stream and return text that was held back until now."""
        document, self._document = self._document, None
        words: list[StreamedText] = []
        if document is not None and not self.is_finished:
            words = self.feed(b"data: " + b"".join(document).replace(b"\n", b" ") + b"\n\n")
        self._words = words
        self._end_text()
        return self._words

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

    @property
    def _is_cut(self) -> bool:
        return self._cut or self._stop == "length"

    def _look_at_start(self, chunk: bytes) -> None:
        """Some servers answer a streaming request with one document."""
        if start := chunk.lstrip():
            self._begun = True
            if start.startswith(b"{"):
                self._document = []

    def _keep(self, chunk: bytes) -> None:
        """Keep a part of a response that is one document."""
        document = self._document
        if document is None or self.is_finished:
            return
        document.append(chunk)
        self._document_bytes += len(chunk)
        if self._document_bytes > MAX_LINE_BYTES:
            self._fail(
                ModelUnreachable("The provider sent a document that exceeds the size limit.")
            )

    def _fail(self, error: ModelError) -> None:
        self.is_finished = True
        if not self.is_complete:
            self._failure = error

    def _end_with(self, reason: str) -> None:
        """Note why the reply ended."""
        stop = STOPS.get(reason, "end")
        if self._stop is None or _STOP_ORDER.index(stop) > _STOP_ORDER.index(self._stop):
            self._stop = stop

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
        if not (text := replace_surrogates(text[:whole])):
            return
        if reasoning:
            self._thoughts_said.append(text)
            self._words.append(TextDelta(text, n, reasoning=True))
        elif self._tags.passes(text):
            self._answer(text, n)
        else:
            for segment in self._tags.feed(text):
                self._show(segment, n)

    def _show(self, segment: Segment, n: int = 1) -> None:
        """Show the next text of the content."""
        if segment.replaces:
            self._written = self._new_written_calls()
            thoughts = [*self._thoughts_said, *([segment.text] if segment.reasoning else [])]
            self._words.append(ReplyRevised("".join(thoughts)))
        elif segment.reasoning and segment.text:
            self._words.append(TextDelta(segment.text, n, reasoning=True))
        if not segment.reasoning:
            self._answer(segment.text, n)

    def _answer(self, text: str, n: int = 1) -> None:
        if self._written is not None:
            text = self._written.feed(text)
        if text:
            self._words.append(TextDelta(text, n))

    def _new_written_calls(self) -> WrittenCalls | None:
        return None if self._written is None else WrittenCalls(self._tools)

    def _expect_no_written_calls(self) -> None:
        """Show held text as it is: the server knows the calls of its model."""
        written, self._written = self._written, None
        if written is not None:
            self._join_pieces()
            if text := written.abandon():
                self._words.append(TextDelta(text))

    def _end_text(self) -> None:
        """Show the text of the content that was held back: nothing follows it."""
        for segment in self._tags.end(is_cut=self._is_cut):
            self._show(segment)
        if self._written is not None:
            text = self._written.end(is_cut=self._is_cut)
            self._written = self._new_written_calls()
            if text:
                self._words.append(TextDelta(text))

    def _read_content(
        self, text: str, *, is_first: bool, may_call: bool
    ) -> tuple[str, str, list[ToolCall]]:
        """Return the reasoning, the answer and the calls in a whole text of the content."""
        thought, answer = "", text
        if is_first:
            thought, answer = split_thinking(
                text,
                begins_inside=self._begins_inside,
                react=bool(self._tools),
                is_cut=self._is_cut,
            )
        if not (may_call and self._tools):
            return thought, answer, []
        written = WrittenCalls(self._tools)
        shown = written.feed(answer) + written.end(is_cut=self._is_cut)
        return thought, shown, written.calls

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > MAX_REPLY_CHARACTERS:
            self._cut = self.is_finished = True


def offered_tools(request: ModelRequest) -> Sequence[ToolSpec]:
    """Return the tools that the model may call."""
    return () if request.tool_choice == "none" else (*request.tools, *request.found)


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
    """Return a token count of a provider, or None if it is missing or impossible."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_TOKENS:
        return value
    if value is not None:
        _log.warning("token count of the provider ignored", extra={"count": str(value)[:80]})
    return None


class ClosingTags:
    """Models that end reasoning with a closing tag alone: their next replies begin so too."""

    def __init__(self) -> None:
        self._models: set[str] = set()

    def __contains__(self, model: str) -> bool:
        """Return whether the last reply of a model with such a tag had no opening one."""
        return model in self._models

    def learn(self, model: str, closed_alone: bool | None) -> None:
        """Take notice of a reply; None says nothing about the model."""
        if closed_alone is not None:
            (self._models.add if closed_alone else self._models.discard)(model)
