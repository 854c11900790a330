"""Text: surrogates, truncation and invisible characters."""

import re
import unicodedata
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
    escape_invisible,
    first_line,
    format_size,
    is_invisible,
    mark_untrusted,
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
def test_surrogates_are_joined_or_replaced(text: str, made: str) -> None:
    assert replace_surrogates(text) == made


@given(any_text)
def test_text_without_surrogates_can_be_encoded(text: str) -> None:
    made = replace_surrogates(text)
    assert made.encode().decode() == made == replace_surrogates(made)


def test_surrogates_are_replaced_in_nested_values() -> None:
    given = {"a\ud800": [("\udfff", 1, 2.5, None, True), {"b": float("nan")}], "c": -float("inf")}
    assert replace_surrogates_in(given) == {
        "a�": [["�", 1, 2.5, None, True], {"b": None}],
        "c": None,
    }


def test_values_nested_too_deeply_are_rejected() -> None:
    value: Any = "x"
    for _ in range(MAX_NESTING):
        value = [value]
    assert replace_surrogates_in(value) == value
    with pytest.raises(ValueError, match="more than 60 deep"):
        replace_surrogates_in({"x": value})


def test_a_truncated_text_keeps_its_head_and_tail() -> None:
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
def test_a_truncated_text_is_never_longer_than_the_limit(text: str, most: int) -> None:
    short = truncate(text, most)
    assert len(short) <= most
    assert (short == text) == (len(text) <= most)


@pytest.mark.parametrize("most", [0, 1, 31])
def test_a_tiny_limit_leaves_only_the_note(most: int) -> None:
    assert truncate("x" * 5000, most) == "\n… 5,000 characters left out …\n"
    assert truncate_json("x" * 5000, most) == "\n… 5,000 characters left out …\n"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("most", [100, 8000, MAX_JSON_BYTES])
def test_a_text_truncated_for_json_uses_most_of_its_limit(text: str, most: int) -> None:
    short = truncate_json(text, most)
    assert most * 0.6 - 80 <= size(short) - 2 <= most
    assert "characters left out" in short
    head, _, tail = short.partition("\n… ")
    assert replace_surrogates(text).startswith(head)
    assert replace_surrogates(text).endswith(tail.rpartition(" …\n")[2])


@given(any_text, st.integers(50, 400))
def test_a_text_that_fits_is_unchanged(text: str, most: int) -> None:
    short = truncate_json(text, most)
    assert size(short) - 2 <= most
    assert (short == replace_surrogates(text)) == (size(replace_surrogates(text)) - 2 <= most)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("count", [1, 7, MAX_ARGUMENTS, 300])
@pytest.mark.first_rows(12)
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


def test_small_arguments_are_unchanged() -> None:
    arguments = {"path": "a.txt", "lines": [1, 2, {"to": None}], "all": True, "ratio": 0.5}
    assert truncate_arguments(arguments) == arguments
    assert truncate_arguments({}) == {}


def test_omitted_arguments_are_described() -> None:
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


_ODD = (
    " \t\n\r\x00\x1b\x7f\u200b\u200d\u202e\u2066\ufeff\u00a0\u3000\u3164\u2028\u0085\ufe0f\ud800"
    "\u0301\u0338\u212b\u037e\u1100\u1161\u11a8\U000e0041"
)
_SHORT = st.text(st.sampled_from("\\uU{}0123456789abcdefxe" + _ODD), max_size=30)
_ANY = st.text(st.characters(), max_size=60)  # lone surrogates too
_ESCAPES = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))")
_COUNTED = re.compile(r"\{(\d+)\}")


def meant(shown: str) -> str:
    """Return the original of an escaped text; it exists only if the escapes are unambiguous."""
    text, place = "", 0
    while place < len(shown):
        found = _ESCAPES.match(shown, place)
        if not found:
            text, place = text + shown[place], place + 1
            continue
        char, place = chr(int(found[1] or found[2], 16)), found.end()
        count = _COUNTED.match(shown, place) if char in " \t\n" else None
        text += char * (int(count[1]) if count else 1)
        place = count.end() if count else place
    return text


