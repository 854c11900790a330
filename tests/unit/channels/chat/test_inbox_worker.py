"""The scope of a chat's conversation."""

from internal.channels.chat.inbox_worker import conversation_scope


def test_the_scope_of_a_chat_is_its_channel_and_24_digits() -> None:
    scope = conversation_scope("lark", "oc_1")
    assert scope == conversation_scope("lark", "oc_1") != conversation_scope("lark", "oc_2")
    assert len(scope) == 29
    assert scope.startswith("lark-")
