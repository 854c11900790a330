"""Tools in requests of clients. They have no effect: the agent uses the gateway's tools."""

from collections.abc import Mapping
from typing import Any

from internal.agent.domain.errors import InvalidRequest

_FREE_CHOICES = frozenset({"", "auto", "none"})


def refuse_demanded_tools(**choices: Any) -> None:
    """Check that a request leaves the choice of tools to the agent.

    Args:
        choices: the fields that choose a tool, such as `tool_choice`, by name.

    Raises:
        InvalidRequest: a field demands a call, of a certain tool or of any.
    """
    for field, choice in choices.items():
        if demanded := _demanded(choice):
            raise InvalidRequest(
                f"{field} demands a call of {demanded}: the agent uses the tools of the gateway and"
                f' never calls those of a request. Leave {field} out, or send "auto". Tools that'
                " the agent is to have are MCP servers (larkspur mcp add); programs that want to"
                " give it tasks as a tool call /mcp."
            )


def _demanded(choice: object) -> str:
    """Return which tool a choice demands, "" if it demands none."""
    if choice is None or isinstance(choice, str):
        return "" if (choice or "") in _FREE_CHOICES else "a tool"
    if not isinstance(choice, Mapping):
        return "a tool"
    kind = str(choice.get("type") or "")
    if kind == "allowed_tools":
        allowed = choice.get("allowed_tools")
        return _demanded((allowed if isinstance(allowed, Mapping) else choice).get("mode"))
    if kind in _FREE_CHOICES - {""}:
        return ""
    function = choice.get("function")
    name = (function if isinstance(function, Mapping) else choice).get("name") or kind
    return f"the tool {str(name)[:80]}" if name else "a tool"
