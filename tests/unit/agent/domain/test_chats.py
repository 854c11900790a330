"""Records that chat channels store: they survive JSON, and their defaults change nothing."""

import msgspec
import pytest

from internal.agent.domain.chats import ChatSettings, InboundMessage, OutgoingMessage

INBOUND = InboundMessage("lark", "cli_a1", "om_1", "oc_1", "lark:cli_a1:ou_1", "{}", "2026-01-31")
OUTGOING = OutgoingMessage(
    "run-1", "lark", "cli_a1", "oc_1", "om_1", "Done.", stop_reason="final_answer"
)


@pytest.mark.parametrize("message", [INBOUND, OUTGOING])
def test_a_message_survives_storage(message: InboundMessage | OutgoingMessage) -> None:
    assert msgspec.json.decode(msgspec.json.encode(message), type=type(message)) == message


def test_an_unknown_stop_reason_is_not_decoded() -> None:
    stored = msgspec.json.encode(OUTGOING).replace(b"final_answer", b"tired")
    with pytest.raises(msgspec.ValidationError, match="stop_reason"):
        msgspec.json.decode(stored, type=OutgoingMessage)


def test_chat_settings_override_nothing_by_default() -> None:
    nothing = ChatSettings(plan_review=None, model="", network=None, profile="", instructions="")
    assert ChatSettings() == nothing
