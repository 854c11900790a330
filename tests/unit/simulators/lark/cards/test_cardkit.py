import json
from typing import Any

import pytest

from internal.simulators.lark.cards import cardkit
from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.state import LarkState
from tests.unit.simulators.lark import make_call, make_state

TEXT = {"tag": "markdown", "content": "x", "element_id": "t"}


def create(state: LarkState, **config: Any) -> str:
    content = {"schema": "2.0", "config": config, "body": {"elements": [TEXT]}}
    body = {"type": "card_json", "data": json.dumps(content)}
    return str(cardkit.create(state, make_call(body))["card_id"])


def put(state: LarkState, card_id: str, sequence: Any, content: str = "y") -> None:
    body = {"content": content, "sequence": sequence}
    cardkit.put_content(state, make_call(body, card_id=card_id, element_id="t"))


def test_sequences_must_rise() -> None:
    state = make_state()
    card_id = create(state, streaming_mode=True)
    put(state, card_id, 5)
    for sequence in (5, 4, 0, True, "6"):
        with pytest.raises(LarkError):
            put(state, card_id, sequence)
    put(state, card_id, 6)


def test_text_streams_only_while_the_stream_is_open() -> None:
    state = make_state()
    state.clock.hold()
    card_id = create(state, streaming_mode=True)
    assert cardkit.is_streaming(state, state.cards[card_id])
    state.clock.advance(cardkit.STREAM_TIMEOUT_SECONDS)
    with pytest.raises(LarkError):
        put(state, card_id, 1)


def test_a_batch_is_applied_completely_or_not_at_all() -> None:
    state = make_state()
    card_id = create(state)
    actions = [
        {"action": "delete_elements", "params": {"element_ids": ["t"]}},
        {"action": "delete_elements", "params": {"element_ids": ["unknown"]}},
    ]
    call = make_call({"actions": json.dumps(actions), "sequence": 1}, card_id=card_id)
    with pytest.raises(LarkError):
        cardkit.batch_update(state, call)
    assert state.cards[card_id].content["body"]["elements"] == [TEXT]
    assert state.cards[card_id].sequence == 0
