"""The input of a response, read as messages of a conversation."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.completions.messages import CompletionInput, ContentPart, ImageUrl

Item = dict[str, Any]

_ROLES = ("user", "assistant", "system", "developer")
_TEXTS = frozenset({"input_text", "output_text", "summary_text", "reasoning_text", "text"})
_ABOUT_ITEMS = frozenset({"id", "call_id", "type", "status", "caller"})
"""Members of an item that say nothing to a reader."""
_SILENT = frozenset({"compaction", "compaction_trigger", "additional_tools", "mcp_list_tools"})
"""Items that are not part of what was said."""


def read_input(
    given: str | tuple[Item, ...], instructions: str, answers: Mapping[str, str]
) -> list[CompletionInput]:
    """Return the instructions and the input of a response as messages.

    Calls of tools, their results and reasoning are read as text. `answers` are the texts of the
    messages that items refer to, by id.

    Raises:
        InvalidRequest: an item or a part of its content cannot be read.
    """
    messages = [CompletionInput("system", instructions)] if instructions.strip() else []
    if isinstance(given, str):
        return [*messages, CompletionInput("user", given)]
    for number, item in enumerate(given):
        message = _message(item, f"input[{number}]", answers)
        if message is not None:
            messages.append(message)
    return messages


def references(given: str | tuple[Item, ...]) -> list[str]:
    """Return the ids of the earlier messages that items refer to."""
    if isinstance(given, str):
        return []
    return [str(item.get("id")) for item in given if item.get("type") == "item_reference"]


def _message(item: Item, place: str, answers: Mapping[str, str]) -> CompletionInput | None:
    kind = item.get("type") or ("message" if "role" in item else "item_reference")
    if kind in _SILENT:
        return None
    if kind == "item_reference":
        text = answers.get(str(item.get("id")), "")
        return CompletionInput("assistant", text)
    if kind == "reasoning":
        said = _texts([*_parts(item.get("summary")), *_parts(item.get("content"))])
        return CompletionInput("assistant", f"(I thought: {said})") if said else None
    if kind != "message":
        return CompletionInput("assistant", _described(str(kind), item))
    role = item.get("role")
    if role not in _ROLES:
        raise InvalidRequest(f"{place}.role must be one of {', '.join(_ROLES)}.")
    content = item.get("content")
    if isinstance(content, str):
        return CompletionInput(role, content)
    if not isinstance(content, list):
        raise InvalidRequest(f"{place}.content must be a text or a list of parts.")
    parts = (_part(part, f"{place}.content[{n}]") for n, part in enumerate(content))
    return CompletionInput(role, tuple(parts))


def _part(part: Any, place: str) -> ContentPart:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return ContentPart("text", part["text"])
    if kind == "refusal":
        return ContentPart("text", str(part.get("refusal", "")))
    if kind == "input_image":
        if not isinstance(part.get("image_url"), str):
            raise InvalidRequest(f"{place}: an image needs image_url, a data URL.")
        return ContentPart("image_url", image_url=ImageUrl(part["image_url"]))
    raise InvalidRequest(
        f"{place}.type: {str(kind)[:80]} is not supported: send input_text or input_image."
        " Other files are attached to a task, see POST /api/tasks."
    )


def _described(kind: str, item: Item) -> str:
    """Return an item about a tool as a line of text."""
    if "output" in item:
        return f"(The tool returned: {_text_of(item['output'])})"
    if "name" in item:
        said = item.get("arguments", item.get("input", ""))
        return f"(I called the tool {item['name']} with: {_text_of(said)})"
    rest = {name: value for name, value in item.items() if name not in _ABOUT_ITEMS and value}
    return f"({kind}: {_text_of(rest)})"


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and (said := _texts(_parts(value))):
        return said
    return msgspec.json.encode(value).decode()


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(parts: Iterable[Any]) -> str:
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))
