"""Short texts about tool calls in questions: the effect of several calls, the scope of a rule."""

import re
from collections.abc import Iterable, Sequence

from internal.i18n.catalog import MessageCatalog

_MAX_RULE_CHARS = 40
_SEPARATORS = re.compile(r"[_\-.]+")


def summarize_calls(messages: MessageCatalog, counts: Sequence[tuple[str, int]]) -> str:
    """Return the title of a question about calls, such as “Run 2 commands and change 1 file?”.

    Args:
        messages: a catalogue with the keys that start with `calls_`.
        counts: actions and how many calls do each.
    """
    *first, last = (
        messages(f"calls_{action}" if count > 1 else f"calls_{action}_one", count=count)
        for action, count in counts
    )
    before = messages("calls_comma").join(first)
    text = f"{before}{messages('calls_and')}{last}" if before else last
    return messages("calls_title", calls=f"{text[:1].upper()}{text[1:]}")


def describe_reason(messages: MessageCatalog, code: str, about: str, reason: str) -> str:
    """Return why a call needs approval; `reason` is the sentence of questions without a code."""
    key = f"reason_{code}"
    return messages(key, about=about) if code and key in messages else reason


def describe_rules(rules: Iterable[str]) -> str:
    """Return the scope of rules: their patterns, without the names of the tools.

    `shell(npm test *)` is “npm test …”, `write_file(docs/**)` is “docs/**”.
    """
    return ", ".join(dict.fromkeys(map(_describe_rule, rules)))


def describe_rules_briefly(rules: Iterable[str]) -> str:
    """Return the scope of rules for a button, "…" if it is too long."""
    text = describe_rules(rules)
    return text if len(text) <= _MAX_RULE_CHARS else "…"


def is_mcp(tool: str) -> bool:
    """Return True if a tool is one of an MCP server."""
    return tool.startswith("mcp__")


def tool_label(tool: str, title: str = "") -> str:
    """Return the display name of an MCP server's tool; other tools keep their names."""
    return title or (readable_tool(tool) if is_mcp(tool) else tool)


def readable_tool(tool: str) -> str:
    """Return the name of a tool as words, with its server: `mcp__github__add_issue`."""
    server, _, name = tool.removeprefix("mcp__").rpartition("__")
    words = _SEPARATORS.sub(" ", name).strip() or tool
    return f"{words} ({server})" if server else words


def _describe_rule(rule: str) -> str:
    tool, bracket, pattern = rule.strip().partition("(")
    words = pattern.removesuffix(")").strip() if bracket else tool
    return f"{words.removesuffix(' *')} …" if words.endswith(" *") else words
