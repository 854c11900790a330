"""The messages of a request, with derived data that is computed once and kept with them.

A message never changes, and the requests of a session contain mostly the same ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

import msgspec

from internal.agent.domain.messages import Message

MAX_KEPT_BYTES = 1_000
"""A longer encoding is made for each request: that costs about as much as to send it, and kept
ones would double the memory that long texts take."""


class WeighedMessage(msgspec.Struct, gc=False):
    """A message with its estimated tokens, and its encoding in the `format` of a provider.

    Only the encoding changes. Without reference cycles, as `Message` is.
    """

    message: Message
    tokens: int
    is_exchange: bool
    has_images: bool
    format: str = ""
    encoded: bytes = b""

    def encode(self, format_name: str, encode: Callable[[Message], bytes]) -> bytes:
        """Return the encoding in a format; see `RequestMessages.encoded`."""
        if self.format == format_name:
            return self.encoded
        encoded = encode(self.message)
        if len(encoded) <= MAX_KEPT_BYTES and not self.has_images:
            # a copy: an encoder may leave unused memory behind the bytes that it returns
            self.format, self.encoded = format_name, bytes(memoryview(encoded))
        return encoded


class RequestMessages(Sequence[Message]):
    """The messages of a request: roles alternate, and every call has its result.

    `tokens` are their estimated tokens, if they are known already. `has_equal_ids`: two calls have,
    or may have, the same `wire_id`.
    """

    def __init__(
        self,
        weighed: Sequence[WeighedMessage],
        tokens: int | None = None,
        *,
        has_equal_ids: bool = True,
    ) -> None:
        self.has_equal_ids = has_equal_ids
        self._weighed = weighed
        self._tokens = tokens

    @property
    def tokens(self) -> int:
        """Their estimated tokens."""
        if self._tokens is None:
            self._tokens = sum([each.tokens for each in self._weighed])
        return self._tokens

    def followed_by(self, weighed: Sequence[WeighedMessage]) -> "RequestMessages":
        """Return these messages and more, which have no calls."""
        both = (*self._weighed, *weighed)
        return RequestMessages(both, has_equal_ids=self.has_equal_ids)

    def with_images(self) -> list[Message]:
        """Return the messages that contain images or have results with images."""
        return [each.message for each in self._weighed if each.has_images]

    def exchanges(self) -> list[Message]:
        """Return the messages with calls or results."""
        return [each.message for each in self._weighed if each.is_exchange]

    def numbered_exchanges(self) -> list[tuple[int, Message]]:
        """Return the messages with calls or results, with their indexes."""
        return [(at, each.message) for at, each in enumerate(self._weighed) if each.is_exchange]

    def with_messages(self, changed: Mapping[int, Message]) -> "RequestMessages":
        """Return the messages with other ones at some indexes; nothing is kept of these."""
        weighed = [*self._weighed]
        for at, message in changed.items():
            old = weighed[at]
            weighed[at] = WeighedMessage(message, old.tokens, old.is_exchange, old.has_images)
        return RequestMessages(weighed, self._tokens)

    def encoded(self, format_name: str, encode: Callable[[Message], bytes]) -> list[bytes]:
        """Return the encodings of the messages, and keep short ones for later requests.

        `encode` must return the same for equal messages without images and the same format.
        """
        return [
            each.encoded if each.format == format_name else each.encode(format_name, encode)
            for each in self._weighed
        ]

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> "RequestMessages": ...
    def __getitem__(self, at: int | slice) -> "Message | RequestMessages":
        """Return a message, or some of them."""
        if isinstance(at, int):
            return self._weighed[at].message
        return RequestMessages(self._weighed[at])

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._weighed)

    def __iter__(self) -> Iterator[Message]:
        """Iterate over the messages."""
        return iter([each.message for each in self._weighed])

    def __repr__(self) -> str:
        """Return the messages as a tuple is shown."""
        return repr(tuple(self))


def encode_messages(
    messages: Sequence[Message], format_name: str, encode: Callable[[Message], bytes]
) -> list[bytes]:
    """Return the encodings of messages, kept ones if there are; see `RequestMessages.encoded`."""
    if isinstance(messages, RequestMessages):
        return messages.encoded(format_name, encode)
    return [encode(message) for message in messages]
