"""Adaptation of a stored history to the server that gets it."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import msgspec
from msgspec.structs import replace

from internal.agent.domain.messages import (
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    join_messages,
    user_message,
)
from internal.agent.domain.react.request_messages import RequestMessages
from internal.agent.ports.llm import ModelRequest
from internal.llm.lenient_json import encode_json
from internal.llm.model_family import is_same_family
from internal.model_providers.dialect import CallIdForm, Dialect

CONTINUE = user_message("(continue)")
"""Follows a history that ends with the words of a model: many servers take none that does."""
READ = "(I have the results.)"
"""Stands between results and a message of a person where the latter may not follow at once."""
NO_REASONING = "."
"""Stands for the reasoning of another model, where a server wants some: Kimi takes "" for none."""
_MISSING_RESULT = "(The result of this call is not known.)"
_NINE = 9
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_nine = re.compile(r"[a-zA-Z0-9]{9}")
_KIMI = re.compile(r"kimi[-_.]?k2", re.IGNORECASE)
_MAX_NAME_CHARACTERS = 64
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class Target(msgspec.Struct, frozen=True):
    """The server and model that get the messages of a request, and the dialect of the server.

    `images` are the images of the request in base64, by SHA-256.
    """

    origin: str
    dialect: Dialect
    ids: CallIdForm
    images: Mapping[str, str]


def target_of(request: ModelRequest, dialect: Dialect) -> Target:
    """Return the target of a request."""
    form = call_id_form(dialect, request.origin)
    return Target(request.origin, dialect, form, request.images)


def fitted(messages: Sequence[Message], dialect: Dialect, origin: str) -> Sequence[Message]:
    """Return messages whose roles alternate, from `user` on, and whose calls have results and ids.

    `RequestMessages` are so already, except that two runs of a session may have had the same ids.
    Of others, results without a call become words, calls without a result get one, and neighbours
    of one role are joined.

    Args:
        messages: the history.
        dialect: what the server takes.
        origin: the provider and the model that get the messages, as in `Message.origin`.
    """
    whole = messages if isinstance(messages, RequestMessages) else [*_repaired(messages)]
    form = call_id_form(dialect, origin)
    is_plain = form != "functions" and dialect.text_with_calls
    if not dialect.tools or (
        is_plain and isinstance(whole, RequestMessages) and not whole.has_equal_ids
    ):
        return whole
    exchanges = _numbered_exchanges(whole)
    changed = _with_other_ids(exchanges, form, origin)
    if not dialect.text_with_calls:
        changed |= _without_text([(at, changed.get(at, each)) for at, each in exchanges])
    return _with_messages(whole, changed)


def call_id_form(dialect: Dialect, origin: str) -> CallIdForm:
    """Return the form of ids that a server takes, or that its model was trained with."""
    is_kimi = dialect.call_ids == "any" and _KIMI.search(origin)
    return "functions" if is_kimi else dialect.call_ids


def is_unanswered(messages: Sequence[Message]) -> bool:
    """Return True if the last message is not the model's own."""
    return bool(messages) and messages[-1].role == "user"


def first_with_system(
    request: ModelRequest, messages: Sequence[Message], dialect: Dialect
) -> Message | None:
    """Return the first message with the system prompt, for servers that have no role for it.

    None leaves the system prompt to the format. `messages` are fitted.
    """
    if dialect.system_role or not request.system.strip():
        return None
    first = messages[0] if messages else CONTINUE
    return Message("user", (Text(request.system), *first.parts), first.origin)


def in_words(message: Message) -> Message:
    """Return the message with its calls and results as words, for models without tools."""
    if not any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
        return message
    return Message(message.role, tuple(_words(message.parts)), message.origin)


def call_id_for(part: ToolCall | ToolResult, form: CallIdForm, *, is_own: bool) -> str | None:
    """Return the id that a server gave, or one in the form that it takes.

    None leaves the id to the format. `is_own`: the server that gets the id gave it. The same call
    has the same id in every request.
    """
    if form == "functions":  # `fitted` has made them
        return part.wire_id or None
    if is_own and part.wire_id and (form == "any" or _nine.fullmatch(part.wire_id)):
        return part.wire_id
    if form == "any":
        return None
    digest = hashlib.blake2s(part.call_id.encode("utf-8", "replace"), digest_size=8)
    number = int.from_bytes(digest.digest())
    signs = []
    for _ in range(_NINE):
        number, at = divmod(number, len(_ALPHABET))
        signs.append(_ALPHABET[at])
    return "".join(signs)


