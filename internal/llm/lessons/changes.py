"""Changes of the dialect of a server after a refusal."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from internal.agent.domain.errors import Refusal
from internal.agent.domain.lessons import Lesson
from internal.agent.domain.messages import Thinking, ToolResult
from internal.agent.domain.permissions.targets import mcp_server
from internal.llm.lessons.prepared_request import PreparedRequest, image_bytes
from internal.llm.lessons.tool_search import ToolSearch
from internal.model_providers.dialect import Dialect

SEARCH_KIND = "tool_schema"
"""The kind of the lesson that keeps a search; it has no name."""

_OF_ADDRESS = frozenset({"body_size"})
"""Refusals that hold for all models of an address."""

_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "temperature": {"temperature": False},
    "stream_options": {"count_tokens": False},
    "tool_choice": {"tool_choice": False},
    "max_tokens": {"limit_field": "max_completion_tokens"},
    "max_completion_tokens": {"limit_field": "max_tokens"},
}
_OTHER_LIMIT = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
_FLAGS: Mapping[str, Mapping[str, Any]] = {
    "picture": {"pictures": False},
    "document": {"documents": False},
    "audio": {"audio": False},
    "tools": {"tools": False},
    "call_id": {"call_ids": "nine"},
}


class Change(NamedTuple):
    """A change of the requests to a model.

    Attributes:
        kind: the kind of the refusal.
        fields: the changed fields of the dialect.
        name: the tool or field that was refused, "" if there is none.
        is_kept: whether it holds for later requests as well.
    """

    kind: str
    fields: Mapping[str, Any]
    name: str = ""
    is_kept: bool = True

    @property
    def is_of_address(self) -> bool:
        """Whether it holds for all models of the address."""
        return self.kind in _OF_ADDRESS


# Servers word it in many ways: these are for refusals that no table knows. Also the ways back.
_WORDS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    (
        r"(?=.*max_completion_tokens).*(un(supported|known|recognized|expected)|not |extra)",
        {"limit_field": "max_tokens"},
    ),
    (r"max_completion_tokens", {"limit_field": "max_completion_tokens"}),
    (r"stream_options|include_usage", {"count_tokens": False}),
    (r"temperature", {"temperature": False}),
    (r"tool_choice", {"tool_choice": False}),
    (r"reasoning_content", {"resend_reasoning": True}),
    (r"reasoning|thinking|\beffort\b|output_config", {"extra_fields": ""}),  # last: it is wide
)


def find_change(
    refusal: Refusal, dialect: Dialect, sent: PreparedRequest, *, size: int, words: str = ""
) -> Change | ToolSearch | None:
    """Return the change for the next request; None if nothing helps.

    Args:
        refusal: what the server refused.
        dialect: the dialect of the refused request.
        sent: the refused request.
        size: the bytes of its body.
        words: what the server said.

    Returns:
        A change of the dialect, or the search for a tool that the server does not name.
    """
    if refusal.kind in {"tool_schema", "tool_name"} and not refusal.change:
        return _withhold(refusal, dialect, sent)
    name, fields = _fields(refusal, dialect, sent, size)
    if fields.get("limit_field") == dialect.limit_field:  # it is this one that is refused
        fields = {**fields, "limit_field": _OTHER_LIMIT[dialect.limit_field]}
    if refusal.kind in {"field", "unknown"} and apply_fields(dialect, fields) == dialect:
        name, fields = "", _fields_in_words(words, dialect)
    if apply_fields(dialect, fields) == dialect:
        return None
    is_kept = refusal.kind != "reasoning" or bool(refusal.change)
    return Change(refusal.kind, fields, name, is_kept)


def apply_lessons(dialect: Dialect, lessons: list[Lesson]) -> Dialect:
    """Return a dialect after lessons. Lessons unknown to this version change nothing."""
    withheld = {each.name for each in lessons if is_tool_lesson(each)}
    for each in lessons:
        if each.kind != SEARCH_KIND and not is_tool_lesson(each):
            dialect = apply_fields(dialect, each.change)
    return replace(dialect, withheld_tools=dialect.withheld_tools | withheld)


def is_tool_lesson(lesson: Lesson) -> bool:
    """Return whether a lesson withholds the tool that it names."""
    return lesson.kind in {"tool_schema", "tool_name"} and bool(lesson.name)


def apply_fields(dialect: Dialect, fields: Mapping[str, Any]) -> Dialect:
    """Return a dialect with other values of fields; unknown names and values are ignored."""
    known = {name: fields[name] for name in fields.keys() & set(Dialect.__struct_fields__)}
    if not known:
        return dialect
    try:
        return msgspec.convert({**msgspec.to_builtins(dialect), **known}, Dialect)
    except msgspec.ValidationError:
        return dialect


def find_search(lessons: list[Lesson]) -> ToolSearch | None:
    """Return the search for a refused tool that has begun."""
    for each in lessons:
        if each.kind == SEARCH_KIND and not each.name:
            try:
                return msgspec.convert(each.change, ToolSearch)
            except msgspec.ValidationError:
                return None
    return None


def _withhold(
    refusal: Refusal, dialect: Dialect, sent: PreparedRequest
) -> Change | ToolSearch | None:
    """Return that one tool, or each tool with a too long name, is not offered any more."""
    offered = sent.tool_names
    if refusal.kind == "tool_name" and refusal.limit and refusal.limit < dialect.max_tool_name:
        return Change(refusal.kind, {"max_tool_name": refusal.limit})
    name = refusal.name
    if not name and refusal.number is not None and refusal.number < len(offered):
        name = offered[refusal.number]
    name = sent.names.get(name, name)
    if name in offered:
        return Change(refusal.kind, {}, name)
    suspects = tuple(each for each in offered if mcp_server(each))
    return ToolSearch(suspects) if suspects else None


def _fields(
    refusal: Refusal, dialect: Dialect, sent: PreparedRequest, size: int
) -> tuple[str, Mapping[str, Any]]:
    """Return the name of the refused part and the fields of the dialect that change."""
    request, kind, limit = sent.request, refusal.kind, refusal.limit
    fields: Mapping[str, Any] = {}
    if kind in _FLAGS:
        is_in_request = {"picture": bool(image_bytes(request)), "tools": bool(request.tools)}
        return "", _FLAGS[kind] if is_in_request.get(kind, True) else {}
    if refusal.change:
        return ",".join(sorted(refusal.change)), refusal.change
    if kind == "field":
        return refusal.name, _FIELDS.get(refusal.name, {})
    if kind == "tool_count":
        count = len(request.tools)
        fields = {"max_tools": limit if limit and limit < count else max(count // 2, 1)}
    elif kind == "body_size" and (pictures := image_bytes(request)):
        # at least one picture less, also where the server takes nearly the whole
        smaller = min(limit or size // 2, size - 1)
        fields = {"max_body_bytes": max(smaller, size - pictures)}
    elif kind == "output_limit" and limit and limit < request.max_output_tokens:
        fields = {"max_output_tokens": limit}
    elif kind in {"role_order", "reasoning"}:
        fields = _message_fields(kind, dialect, sent)
    return "", fields


def _fields_in_words(words: str, dialect: Dialect) -> Mapping[str, Any]:
    """Return the first change that the words of a server ask for and that is one."""
    for pattern, fields in _WORDS:
        if re.search(pattern, words, re.IGNORECASE) and apply_fields(dialect, fields) != dialect:
            return fields
    return {}


def _message_fields(kind: str, dialect: Dialect, sent: PreparedRequest) -> Mapping[str, Any]:
    parts = [part for each in sent.request.messages for part in each.parts]
    if kind == "reasoning":
        has_thoughts = any(isinstance(part, Thinking) for part in parts)
        return {"resend_opaque": False} if has_thoughts else {}
    has_results = any(isinstance(part, ToolResult) for part in parts)
    if has_results and dialect.user_after_results:
        return {"user_after_results": False}
    return {"system_role": False}
