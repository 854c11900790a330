"""Names that look the same."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.normal_forms.names import fold_name, names_like, spell_name


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("caf\u00e9", "cafe\u0301"),
        ("9.41 AM", "9.41\u202fAM"),
        ("a b", "a\u00a0b"),
        ("a b", "a\u3000b"),
        ("报告(最终)", "报告\uff08最终\uff09"),
        ("report-1", "\uff52\uff45\uff50\uff4f\uff52\uff54\uff0d\uff11"),
        ("ガ", "ｶﾞ"),
        ("it's", "it\u2019s"),
        ('"a"', "“a”"),
        ("a-b", "a\u2011b"),
        ("❤", "❤\ufe0f"),
        ("ab", "a\u200bb"),
        ("한글", unicodedata.normalize("NFD", "한글")),
    ],
)
def test_these_names_look_the_same(name: str, same: str) -> None:
    assert fold_name(name) == fold_name(same)
    assert names_like(name, ["other", same]) == [same]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("1", "①"),
        ("a", "A"),
        ("a", "\u0430"),
        ("x2", "x²"),
        ("a b", "a  b"),
        ("fi", "ﬁ"),
        ("-", "—"),
    ],
)
def test_these_names_do_not_look_the_same(name: str, other: str) -> None:
    assert fold_name(name) != fold_name(other)


@given(st.text())
def test_folding_is_stable_and_ignores_the_normal_form(name: str) -> None:
    folded = fold_name(name)
    assert fold_name(folded) == folded
    assert fold_name(unicodedata.normalize("NFD", name)) == folded
    assert fold_name(unicodedata.normalize("NFC", name)) == folded


@given(st.text(max_size=9), st.text(max_size=9))
def test_different_names_are_spelled_differently(name: str, other: str) -> None:
    assert spell_name(name).isascii()
    assert name == other or spell_name(name) != spell_name(other) or "\\" in name + other