_Numbered = list[tuple[int, Message]]


def _numbered_exchanges(messages: Sequence[Message]) -> _Numbered:
    """Return the messages with calls or results, with their indexes."""
    if isinstance(messages, RequestMessages):
        return messages.numbered_exchanges()
    kinds = ToolCall | ToolResult
    return [
        (at, each)
        for at, each in enumerate(messages)
        if any(isinstance(part, kinds) for part in each.parts)
    ]


def _with_messages(
    messages: Sequence[Message], changed: Mapping[int, Message]
) -> Sequence[Message]:
    if not changed:
        return messages
    if isinstance(messages, RequestMessages):
        return messages.with_messages(changed)
    return [changed.get(at, each) for at, each in enumerate(messages)]


def _with_other_ids(exchanges: _Numbered, form: CallIdForm, origin: str) -> dict[int, Message]:
    """Return the messages in which the ids of the model change, by their indexes.

    Of equal ids the first call keeps its own. Where the form numbers the calls, every call gets an
    id.
    """
    used: set[str] = set()
    changed: dict[str, str] = {}
    for _, message in exchanges:
        is_own = message.role == "assistant" and is_same_family(message.origin, origin)
        for call in message.calls if message.role == "assistant" else ():
            wire_id = call.wire_id if is_own else ""
            if form == "functions" and (not wire_id or wire_id in used):
                name = _NOT_IN_NAMES.sub("_", call.name)[:_MAX_NAME_CHARACTERS] or "_"
                ids = (f"functions.{name}:{n}" for n in count(len(used)))
                changed[call.call_id] = wire_id = next(each for each in ids if each not in used)
            elif wire_id in used:
                changed[call.call_id] = ""
            used.add(wire_id or call.call_id)
    if not changed:
        return {}
    found: dict[int, Message] = {}
    for at, message in exchanges:
        parts = tuple(
            replace(part, wire_id=changed[part.call_id])
            if isinstance(part, ToolCall | ToolResult) and part.call_id in changed
            else part
            for part in message.parts
        )
        found[at] = replace(message, parts=parts)
    return found


def _without_text(exchanges: _Numbered) -> dict[int, Message]:
    """Return the messages with text beside calls, and their results, which tell that text."""
    changed: dict[int, Message] = {}
    text = ""
    for at, message in exchanges:
        if message.calls:
            text = message.text.strip()
            if text:
                parts = tuple(part for part in message.parts if not isinstance(part, Text))
                changed[at] = replace(message, parts=parts)
        elif text:
            first, *others = message.parts
            if isinstance(first, ToolResult):
                told = f"[You wrote before this call: {text}]\n{first.text}"
                first = replace(first, text=told)
            changed[at] = replace(message, parts=(first, *others))
            text = ""
    return changed


def _repaired(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages as `fitted` returns them."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            joined[-1] = join_messages(joined[-1], message)
        else:
            joined.append(message)
    if joined and joined[0].role == "assistant":
        joined.insert(0, CONTINUE)
    asked = Message("assistant", ())
    for message in joined:
        if message.role == "user":
            yield _with_results(message, asked)
        else:
            yield message
        asked = message
    if asked.calls:
        yield _with_results(Message("user", ()), asked)


def _with_results(message: Message, asked: Message) -> Message:
    """Return a message of the role `user` with one result for each call of the message before."""
    given: dict[str, ToolResult] = {}
    others: list[Part] = []
    known = {call.call_id for call in asked.calls}
    for part in message.parts:
        if not isinstance(part, ToolResult):
            others.append(part)
        elif part.call_id in known and part.call_id not in given:
            given[part.call_id] = part
        else:
            others += _words([part])
    results = (
        replace(
            given.get(call.call_id) or ToolResult(call.call_id, _MISSING_RESULT, failed=True),
            wire_id=call.wire_id,
        )
        for call in asked.calls
    )
    return Message(message.role, (*results, *others), asked.origin if asked.calls else "")


def _words(parts: "Sequence[Part] | Iterator[Part]") -> Iterator[Part]:
    for part in parts:
        match part:
            case ToolCall(_, name, arguments):
                yield Text(f"[I called {name} with {encode_json(arguments).decode()}]")
            case ToolResult(_, text, failed, images):
                what = "The call failed" if failed else "The result of the call"
                yield Text(f"[{what}: {text}]")
                yield from images
            case _:
                yield part
