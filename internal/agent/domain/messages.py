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

REFUSED_MESSAGE = "[a message that a content filter refused, and what followed it, left out]"

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

    `redacted` is the opaque form of the provider; `text` is empty then. `opaque`: as in `ToolCall`.
    """

    text: str
    signature: str = ""
    redacted: str = ""
    opaque: dict[str, Any] | None = None


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", gc=False):
    """A tool call of the model.

    `malformed` is the raw argument text if it is not a JSON object; `arguments` is empty then.
    `opaque` are fields of the wire format, by their name there, that only the provider reads. They
    go back unchanged to the provider and model family that sent them, and to nobody else.
    `wire_id` is the id that the server gave, "" if it gave none, or one that the session has.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    malformed: str | None = None
    opaque: dict[str, Any] | None = None
    wire_id: str = ""


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", gc=False):
    """The result of a call, with its `wire_id`. Every call has exactly one."""

    call_id: str
    text: str
    failed: bool = False
    images: tuple[Image, ...] = ()
    wire_id: str = ""


Part = Text | Image | Thinking | ToolCall | ToolResult


class Message(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A message of one role. Tool results are parts of a `user` message.

    `origin` is the provider and the model that wrote it, such as `deepseek:deepseek-flash`, or the
    calls whose results it has; "" for messages of people and where it is not known. `is_refused`: a
    content filter of a provider refused the run that it belongs to, so it is not sent any more.
    """

    role: Role
    parts: tuple[Part, ...]
    origin: str = ""
    is_refused: bool = False

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


def without_refused(message: Message) -> Message:
    """Return the sent form of a message: a note in place of refused words of a person.

    Of a refused run nothing else is left.
    """
    if not message.is_refused:
        return message
    parts = message.parts
    is_of_person = message.role == "user" and not any(isinstance(p, ToolResult) for p in parts)
    return Message(message.role, (Text(REFUSED_MESSAGE),) if is_of_person else ())


def join_messages(first: Message, second: Message) -> Message:
    """Return two messages of one role as one: roles must alternate.

    Tool results come first, as providers require after a call.
    """
    origin = first.origin or second.origin
    if first.origin != second.origin:
        if all(map(_depends_on_origin, (first, second))):
            origin, first, second = "", _without_origin(first), _without_origin(second)
        elif _depends_on_origin(second):
            origin = second.origin
    parts = (*first.parts, *second.parts)
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    others = tuple(part for part in parts if not isinstance(part, ToolResult))
    return Message(first.role, (*results, *others), origin)


def _depends_on_origin(message: Message) -> bool:
    """Return True if it matters which model wrote the message."""
    return any(isinstance(part, Thinking | ToolCall | ToolResult) for part in message.parts)


def _without_origin(message: Message) -> Message:
    """Return the message without the parts that only their own model gets back."""
    parts: list[Part] = []
    for part in message.parts:
        match part:
            case ToolCall():
                parts.append(msgspec.structs.replace(part, opaque=None, wire_id=""))
            case ToolResult():
                parts.append(msgspec.structs.replace(part, wire_id=""))
            case Thinking():
                pass
            case _:
                parts.append(part)
    return Message(message.role, tuple(parts))


def assign_call_ids(calls: Iterable[ToolCall], used: set[str], prefix: str) -> tuple[ToolCall, ...]:
    """Return the calls with unique ids, ready to be stored.

    An id is replaced if it is empty, used or not valid for every provider. A `wire_id` is kept if
    it is new. Arguments that are nested too deeply become malformed.
    """
    named: list[ToolCall] = []
    for number, call in enumerate(calls, 1):
        name = call.call_id
        if name in used or not _PLAIN_ID.fullmatch(name):
            made = (f"{prefix}-{n}" for n in count(number))
            name = next(each for each in made if each not in used)
        wire_id = call.wire_id
        if wire_id in used or len(wire_id) > _MAX_WIRE_ID_CHARS:
            wire_id = ""
        used.add(name)
        if wire_id:
            used.add(wire_id)
        arguments, malformed = _storable_arguments(call)
        tool = truncate(replace_surrogates(call.name), 128)
        opaque = storable_opaque(call.opaque)
        named.append(ToolCall(name, tool, arguments, malformed, opaque, wire_id))
    return tuple(named)


def storable_opaque(opaque: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return opaque fields as they can be stored; None if they are too large or nested."""
    if not opaque:
        return None
    try:
        kept = replace_surrogates_in(opaque)
    except ValueError:
        return None
    return kept if len(msgspec.json.encode(kept)) <= MAX_OPAQUE_BYTES else None


def without_call_ids(parts: Iterable[Part]) -> list[Part]:
    """Return the parts of a reply with empty call ids; the ids of the server are the `wire_id`.

    Some model servers use the same ids in every reply or every conversation. Runs of a session may
    overlap, so an id that is new to a run can belong to another run of its session.
    """
    return [
        msgspec.structs.replace(part, call_id="", wire_id=replace_surrogates(part.call_id))
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
            case Thinking(text, signature, redacted, opaque) if (
                text or signature or redacted or opaque
            ):
                kept.append(
                    Thinking(
                        replace_surrogates(text),
                        replace_surrogates(signature),
                        replace_surrogates(redacted),
                        storable_opaque(opaque),
                    )
                )
            case _:
                pass
    return tuple(kept)


def opaque_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the opaque parts of an answer without calls that the provider expects back."""
    found = (
        storable_opaque(part.opaque) for part in parts if isinstance(part, Thinking) and part.opaque
    )
    return tuple(Thinking("", opaque=opaque) for opaque in found if opaque)


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
_MAX_WIRE_ID_CHARS = 100_000
"""Some routers put the signatures of Gemini into the ids."""
MAX_OPAQUE_BYTES = 1024 * 1024
