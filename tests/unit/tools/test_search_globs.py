"""Globs by the names that they may mean."""

import pytest

from internal.tools.search_globs import SearchGlob


@pytest.mark.parametrize("text", ["", "*.py", "src/**/*.{ts,tsx}", "a?.c"])
def test_a_plain_glob_is_what_the_engine_searches_by(text: str) -> None:
    glob = SearchGlob(text)
    assert glob.patterns[:1] == [text] * bool(text)
    assert glob.accepts is None


def test_a_glob_is_widened_for_the_engine_and_checked_afterwards() -> None:
    glob = SearchGlob("it's a b/[é ].txt")
    assert glob.patterns == ["it*s*a*b/[é ].txt", r"it*s*a*b/\[*\].txt"]
    assert glob.accepts is not None
    assert glob.accepts("it\u2019s a\u00a0b/e\u0301.txt")
    assert glob.accepts("it's a b/[é\u3000].txt")
    assert not glob.accepts("its a b/é.txt")
