"""The emoji that rate an answer."""

import pytest

from internal.channels.lark.reactions import rating_of


@pytest.mark.parametrize(
    ("emoji", "rating"),
    [
        ("THUMBSUP", "up"),
        ("ThumbsDown", "down"),
        ("MinusOne", "down"),
        ("OK", None),
        ("CheckMark", None),
        ("Typing", None),
        ("", None),
    ],
)
def test_only_clear_emoji_rate(emoji: str, rating: str | None) -> None:
    assert rating_of(emoji) == rating
