"""Text and JSON as databases accept them."""

import pytest

from internal.agent.domain.messages import Message, Text
from internal.agent.store.encoding import storable, to_json
from tests.support.store_records import CLEANED, HOSTILE


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain", "plain"),
        ("半角 😀", "半角 😀"),
        ("a\0b", "a\ufffdb"),
        ("\ud83d", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        (HOSTILE, CLEANED),
    ],
)
def test_characters_that_cannot_be_stored_are_replaced(text: str, stored: str) -> None:
    assert storable(text) == stored


def test_json_of_a_record() -> None:
    assert to_json(Message("user", (Text("hi"),))) == (
        '{"role":"user","parts":[{"type":"text","text":"hi"}]}'
    )


def test_json_replaces_lone_surrogates_in_keys_and_values() -> None:
    value = {"k\ud83d": ["\ud83d", {"x": "\ud83d\ude00"}], "n": 1}
    assert to_json(value) == '{"k\ufffd":["\ufffd",{"x":"😀"}],"n":1}'
