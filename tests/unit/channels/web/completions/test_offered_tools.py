"""Choices of tools that a request demands, or leaves to the agent."""

from typing import Any

import pytest

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.completions.offered_tools import refuse_demanded_tools

ALLOWED = {"mode": "auto", "tools": []}


@pytest.mark.parametrize(
    "choice",
    [
        None,
        "",
        "auto",
        "none",
        {"type": "auto"},
        {"type": "allowed_tools", "allowed_tools": ALLOWED},
    ],
)
def test_a_free_choice_is_left_to_the_agent(choice: Any) -> None:
    refuse_demanded_tools(tool_choice=choice)


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("required", "a tool"),
        ("any", "a tool"),
        ({"type": "function", "function": {"name": "final_result"}}, "the tool final_result"),
        ({"type": "function", "name": "f"}, "the tool f"),
        ({"name": "f"}, "the tool f"),
        ({"type": "file_search"}, "the tool file_search"),
        ({"type": "allowed_tools", "mode": "required", "tools": []}, "a tool"),
        (["f"], "a tool"),
    ],
)
def test_a_demanded_call_is_refused_with_what_to_do(choice: Any, says: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^tool_choice demands a call of {says}: .*/mcp"):
        refuse_demanded_tools(tool_choice=choice)
