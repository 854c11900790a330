"""The search for a tool that a server refuses without naming it."""

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from internal.llm.lessons.tool_search import ToolSearch

TOOLS = tuple(f"mcp__s__t{n}" for n in range(200))


def find(offered: tuple[str, ...], refused: Collection[str]) -> tuple[list[str], int]:
    """Return the tools that a server refuses in the order found, and the refused requests."""
    found: list[str] = []
    refusals = 0
    while True:
        left = tuple(name for name in offered if name not in found)
        if not {*left} & {*refused}:
            return found, refusals
        refusals += 1
        search = ToolSearch(left)
        while not search.found:
            if not ({*left} - search.held).isdisjoint(refused):
                refusals += 1
                narrowed = search.with_refusal()
                assert narrowed is not None
                search = narrowed
            else:
                search = search.with_answer()
        found.append(search.found)


@given(st.integers(1, 200), st.data())
def test_every_refused_tool_is_found_and_no_other(count: int, data: st.DataObject) -> None:
    offered = TOOLS[:count]
    refused = data.draw(st.sets(st.sampled_from(offered), min_size=1, max_size=3))
    found, _ = find(offered, refused)
    assert {*found} == refused


def test_the_search_takes_few_requests() -> None:
    for guilty in (TOOLS[0], TOOLS[77], TOOLS[199]):
        _, refusals = find(TOOLS, [guilty])
        assert refusals <= 9


def test_the_newest_tools_are_held_back_first() -> None:
    assert ToolSearch(("a", "b", "c", "d")).held == {"c", "d"}


def test_the_search_is_given_up_when_no_suspect_is_the_reason() -> None:
    search = ToolSearch(("a", "b"))
    narrowed = search.with_refusal()
    assert narrowed is not None
    assert narrowed.held == {"a", "b"}
    assert narrowed.with_refusal() is None


def test_tools_that_are_gone_are_not_searched() -> None:
    search = ToolSearch(("a", "b", "c"), unknown=("d",), words="no")
    assert search.among({"a", "c"}) == ToolSearch(("a", "c"), words="no")
    assert search.among({"d", "x"}) is None
    assert search.among({"a", "b", "c", "d"}) == search
