"""What a person judges by is readable, and no two texts look the same."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.text import escape_invisible, is_invisible

_ODD = (
    " \t\n\r\x00\x1b\x7f\u200b\u200d\u202e\u2066\ufeff\u00a0\u3000\u3164\u2028\u0085\ufe0f\ud800"
    "\u0301\u0338\u212b\u037e\u1100\u1161\u11a8\U000e0041"
)
_SHORT = st.text(st.sampled_from("\\uU{}0123456789abcdefxe" + _ODD), max_size=30)
_ANY = st.text(st.characters(), max_size=60)  # lone surrogates too
_ESCAPES = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))")
_COUNTED = re.compile(r"\{(\d+)\}")


def meant(shown: str) -> str:
    """Read an escaped text back: only a reader that gets each text back proves them distinct."""
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
def test_every_text_can_be_read_back(text: str) -> None:
    assert meant(escape_invisible(text)) == text


@given(_SHORT | _ANY, _SHORT | _ANY)
def test_different_texts_never_show_alike(one: str, other: str) -> None:
    shown = (escape_invisible(one), escape_invisible(other))
    alike = unicodedata.normalize("NFC", shown[0]) == unicodedata.normalize("NFC", shown[1])
    assert alike is (one == other)


@given(_SHORT | _ANY)
def test_nothing_hidden_is_left(text: str) -> None:
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
def test_ordinary_text_stays_as_it_is(text: str) -> None:
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
def test_tricks_become_visible(text: str, shown: str) -> None:
    assert escape_invisible(text) == shown


@pytest.mark.parametrize("flood", [" x", "\\u", "\u0301", "a\u0301", "\t ", "\u202e", "\n \n"])
def test_a_flood_is_shown_whole(flood: str) -> None:
    text = flood * 30_000
    assert meant(escape_invisible(text)) == text
