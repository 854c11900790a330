import json
from typing import Any

import pytest

from internal.simulators.lark.errors import TOO_LONG, LarkError
from internal.simulators.lark.rest.message_content import (
    MAX_TEXT_BYTES,
    extract_mentions,
    read_content,
    read_post,
)


def test_known_ids_become_mention_keys() -> None:
    text, mentions = extract_mentions(
        '<at user_id="ou_1">x</at> <at user_id="all"></at> <at id=ou_2></at>',
        {"ou_1": "One"}.get,
    )
    assert text == "@_user_1 @_all <at id=ou_2></at>"
    assert [mention["name"] for mention in mentions] == ["One"]


@pytest.mark.parametrize(
    ("msg_type", "content"),
    [
        ("text", {"text": ""}),
        ("text", {}),
        ("post", {}),
        ("post", {"zh_cn": {"content": [[{"tag": "script"}]]}}),
        ("image", {"image_key": ""}),
        ("unknown", {}),
    ],
)
def test_invalid_content_is_rejected(msg_type: str, content: dict[str, Any]) -> None:
    with pytest.raises(LarkError):
        read_content(msg_type, json.dumps(content))


def test_content_over_the_size_limit_is_rejected() -> None:
    with pytest.raises(LarkError) as error:
        read_content("text", json.dumps({"text": "x" * MAX_TEXT_BYTES}))
    assert error.value.code == TOO_LONG


def test_readers_get_a_post_in_one_language() -> None:
    assert read_post({"en_us": {"title": "T", "content": []}}) == {"title": "T", "content": []}
