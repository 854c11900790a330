"""The input of a response, read as messages of a conversation."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from internal.agent.domain.text import truncate
from internal.channels.web.completions.messages import (
    ConversationMessage,
    describe_calls,
    read_content,
    read_role,
)

Item = Annotated[dict[str, Any], Meta(max_length=100)]

MAX_ITEM_CHARACTERS = 2_000
"""Number of characters that a message shows of an item without a text."""

_INSTRUCTING_ROLES = frozenset({"system", "developer"})
_REFERENCE = "item_reference"
_NOT_SAID = frozenset(
    {"reasoning", "compaction", "compaction_trigger", "additional_tools", "mcp_list_tools"}
)
"""Items that are not part of the conversation."""
_ABOUT_ITEMS = frozenset({"id", "call_id", "type", "status", "caller"})
"""Members of an item that say nothing to a reader."""


def read_input(
    given: str | Sequence[Item], instructions: str, answers: Mapping[str, str]
) -> list[ConversationMessage]:
    """Return the instructions and the input of a response as messages.

    Calls of tools and their results are read as text. `answers` are the texts of the messages that
    items refer to, by id.

    Raises:
        InvalidRequest: a message has a role that is not known.
    """
    messages = (
        [ConversationMessage("instructions", (instructions,))] if instructions.strip() else []
    )
    if isinstance(given, str):
        return [*messages, ConversationMessage("user", (given,))]
    for number, item in enumerate(given):
        if _kind(item) not in _NOT_SAID:
            messages.append(_message(item, f"input[{number}]", answers))
    return messages


def references(given: str | Sequence[Item]) -> list[str]:
    """Return the ids of the earlier messages that items refer to, in order."""
    if isinstance(given, str):
        return []
    return [str(item.get("id")) for item in given if _kind(item) == _REFERENCE]


def items_after_reference(given: str | Sequence[Item]) -> str | Sequence[Item]:
    """Return the items after the last one that refers to a message, and all instructions."""
    if isinstance(given, str):
        return given
    places = (place for place, item in enumerate(given) if _kind(item) == _REFERENCE)
    last = max(places, default=-1)
    return [
        item
        for place, item in enumerate(given)
        if place > last or item.get("role") in _INSTRUCTING_ROLES
    ]


def _kind(item: Item) -> str:
    return str(item.get("type") or ("message" if "role" in item else _REFERENCE))


def _message(item: Item, place: str, answers: Mapping[str, str]) -> ConversationMessage:
    kind = _kind(item)
    if kind == _REFERENCE:
        return ConversationMessage("assistant", (answers.get(str(item.get("id")), ""),))
    if kind == "message":
        role = read_role(str(item.get("role")), place)
        return ConversationMessage(role, read_content(item.get("content")))
    if "output" in item:
        return ConversationMessage("tool", (_text_of(item["output"]),))
    if "name" in item:
        call = {"name": item["name"], "arguments": item.get("arguments", item.get("input", ""))}
        return ConversationMessage("assistant", (), describe_calls(call))
    rest = {name: value for name, value in item.items() if name not in _ABOUT_ITEMS and value}
    return ConversationMessage("assistant", (), f"({kind[:80]}: {_text_of(rest)})")


def _text_of(value: Any) -> str:
    texts = [part for part in read_content(value) if isinstance(part, str)]
    text = "\n".join(texts) or msgspec.json.encode(value).decode()
    return truncate(text, MAX_ITEM_CHARACTERS)
