"""The scope of a message's conversation."""

from typing import get_args

import pytest

from internal.channels.chat.message_handler import conversation_scope
from internal.settings.chat import SessionScope
from tests.support.echo_channel import echo_message

KINDS: tuple[SessionScope, ...] = get_args(SessionScope)
PLACES = [
    echo_message("m", "", chat, thread_id=thread, user_id=user, is_direct=False)
    for chat in ("oc_1", "oc_2")
    for thread in ("", "omt_1", "omt_2")
    for user in ("ou_1", "ou_2")
]


@pytest.mark.parametrize("kind", KINDS)
def test_outside_of_threads_a_direct_chat_has_one_scope(kind: SessionScope) -> None:
    scope = conversation_scope("lark", echo_message("m", "", "oc_1"), kind)
    assert scope == "lark-efa6810471d5f42b5f3e792f"


@pytest.mark.parametrize(
    ("kind", "count"), [("chat", 2), ("thread", 6), ("sender", 4), ("thread_sender", 12)]
)
def test_each_place_has_a_scope(kind: SessionScope, count: int) -> None:
    scopes = {conversation_scope("lark", each, kind) for each in PLACES}
    assert len(scopes) == count
    assert {len(scope) for scope in scopes} == {29}


def test_a_place_has_one_scope_whatever_its_kind() -> None:
    scopes = {conversation_scope("lark", each, kind) for each in PLACES for kind in KINDS}
    assert len(scopes) == 2 + 4 + 4 + 8