@given(_SHORT | _ANY)
def test_escaped_text_can_be_read_back(text: str) -> None:
    assert meant(escape_invisible(text)) == text


@given(_SHORT | _ANY, _SHORT | _ANY)
def test_different_texts_are_never_displayed_alike(one: str, other: str) -> None:
    shown = (escape_invisible(one), escape_invisible(other))
    alike = unicodedata.normalize("NFC", shown[0]) == unicodedata.normalize("NFC", shown[1])
    assert alike is (one == other)


@given(_SHORT | _ANY)
def test_no_invisible_character_is_left(text: str) -> None:
    shown = escape_invisible(text)
    assert not any(is_invisible(char) for char in shown if char not in " \t\n")
    assert not re.search(r"[ \t]$", shown, re.MULTILINE)
    assert unicodedata.is_normalized("NFC", shown)
    shown.encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "git log --oneline -n 5",
        "sed 's/a\\.b/\\n/' C:\\users \\\\u \\u12 \\x41",
        "def f():\n\n\n\tif x:\n\t\treturn 1",
        "echo 你好，世界。 カタカナ 한국어 Ελληνικά русский עברית café",  # noqa: RUF001  # as written
        "🎉👍🏽🇫🇷 ok",
        "x" + " " * 80 + "# far to the right",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert escape_invisible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm \u202exyz", "rm \\u202exyz"),
        ("rm \\u202exyz", "rm \\u005cu202exyz"),
        ("rm \\U0001F600", "rm \\u005cU0001F600"),
        ("ls\x1b[2K\r", "ls\\u001b[2K\\u000d"),
        ("a\u200bb\u2060c\u00add", "a\\u200bb\\u2060c\\u00add"),
        ("a\u00a0b\u2003c\u3000d", "a\\u00a0b\\u2003c\\u3000d"),
        ("a\u3164\u2800b", "a\\u3164\\u2800b"),
        ("a\u2028b\u0085c", "a\\u2028b\\u0085c"),
        ("\ud83d\ude00", "\\ud83d\\ude00"),
        ("\U000e0041", "\\U000e0041"),
        ("👩\u200d💻", "👩\\u200d💻"),
        ("a \nb\t\n \nc  ", "a\\u0020\nb\\u0009\n\\u0020\nc\\u0020{2}"),
        ("a \t", "a\\u0020{1}\\u0009{1}"),
        ("ls" + " " * 500 + "; rm x", "ls\\u0020{500}; rm x"),
        ("ls" + "\n" * 500 + "rm x", "ls\\u000a{500}rm x"),
        ("ls\u037e rm x", "ls\\u037e rm x"),
        ("cafe\u0301", "cafe\\u0301"),
        ("\u202e\u0301", "\\u202e\\u0301"),
        ("\u1112\u1161\u11ab", "\u1112\\u1161\u11ab"),
        ("a" + "\u0332" * 6, "a" + "\u0332" * 4 + "\\u0332\\u0332"),
    ],
)
def test_deceptive_characters_are_escaped(text: str, shown: str) -> None:
    assert escape_invisible(text) == shown


@pytest.mark.parametrize("flood", [" x", "\\u", "\u0301", "a\u0301", "\t ", "\u202e", "\n \n"])
def test_long_runs_of_invisible_characters_are_escaped_completely(flood: str) -> None:
    text = flood * 30_000
    assert meant(escape_invisible(text)) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1_023, "1023 bytes"), (1_024, "1.0 KB"), (100 * 1_024**2, "100.0 MB")],
)
def test_a_size_is_readable(count: int, text: str) -> None:
    assert format_size(count) == text


def test_content_cannot_forge_the_end_mark() -> None:
    inner = mark_untrusted("a page", "text")
    outer = mark_untrusted("a page", inner)
    assert outer.count(outer[:17]) == 2
    assert outer[1:17] not in inner
    assert mark_untrusted("x", "\ud800")


def test_the_first_line_is_short_and_not_blank() -> None:
    assert first_line("\n  write   the report\nwith charts") == "write the report"
    assert first_line(" \n ") == ""
    assert len(first_line("x" * 500)) < 130
