"""Numbers of lists as Word shows them."""

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given
from hypothesis import strategies as st

from internal.documents.word_numbers import (
    BULLET,
    Numbering,
    NumberProperties,
    format_count,
)
from tests.support.documents import word_part
from tests.support.property_examples import examples

LEVELS = 4


def level(number: int, form: str, text: str, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def numbering(levels: str, overrides: str = "") -> Numbering:
    root = fromstring(
        word_part(
            "numbering",
            f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
            '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
            f'<w:num w:numId="2"><w:abstractNumId w:val="0"/>{overrides}</w:num>',
        )
    )
    return Numbering(root, {})


def labels(counted: Numbering, *levels: int, list_id: str = "1") -> list[str | None]:
    return [counted.label(NumberProperties(list_id, each)) for each in levels]


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("decimal", "1 2 3 10 12"),
        ("decimalZero", "01 02 03 10 12"),
        ("lowerLetter", "a b c j l"),
        ("upperRoman", "I II III X XII"),
        ("ordinal", "1st 2nd 3rd 10th 12th"),
        ("chineseCounting", "一 二 三 十 十二"),
        ("chineseLegalSimplified", "壹 贰 叁 壹拾 壹拾贰"),
        ("ideographTraditional", "甲 乙 丙 癸 乙"),
        ("ideographZodiac", "子 丑 寅 酉 亥"),
        ("decimalEnclosedCircle", "① ② ③ ⑩ ⑫"),
        ("no such form", "1 2 3 10 12"),
    ],
)
def test_a_number_has_the_form_of_its_level(form: str, shown: str) -> None:
    assert " ".join(format_count(each, form) for each in (1, 2, 3, 10, 12)) == shown


def test_larger_numbers_are_said_with_their_units() -> None:
    said = [format_count(each, "chineseCounting") for each in (20, 21, 105, 110, 1_010)]
    assert said == ["二十", "二十一", "一百零五", "一百一十", "一千零一十"]
    assert [format_count(each, "lowerLetter") for each in (26, 27, 53)] == ["z", "aa", "aaa"]


@given(st.lists(st.integers(0, LEVELS - 1), max_size=30))
@examples(100)
def test_a_list_is_numbered_like_the_chapters_of_a_book(levels: list[int]) -> None:
    texts = [".".join(f"%{n + 1}" for n in range(each + 1)) for each in range(LEVELS)]
    counted = numbering("".join(level(n, "decimal", text) for n, text in enumerate(texts)))
    counts, expected = [0] * LEVELS, []
    for each in levels:
        counts[each] += 1
        counts[each + 1 :] = [0] * (LEVELS - each - 1)
        # a level above that has not begun is shown as if it had
        expected.append(".".join(str(max(count, 1)) for count in counts[: each + 1]))
    assert labels(counted, *levels) == expected


def test_a_second_list_goes_on_unless_it_says_where_it_starts() -> None:
    one = level(0, "decimal", "%1.")
    counted = numbering(one)
    assert labels(counted, 0, 0) + labels(counted, 0, list_id="2") == ["1.", "2.", "3."]
    start = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    counted = numbering(one, start)
    assert labels(counted, 0, 0) + labels(counted, 0, 0, list_id="2") == ["1.", "2.", "5.", "6."]


def test_legal_numbers_bullets_and_levels_that_never_restart() -> None:
    legal = level(0, "upperRoman", "%1.") + level(1, "decimal", "%1.%2", "<w:isLgl/>")
    assert labels(numbering(legal), 0, 0, 1) == ["I.", "II.", "2.1"]
    assert labels(numbering(level(0, "bullet", "o")), 0) == [BULLET]
    going_on = level(0, "decimal", "%1.") + level(1, "decimal", "%2)", '<w:lvlRestart w:val="0"/>')
    assert labels(numbering(going_on), 0, 1, 0, 1) == ["1.", "1)", "2.", "2)"]


def test_a_list_that_is_not_defined_has_no_numbers() -> None:
    assert labels(numbering(level(0, "decimal", "%1.")), 0, list_id="9") == [None]
    assert labels(Numbering(None, {}), 0) == [None]


def test_a_list_follows_the_style_that_it_is_linked_to() -> None:
    root = fromstring(
        word_part(
            "numbering",
            '<w:abstractNum w:abstractNumId="0"><w:numStyleLink w:val="s"/></w:abstractNum>'
            f'<w:abstractNum w:abstractNumId="1">{level(0, "decimal", "§%1")}</w:abstractNum>'
            '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
            '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>',
        )
    )
    assert labels(Numbering(root, {"s": "2"}), 0, 0) == ["§1", "§2"]
