"""Text of a message as read by the demo model."""

import pytest

from internal.agent.domain.messages import user_message
from internal.llm.offline.conversation import read_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" hello ", "hello"),
        ("<quoted_message>a</quoted_message>\n<attachment>b</attachment>\nhello", "hello"),
        ('<message from="Ada">\nhello\n</message>', "hello"),
    ],
)
def test_words_are_read_without_speakers_and_background(text: str, words: str) -> None:
    assert read_words(user_message(text)) == words
