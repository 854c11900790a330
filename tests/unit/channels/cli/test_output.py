"""Output to terminals and pipes."""

import json
import os
import pty
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.channels.cli.output import Output, replace_surrogates, sanitize_terminal

ANY_TEXT = st.text(st.characters(categories=None, exclude_categories=()))


@given(ANY_TEXT)
def test_sanitized_text_has_no_control_characters(text: str) -> None:
    shown = sanitize_terminal(text)
    assert {unicodedata.category(char) for char in set(shown) - set("\n\t")}.isdisjoint(
        {"Cc", "Cs", "Zl", "Zp"}
    )
    assert not any("BIDI" in unicodedata.name(char, "") for char in shown)
    assert set(shown).isdisjoint("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b")
    assert sanitize_terminal(shown) == shown


@given(st.text())
def test_sanitized_json_has_the_same_value(text: str) -> None:
    assert json.loads(sanitize_terminal(json.dumps([text], ensure_ascii=False))) == [text]


def test_plain_text_is_unchanged() -> None:
    text = "naïve 点心 👩\u200d🚀\n\tindented"
    assert sanitize_terminal(text) == text
    assert sanitize_terminal("one\r\ntwo") == "one\ntwo"
    assert sanitize_terminal("\x1b[2J") == "\\u001b[2J"


@given(ANY_TEXT)
def test_text_without_surrogates_can_be_encoded(text: str) -> None:
    assert len(replace_surrogates(text).encode().decode()) == len(text)


def test_pipe_gets_the_exact_bytes_and_a_terminal_sanitized_text() -> None:
    reader, writer = os.pipe()
    Output(writer).write(b"\x1b[31mred\n")
    assert os.read(reader, 100) == b"\x1b[31mred\n"
    master, slave = pty.openpty()
    Output(slave).write(b"\x1b[31mred")
    assert os.read(master, 100) == b"\\u001b[31mred"
    for descriptor in (reader, writer, master, slave):
        os.close(descriptor)


def test_closed_pipe_is_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        Output(writer).write(b"anyone?")
    os.close(writer)
