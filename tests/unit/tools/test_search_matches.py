"""Retained output of a search engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.errors import ToolError
from internal.agent.ports.sandbox import SandboxResult
from internal.tools.search_matches import MAX_LINE_CHARS, MatchedLine, SearchMatches


def test_matches_before_a_timeout_are_kept() -> None:
    matches = SearchMatches("b/", lambda _: False)
    matches.write(b"x\0001:1:one\nx\0")
    matches.write(b"2:1:two\nx\0003:1:thr")
    outcome = matches.outcome(SandboxResult(-15, timed_out=True), timeout_seconds=20)
    assert outcome.text == (
        "b/x:1: one\nb/x:2: two\n[the search was ended after 20 s: there may be more]"
    )


def test_a_message_is_the_reason_of_a_failure() -> None:
    matches = SearchMatches("", lambda _: False)
    matches.write(b"regex parse error:\nerror: unclosed group\n")
    with pytest.raises(ToolError, match="the search failed: error: unclosed group"):
        matches.outcome(SandboxResult(2), timeout_seconds=20)


@given(
    st.lists(st.text(st.sampled_from("aé世🦜")), max_size=3).map("".join),
    st.integers(0, 2_000),
    st.integers(0, 2_000),
    st.integers(1, 700),
)
def test_the_match_is_in_what_is_shown_of_a_line(
    unit: str, before: int, after: int, size: int
) -> None:
    head, tail = (unit * before)[:before], (unit * after)[:after]
    content = f"{head}<{tail}".encode()
    line = MatchedLine(len(head.encode()) + 1)
    for at in range(0, len(content), size):
        line.write(content[at : at + size])
    text, whole = line.text(), f"{head}<{tail}"
    assert "<" in text
    if len(whole) <= MAX_LINE_CHARS:
        assert text == whole
        return
    shown = text.partition(" [from character ")[0].strip("…")
    assert len(shown) <= MAX_LINE_CHARS
    assert shown in whole
    assert "\ufffd" not in shown
    if " [from character " in text:
        first = int(text.partition(" [from character ")[2].partition(" ")[0].replace(",", ""))
        assert whole[first - 1 :].startswith(shown)
        assert f" of {len(whole):,} in this line on]" in text
