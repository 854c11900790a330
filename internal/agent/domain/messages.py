"""Messages of a conversation, made of parts and independent of any provider.

They contain no reference cycles, so the garbage collector need not visit them (`gc=False`): a long
history has thousands.
"""

import re
from collections.abc import Iterable
from itertools import count
from typing import Any, Literal

import msgspec

from internal.agent.domain.text import replace_surrogates, replace_surrogates_in, truncate

Role = Literal["user", "assistant"]


class Text(msgspec.Struct, frozen=True, tag="text", gc=False):
    """Text of a person or of the model."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image", gc=False):
    """A stored picture for the model, such as of type `image/png`; width and height in pixels.

    Its bytes are read when a request to the provider is encoded; no message contains them.
    """

    media_type: str
    sha256: str
    width: int
    height: int
    uri: str


class Thinking(msgspec.Struct, frozen=True, tag="thinking", gc=False):
    """Reasoning of the model, returned to it unchanged with its signature; not part of the answer.

    `redacted` is the opaque form of the provider; `text` is empty then.
    """

    text: str
    signature: str = ""
    redacted: str = ""


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", gc=False):
    """A tool call of the model.

    `malformed` is the raw argument text if it is not a JSON object; `arguments` is empty then.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    malformed: str | None = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", gc=False):
    """The result of a call. Every call has exactly one."""

    call_id: str
    text: str
    failed: bool = False
    images: tuple[Image, ...] = ()


Part = Text | Image | Thinking | ToolCall | ToolResult


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message of one role. Tool results are parts of a `user` message."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The joined text, without thinking, calls and results."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def thinking(self) -> str:
        """The reasoning that the provider shows, without signatures."""
        parts = (part.text for part in self.parts if isinstance(part, Thinking))
        return "\n\n".join(filter(None, parts))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the order of the reply."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


def user_message(text: str, images: Iterable[Image] = ()) -> Message:
    """Return a user message: the images, then the text if it is not blank."""
    words = (Text(text),) if text.strip() else ()
    return Message("user", (*images, *words))


def join_messages(first: Message, second: Message) -> Message:
    """Return two messages of one role as one: roles must alternate.

    Tool results come first, as providers require after a call.
    """
    parts = (*first.parts, *second.parts)
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    others = tuple(part for part in parts if not isinstance(part, ToolResult))
    return Message(first.role, (*results, *others))


def assign_call_ids(calls: Iterable[ToolCall], used: set[str], prefix: str) -> tuple[ToolCall, ...]:
    """Return the calls with unique ids, ready to be stored.

    An id is replaced if it is empty, used or not valid for every provider. Arguments that are
    nested too deeply become malformed.
    """
    named: list[ToolCall] = []
    for number, call in enumerate(calls, 1):
        name = call.call_id
        if name in used or not _PLAIN_ID.fullmatch(name):
            made = (f"{prefix}-{n}" for n in count(number))
            name = next(each for each in made if each not in used)
        used.add(name)
        arguments, malformed = _storable_arguments(call)
        named.append(
            ToolCall(name, truncate(replace_surrogates(call.name), 128), arguments, malformed)
        )
    return tuple(named)


def without_call_ids(parts: Iterable[Part]) -> list[Part]:
    """Return the parts of a reply with empty call ids.

    Some model servers use the same ids in every reply or every conversation. Runs of a session may
    overlap, so an id that is new to a run can belong to another run of its session.
    """
    return [
        ToolCall("", part.name, part.arguments, part.malformed)
        if isinstance(part, ToolCall)
        else part
        for part in parts
    ]


def text_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the text and thinking of a reply, without calls and empty parts."""
    kept: list[Part] = []
    for part in parts:
        match part:
            case Text(text) if text.strip():
                kept.append(Text(replace_surrogates(text)))
            case Thinking(text, signature, redacted) if text or signature or redacted:
                kept.append(
                    Thinking(
                        replace_surrogates(text),
                        replace_surrogates(signature),
                        replace_surrogates(redacted),
                    )
                )
            case _:
                pass
    return tuple(kept)


def _storable_arguments(call: ToolCall) -> tuple[dict[str, Any], str | None]:
    if call.malformed is not None:
        return {}, truncate(replace_surrogates(call.malformed), _MAX_MALFORMED_CHARS)
    try:
        return replace_surrogates_in(call.arguments), None
    except ValueError as error:
        return {}, f"({error})"


def images_in(messages: Iterable[Message]) -> list[Image]:
    """Return the images of messages and of their tool results, in order."""
    found: list[Image] = []
    for message in messages:
        for part in message.parts:
            if type(part) is Text:  # at once: most parts of a long history are texts
                continue
            if isinstance(part, Image):
                found.append(part)
            elif isinstance(part, ToolResult):
                found += part.images
    return found


_PLAIN_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_MALFORMED_CHARS = 2000
