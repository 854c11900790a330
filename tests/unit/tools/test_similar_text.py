"""Places in a text that look like another one."""

import unicodedata

from hypothesis import assume, given
from hypothesis import strategies as st

from internal.normal_forms.names import fold_name
from internal.tools.similar_text import carry_over, find_similar

SIGNS = "ab '\"\u2018\u2019\u201c\u00a0\u202f\u3000\u200b\u00e9e\u0301\uff08(世한\n\t"
texts = st.text(st.sampled_from(SIGNS), max_size=30)


def _look(text: str) -> str:
    return unicodedata.normalize("NFD", "".join(map(fold_name, text)))


@given(texts, texts.filter(str.strip), texts)
def test_a_found_place_looks_like_the_wanted_text(before: str, wanted: str, after: str) -> None:
    assume(_look(wanted))
    text = before + wanted + after
    for start, end in find_similar(text, wanted):
        assert _look(text[start:end]) == _look(wanted)


@given(
    st.text(st.sampled_from("ab '\"(-"), max_size=20),
    st.text(st.sampled_from("ab '\"(-"), min_size=1, max_size=20),
)
def test_a_text_with_other_signs_is_found(before: str, wanted: str) -> None:
    other = wanted.translate(str.maketrans(" '\"(-", "\u00a0\u2019\u201d\uff08\u2011"))
    text = f"{before}<{other}>"
    start = len(before) + 1
    assert (start, start + len(other)) in find_similar(text, f"{wanted}")[-1:]


def test_a_place_never_divides_a_character() -> None:
    assert find_similar("caf\u00e9s", "cafe") == []
    assert find_similar("caf\u00e9s", "cafe\u0301") == [(0, 4)]
    assert find_similar("cafe\u0301s", "caf\u00e9s") == [(0, 6)]


def test_what_is_unchanged_keeps_its_characters() -> None:
    found, old = "“It\u2019s one”", '"It\'s one"'
    assert carry_over(found, old, '"It\'s two", he said') == "“It\u2019s two”, he said"
    assert carry_over(found, old, "") == ""
    assert carry_over("cafe\u0301\u0301", "caf\u00e9", "x") == "x"
