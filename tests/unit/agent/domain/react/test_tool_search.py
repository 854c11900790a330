"""Search for tools."""

import pytest

from internal.agent.domain.react.tool_search import search_tools, search_words
from internal.agent.domain.tools import ToolSpec


def spec(name: str, description: str = "") -> ToolSpec:
    return ToolSpec(name, description, {"type": "object"}, "exec")


TOOLS = [
    spec("mcp__github__list_issues", "Lists issues of a repository."),
    spec("mcp__github__create_issue", "Creates an issue in a repository."),
    spec("mcp__github__createPullRequest", "Opens a pull request for a branch."),
    spec("mcp__feishu__doc_search", "按标题和内容搜索云文档。"),
    spec("mcp__feishu__calendar", "Reads events. Mentions an issue."),
    spec("mcp__time__now", "Returns the time."),
]


def found(query: str) -> list[str]:
    return [tool.name.split("__", 2)[2] for tool in search_tools(TOOLS, query)]


def test_words_of_names_and_of_chinese() -> None:
    assert search_words("mcp__a__createPull_Requests") == {"mcp", "a", "create", "pull", "request"}
    assert search_words("查文档 id") == {"查", "文", "档", "查文", "文档", "id"}
    assert search_words("css is 7") == {"css", "is", "7"}
    assert search_words("  __ ") == set()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("create an issue", ["create_issue", "createPullRequest", "list_issues", "calendar"]),
        ("pull requests", ["createPullRequest"]),
        ("文档", ["doc_search"]),
        ("mcp__time__now", ["now"]),
        ("volcano", []),
        ("", []),
    ],
)
def test_the_best_tools_come_first(query: str, expected: list[str]) -> None:
    assert found(query)[: len(expected) or None] == expected


def test_a_rare_word_counts_more_than_one_that_every_tool_has() -> None:
    assert found("mcp calendar")[0] == "calendar"
    assert len(found("mcp")) == len(TOOLS)


def test_equal_matches_keep_the_order_of_the_tools() -> None:
    tools = [spec("mcp__a__one", "Herons."), spec("mcp__b__two", "Herons.")]
    assert search_tools(tools, "heron") == tools
    assert search_tools(tools[::-1], "heron") == tools[::-1]
