"""What reading a reply is in every wire format. No I/O: bytes in, words and a reply out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from internal.agent.domain.errors import ModelError, ModelUnreachable
from internal.agent.ports.llm import ModelResponse, TextDelta
from internal.llm.json_text import decode_json
from internal.llm.sse import EventStream

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
        self._stream = EventStream()
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
