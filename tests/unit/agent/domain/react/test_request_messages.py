"""The messages of a request, and the encodings that are kept with them."""

import msgspec
import pytest

from internal.agent.domain.messages import Message, Text, ToolCall, ToolResult, user_message
from internal.agent.domain.react.request_messages import (
    MAX_KEPT_BYTES,
    RequestMessages,
    encode_messages,
)
from internal.agent.ports.llm import ModelRequest
from internal.llm import anthropic_request, openai_request
from internal.model_providers.dialect import Dialect
from tests.support.images import an_image
from tests.support.weighed_messages import weighed

QUESTION = user_message("How many?")
ANSWER = Message("assistant", (Text("Two."),))
CALL = Message("assistant", (Text("I look."), ToolCall("a", "read_file", {"path": "a"})))
RESULT = Message("user", (ToolResult("a", "one\ntwo"), Text("And?")))
PICTURE = user_message("What is it?", [an_image()])
LONG = user_message("x" * MAX_KEPT_BYTES)
MESSAGES = (QUESTION, CALL, RESULT, ANSWER, PICTURE, ANSWER, LONG)


class CountedEncoder:
    """Encodes messages and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, message: Message) -> bytes:
        self.count += 1
        return msgspec.json.encode(message)


def test_they_are_a_sequence_of_messages() -> None:
    messages = RequestMessages(weighed(MESSAGES))
    assert [*messages] == [*MESSAGES]
    assert (len(messages), messages[1], tuple(messages[-2:])) == (7, CALL, MESSAGES[-2:])
    assert repr(messages) == repr(MESSAGES)
    assert messages.exchanges() == [CALL, RESULT]
    assert messages.with_images() == [PICTURE]
    longer = messages.followed_by(weighed([ANSWER]))
    assert longer.tokens == messages.tokens + weighed([ANSWER])[0].tokens
    assert longer[-1] == ANSWER


def test_short_encodings_are_kept_for_one_format_and_never_those_with_images() -> None:
    encode, messages = CountedEncoder(), RequestMessages(weighed(MESSAGES))
    plain = [msgspec.json.encode(message) for message in MESSAGES]
    assert encode_messages(messages, "a", encode) == plain
    assert encode.count == len(MESSAGES)
    assert encode_messages(messages, "a", encode) == plain
    assert encode.count == len(MESSAGES) + 2, "the picture and the long text again"
    assert encode_messages(messages, "b", lambda _: b"other") == [b"other"] * len(MESSAGES)
    assert encode_messages(MESSAGES, "a", encode) == plain, "plain messages keep nothing"


@pytest.mark.parametrize("thinking", [True, False])
def test_kept_encodings_are_what_both_providers_would_get_anyway(*, thinking: bool) -> None:
    plain = ModelRequest("claude-x", "Count.", MESSAGES)
    kept = msgspec.structs.replace(plain, messages=RequestMessages(weighed(MESSAGES)))
    for _ in range(2):
        for resend in (True, False):
            dialect = Dialect(resend_reasoning=resend)
            expected = openai_request.encode_request(plain, dialect)
            assert openai_request.encode_request(kept, dialect) == expected
        expected = anthropic_request.encode_request(plain, Dialect(resend_opaque=thinking))
        assert anthropic_request.encode_request(kept, Dialect(resend_opaque=thinking)) == expected
    shown = msgspec.structs.replace(kept, images={an_image().sha256: "aGVyb24="})
    assert b"aGVyb24=" in anthropic_request.encode_request(shown, Dialect())
