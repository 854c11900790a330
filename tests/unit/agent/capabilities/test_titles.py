"""Titles as a model replies with them."""

import pytest

from internal.agent.capabilities.titles import MAX_TITLE_CHARACTERS, clean_title


@pytest.mark.parametrize(
    ("reply", "title"),
    [
        ("Tides of Brest.", "Tides of Brest"),
        ("\n\n  # “Tides  of Brest”\nmore", "Tides of Brest"),
        ("《潮汐时间》", "潮汐时间"),
        ("a\u202eb\u200bc\x1b[31m\0", "abc[31m"),
        (" \n***\n", ""),
        ("", ""),
    ],
)
def test_a_title_is_one_visible_line(reply: str, title: str) -> None:
    assert clean_title(reply) == title


def test_a_long_title_is_cut() -> None:
    assert len(clean_title("x" * 5_000)) == MAX_TITLE_CHARACTERS
