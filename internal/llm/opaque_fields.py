"""Fields of a streamed reply that only its provider reads, put together from their pieces.

They are sent back to the provider as they came (see `ToolCall.opaque`). Sources of the names:

- `extra_content`: Gemini's Chat Completions address, with `google.thought_signature`
  (https://ai.google.dev/gemini-api/docs/thought-signatures).
- `reasoning_details`: OpenRouter (https://openrouter.ai/docs/use-cases/reasoning-tokens).
- `thinking_blocks`, `provider_specific_fields`: LiteLLM's proxy
  (https://docs.litellm.ai/docs/reasoning_content).
- `reasoning_opaque`: GitHub Copilot. `encrypted_content`, `thought_signature`: gateways that
  translate OpenAI's Responses or Gemini's own API.
"""

from collections.abc import Iterable
from typing import Any

from internal.llm.lenient_json import encode_json

MESSAGE_FIELDS = (
    "reasoning_details",
    "extra_content",
    "reasoning_opaque",
    "encrypted_content",
    "thinking_blocks",
)
CALL_FIELDS = (
    "extra_content",
    "provider_specific_fields",
    "thought_signature",
    "encrypted_content",
)
_GROWING = ("text", "summary", "data", "thinking")
"""Texts of an entry of a list that arrive in pieces; any other field arrives as a whole."""


class OpaqueFields:
    """The opaque fields of a message or of a call while it is streamed. Only read ones are kept."""

    def __init__(self, names: Iterable[str]) -> None:
        self.fields: dict[str, Any] = {}
        self._names = tuple(names)

    def add(self, delta: object) -> int:
        """Take the fields of a delta, which are its attributes, and return their length as JSON."""
        size = 0
        for name in self._names:
            if (value := getattr(delta, name)) and (value := _without_flags(value)):
                size += len(encode_json(value))
                self.fields[name] = _merged(self.fields.get(name), value)
        return size


def _without_flags(value: Any) -> Any:
    """Return the value without Gemini's mark of a piece of text that is a thought."""
    match value:
        case {"google": {"thought": _, **google}, **others}:
            return {"google": google, **others} if google else others
        case _:
            return value


def _merged(known: Any, new: Any) -> Any:
    match known, new:
        case dict(), dict():
            return {**known, **{name: _merged(known.get(name), new[name]) for name in new}}
        case list(), list():
            entries = [*known]
            for entry in new:
                _add_entry(entries, entry)
            return entries
        case None, list():
            return _merged([], new)
        case _, None | "":
            return known
        case _:
            return new


def _add_entry(entries: list[Any], entry: Any) -> None:
    """Add an entry to a list, or to the entry of the list that it continues."""
    at = _continued(entries, entry)
    if at is None:
        entries.append(entry)
        return
    known = dict(entries[at])
    for name, value in entry.items():
        old = known.get(name)
        if name in _GROWING and isinstance(old, str) and isinstance(value, str):
            # encrypted content comes as a whole, sometimes twice
            known[name] = old if name == "data" and old == value else old + value
        elif value not in (None, "") or name not in known:
            known[name] = value
    entries[at] = known


def _continued(entries: list[Any], entry: Any) -> int | None:
    """Return the number of the entry that another one continues, None if it is a new one.

    It has the same type, and the same index or, without an index, it is the last one.
    """
    if not isinstance(entry, dict):
        return None
    for at in range(len(entries) - 1, -1, -1):
        known = entries[at]
        if not isinstance(known, dict):
            return None
        if known.get("type") == entry.get("type") and _may_be_one(known, entry):
            return at
        if entry.get("index") is None:
            return None
    return None


def _may_be_one(known: dict[Any, Any], entry: dict[Any, Any]) -> bool:
    """Return True if ids and indexes do not differ, and the known part is not signed already."""
    for name in ("id", "index"):
        if known.get(name) != entry.get(name) and None not in (known.get(name), entry.get(name)):
            return False
    is_signed = known.get("index") is None and bool(known.get("signature"))
    return not (is_signed and any(entry.get(name) for name in _GROWING))
