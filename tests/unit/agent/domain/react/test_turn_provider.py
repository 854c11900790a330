"""The strict provider rejects every invalid conversation."""

import pytest

from internal.agent.domain.messages import Message, Text, Thinking, ToolResult, user_message
from tests.support.images import an_image
from tests.support.strict_provider import ProviderRejection, check_messages
from tests.support.turn_driver import read

HI = user_message("Hi")
CALL = Message("assistant", (read("a"), read("b")))
GIVEN = (ToolResult("a", ""), ToolResult("b", ""))
RESULTS = Message("user", GIVEN)


def test_valid_conversations_are_accepted() -> None:
    picture = an_image()
    check_messages(
        [Message("user", (picture, Text("Hi"))), CALL, Message("user", (*GIVEN, Text("And?")))]
    )
    check_messages([HI, Message("assistant", (Thinking("Hm."), *CALL.parts)), RESULTS], ["Hi"])


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "there are no messages"),
        ([Message("assistant", (Text("Hi"),))], "role"),
        ([HI, HI], "role"),
        ([HI, Message("assistant", ())], "is empty"),
        ([HI, Message("assistant", (Text("Hi"),))], "the model's own"),
        ([user_message(""), CALL], "is empty"),
        ([Message("user", (Text(" \n"),))], "an empty text"),
        ([HI, CALL], "calls without results"),
        ([HI, CALL, HI], "answers"),
        ([HI, CALL, Message("user", GIVEN[:1])], "answers"),
        ([HI, CALL, Message("user", GIVEN[::-1])], "answers"),
        ([HI, CALL, Message("user", (*GIVEN, GIVEN[0]))], "answers"),
        ([HI, CALL, Message("user", (Text("x"), *GIVEN))], "not first"),
        ([RESULTS], "answers"),
        ([HI, Message("assistant", (read("a"), read("a"))), RESULTS], "twice"),
        ([HI, CALL, RESULTS, CALL, RESULTS], "of an earlier one"),
        ([HI, Message("assistant", (read(""),)), RESULTS], "without id"),
        ([HI, Message("assistant", (Thinking(""),)), HI], "empty thinking"),
        ([Message("user", (Thinking("x"),))], "has thinking"),
        ([CALL], "role"),
        ([Message("user", CALL.parts)], "has calls"),
        ([HI, Message("assistant", (an_image(),)), HI], "has a picture"),
    ],
)
def test_invalid_conversations_are_rejected_with_a_reason(
    messages: list[Message], reason: str
) -> None:
    with pytest.raises(ProviderRejection, match=reason):
        check_messages(messages)


@pytest.mark.parametrize("said", [["Ho"], ["Hi", "Hi"], ["there", "Hi"]])
def test_missing_or_reordered_user_messages_are_rejected(said: list[str]) -> None:
    with pytest.raises(ProviderRejection, match="missing or out of order"):
        check_messages([user_message("Hi there")], said)


def test_lone_surrogates_are_rejected() -> None:
    with pytest.raises(UnicodeEncodeError):
        check_messages([user_message("x\ud83d")])
