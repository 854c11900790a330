"""The data lines of a server-sent event stream, out of chunks cut anywhere."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from internal.agent.domain.errors import ModelError, ModelUnreachable
from internal.agent.ports.llm import ModelResponse, TextDelta
from internal.llm.lenient_json import decode_json

MAX_LINE_BYTES = 8 * 1024 * 1024


class EventDataReader:
    """Collects bytes and gives the `data` of every event that is complete.

    Event names are not looked at: the providers we know repeat them inside the data. Lines end with
    LF or CRLF. An event counts once its empty line has come (WHATWG HTML, 9.2.6).
    """

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes, return the data of the events that they complete.

        Raises:
            ModelUnreachable: a line is longer than any provider sends.
        """
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            return self._hold(chunk)
        lines = b"".join((*self._held, head)).split(b"\n")
        self._held, self._held_bytes = [], 0
        if tail:
            self._hold(tail)
        return [data for line in lines if (data := self._line(line)) is not None]

    def _hold(self, piece: bytes) -> list[bytes]:
        self._held.append(piece)  # joined only when a newline comes: no quadratic copying
        self._held_bytes += len(piece)
        if self._held_bytes > MAX_LINE_BYTES:
            raise ModelUnreachable("The provider sent a line without end instead of a reply.")
        return []

    def _line(self, line: bytes) -> bytes | None:
        line = line.removesuffix(b"\r")
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            self._data = []
            return data
        return None


# Far above what 128k output tokens can be. What comes after it is not read: the reply ends there
# with stop `length`, as if the model had run into its own limit.
MAX_REPLY_CHARACTERS = 2_000_000

_T = TypeVar("_T")


class ReplyReader(ABC):
    """Reads one reply out of server-sent events.

    `whole` once all of the reply is there: what still comes may count tokens, and an end without
    good manners cannot harm it any more. `over` once nothing that comes can be of use.
    """

    def __init__(self) -> None:
        self.whole = self.over = False
        self._cut = False  # the reply was longer than any reply is
        self._failure: ModelError | None = None
        self._stream = EventDataReader()
        self._size = 0
        self._words: list[TextDelta] = []

    def feed(self, chunk: bytes) -> list[TextDelta]:
        """Take the next bytes of the stream; return the words in them, joined by kind.

        An error among them is kept for `reply`: the words before it were said.
        """
        self._words = []
        try:
            for data in self._stream.feed(chunk):
                if self.over:
                    break
                self._take(data)
        except ModelError as error:
            self._fail(error)
        return self._words

    def end(self) -> list[TextDelta]:
        """Take the end of the stream; return the words that were held back until now."""
        return []

    def reply(self) -> ModelResponse:
        """Return the whole reply.

        Raises:
            ModelUnreachable: the stream ended before the reply did, or this is not the protocol.
            ModelError: the provider reported an error inside the stream.
        """
        if self._failure is not None:
            raise self._failure
        if not (self.whole or self._cut):
            raise ModelUnreachable(
                "The connection to the model broke off in the middle of a reply."
            )
        return self._reply()

    @abstractmethod
    def _take(self, data: bytes) -> None:
        """Take the data of one event."""

    @abstractmethod
    def _reply(self) -> ModelResponse:
        """Put together the reply, which is `whole` or cut."""

    def _fail(self, error: ModelError) -> None:
        self.over = True
        if not self.whole:
            self._failure = error

    def _say(self, text: str | None, *, reasoning: bool = False) -> None:
        if not text:
            return
        self._grow(len(text))
        last = self._words[-1] if self._words else None
        if last is not None and last.reasoning is reasoning:
            self._words[-1] = TextDelta(last.text + text, last.n + 1, reasoning)
        else:
            self._words.append(TextDelta(text, 1, reasoning))

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > MAX_REPLY_CHARACTERS:
            self._cut = self.over = True


def arguments_of(raw: str) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of a call, or none and the raw text when it is no JSON object."""
    if not raw.strip():
        return {}, None
    try:
        arguments = decode_json(raw.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        arguments = None
    return (arguments, None) if isinstance(arguments, dict) else ({}, raw)


def decoded(data: bytes, decode: Callable[[bytes], _T], kind: type[_T]) -> _T:
    """Return an event; half characters and lone surrogates are worth keeping a reply for.

    Raises:
        ModelUnreachable: this is not the protocol.
    """
    try:
        return decode(data)
    except (ValueError, RecursionError):
        pass
    try:
        return msgspec.convert(decode_json(data), kind)
    except (ValueError, RecursionError) as error:
        raise ModelUnreachable("What came from the model's address was not a reply.") from error
