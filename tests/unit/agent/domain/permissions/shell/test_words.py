"""Words of a shell command: their values, their kinds, and the encoding for the parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.permissions.shell.parser import ParsedCommand, parse_script
from internal.agent.domain.permissions.shell.words import (
    Word,
    decode_from_parser,
    encode_for_parser,
)


def last_word(text: str) -> Word:
    script = parse_script(f"echo {text}")
    command = script.parts[0]
    assert isinstance(command, ParsedCommand)
    return command.words[-1]


@pytest.mark.parametrize(
    ("source", "text", "kind"),
    [
        ("a", "a", "plain"),
        ("'a b'", "a b", "plain"),
        ('"a\\$b"', "a$b", "plain"),
        ("a\\ b", "a b", "plain"),
        ("'*'", "*", "plain"),
        ("src/*.py", "src/*.py", "glob"),
        ("k=~", "k=~", "glob"),
        ("k='~'", "k=~", "plain"),
        ("~/x", "~/x", "glob"),
        ('"a-$X"', "a-", "open"),
        ("*", "*", "unknown"),
        ("$X", "", "unknown"),
        ('"-$X"', "-", "unknown"),
        ("{a,b}", "{a,b}", "unknown"),
        ("$'\\x61'", "a", "unknown"),
    ],
)
def test_the_kind_of_a_word_says_how_much_of_it_is_known(source: str, text: str, kind: str) -> None:
    word = last_word(source)
    assert (word.text, word.kind, word.source) == (text, kind, source)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_the_encoding_for_the_parser(text: str) -> None:
    encoded = encode_for_parser(text)
    assert decode_from_parser(encoded) == text
    assert all(ord(sign) < 256 for sign in encoded.decode())
