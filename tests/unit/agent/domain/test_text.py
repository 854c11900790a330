"""Clipping: whole characters, and no more of them than fit."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.events.types import ToolStarted
from internal.agent.domain.text import (
    MAX_ARGUMENTS,
    MAX_JSON_BYTES,
    MAX_NESTING,
    replace_surrogates,
    replace_surrogates_in,
    truncate,
    truncate_arguments,
    truncate_json,
)

LIMIT = 2**16
MILLION = 1_000_000
HOSTILE = {
    "controls": "\x01" * MILLION,
    "nul": "\0" * MILLION,
    "quotes": '"\\' * (MILLION // 2),
    "chinese": "鹭" * MILLION,
    "emoji": "🪶" * MILLION,
    "halves": "\ud83d" * MILLION,
    "heavy head": "\x01" * 30_000 + "a" * MILLION,
    "heavy tail": "a" * MILLION + "鹭" * 30_000,
    "heavy ends": "🪶" * 20_000 + "a" * MILLION + "\x1b" * 30_000,
    "heavy middle": "a" * 30_000 + "\x01" * MILLION + "a" * 30_000,
    "just too long": "a" * (MAX_JSON_BYTES + 1),
}
any_text = st.text(st.characters(exclude_categories=[]))


def size(value: Any) -> int:
    return len(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("", ""),
        ("héron 鹭 🪶\x00", "héron 鹭 🪶\x00"),
        ("a\ud83d", "a�"),
        ("\udc00b", "�b"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "��"),
        ("\ud83d\ud83d\ude00\ude00", "�😀�"),
    ],
)
def test_halves_are_joined_or_replaced(text: str, made: str) -> None:
    assert replace_surrogates(text) == made


@given(any_text)
def test_what_is_whole_can_be_encoded(text: str) -> None:
    made = replace_surrogates(text)
    assert made.encode().decode() == made == replace_surrogates(made)


def test_values_are_made_whole_all_the_way_down() -> None:
    given = {"a\ud800": [("\udfff", 1, 2.5, None, True), {"b": float("nan")}], "c": -float("inf")}
    assert replace_surrogates_in(given) == {
        "a�": [["�", 1, 2.5, None, True], {"b": None}],
        "c": None,
    }


def test_values_may_be_nested_so_deep() -> None:
    value: Any = "x"
    for _ in range(MAX_NESTING):
        value = [value]
    assert replace_surrogates_in(value) == value
    with pytest.raises(ValueError, match="more than 60 deep"):
        replace_surrogates_in({"x": value})


def test_a_clipped_text_keeps_its_head_and_its_tail() -> None:
    text = "".join(map(str, range(2000)))
    short = truncate(text, 100)
    assert len(short) <= 100
    head, note, tail = short.split("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    missing = len(text) - len(head) - len(tail)
    assert note == f"… {missing:,} characters left out …"
    assert len(head) > len(tail) > 20
    assert truncate("x" * 100, 100) == "x" * 100


@given(st.text(max_size=300), st.integers(60, 200))
def test_a_clipped_text_is_never_longer(text: str, most: int) -> None:
    short = truncate(text, most)
    assert len(short) <= most
    assert (short == text) == (len(text) <= most)


@pytest.mark.parametrize("most", [0, 1, 31])
def test_without_room_only_the_note_is_left(most: int) -> None:
    assert truncate("x" * 5000, most) == "\n… 5,000 characters left out …\n"
    assert truncate_json("x" * 5000, most) == "\n… 5,000 characters left out …\n"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("most", [100, 8000, MAX_JSON_BYTES])
def test_a_fitted_text_fits_and_uses_its_room(text: str, most: int) -> None:
    short = truncate_json(text, most)
    assert most * 0.6 - 80 <= size(short) - 2 <= most
    assert "characters left out" in short
    head, _, tail = short.partition("\n… ")
    assert replace_surrogates(text).startswith(head)
    assert replace_surrogates(text).endswith(tail.rpartition(" …\n")[2])


@given(any_text, st.integers(50, 400))
def test_a_text_that_fits_is_left_alone(text: str, most: int) -> None:
    short = truncate_json(text, most)
    assert size(short) - 2 <= most
    assert (short == replace_surrogates(text)) == (size(replace_surrogates(text)) - 2 <= most)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("count", [1, 7, MAX_ARGUMENTS, 300])
def test_arguments_fit_into_an_event(text: str, count: int) -> None:
    texts: list[dict[str, Any]] = [
        {f"{n}": text[:: n + 1] for n in range(count)},
        {f"{text[:5000]}{n}": [{text[:5000]: text[:50_000]}] for n in range(count)},
    ]
    for arguments in texts:
        event = ToolStarted(
            call_id="a",
            tool_name="write_file",
            arguments=truncate_arguments(arguments),
            iteration=1,
            risk="write",
        )
        assert size(event) <= LIMIT
        assert size(truncate_arguments(arguments, 20_000)) <= 22_000


def test_small_arguments_stay_as_they_are() -> None:
    arguments = {"path": "a.txt", "lines": [1, 2, {"to": None}], "all": True, "ratio": 0.5}
    assert truncate_arguments(arguments) == arguments
    assert truncate_arguments({}) == {}


def test_what_does_not_fit_is_told() -> None:
    deep: Any = 1
    for _ in range(MAX_NESTING + 1):
        deep = [deep]
    shown = truncate_arguments({"deep": deep, "half": "x\ud800", "list": ["y"] * 30_000})
    assert shown["deep"] == f"(it is nested more than {MAX_NESTING} deep)"
    assert shown["half"] == "x�"
    assert shown["list"].startswith('["y","y",')
    assert "characters left out" in shown["list"]
    many = truncate_arguments({str(n): n for n in range(MAX_ARGUMENTS + 5)})
    assert many["…"] == "5 more arguments"
    assert len(many) == MAX_ARGUMENTS + 1
