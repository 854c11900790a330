"""Requests as a dialect lets them be."""

from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import Message, Text, user_message
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import ModelRequest
from internal.llm.lessons.prepared_request import (
    image_bytes,
    prepare_request,
    without_oldest_images,
)
from internal.model_providers.dialect import Dialect
from tests.support.images import an_image, in_base64

TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {}}, "read")


def shown(*contents: bytes) -> ModelRequest:
    messages: list[Message] = []
    for content in contents:
        answer = Message("assistant", (Text("seen"),))
        messages += [user_message("see", [an_image(content)]), answer]
    return ModelRequest("m", "", messages[:-1], images=in_base64(contents))


def test_a_request_that_the_server_takes_is_left_as_it_is() -> None:
    request = ModelRequest("m", "", (user_message("hi"),), tools=(TOOL,))
    prepared = prepare_request(request, Dialect())
    assert prepared.request is request
    assert (prepared.notes, prepared.names) == ((), {})


def test_all_tools_and_a_too_large_limit_are_left_out() -> None:
    request = ModelRequest("m", "", (user_message("hi"),), tools=(TOOL,), max_output_tokens=900)
    prepared = prepare_request(request, Dialect(tools=False, max_output_tokens=100))
    assert (prepared.request.tools, prepared.request.max_output_tokens) == ((), 100)
    assert prepared.notes == (RequestLoss("tools", 1),)


def test_only_new_pictures_are_noted() -> None:
    blind = Dialect(pictures=False)
    assert prepare_request(shown(b"a", b"b"), blind).notes == (RequestLoss("pictures", 1),)
    request = shown(b"a")
    answered = (*request.messages, Message("assistant", (Text("seen"),)), user_message("ok"))
    assert prepare_request(ModelRequest("m", "", answered), blind).notes == ()


def test_the_oldest_images_go_first_and_one_that_is_shown_again_is_new() -> None:
    old, middle, again = b"o" * 300, b"m" * 300, b"a" * 300
    request = shown(again, old, middle, again)
    assert image_bytes(request) == 4 * 400
    kept, count = without_oldest_images(request, 401)
    assert count == 2
    assert dict(kept.images) == in_base64([again])
    kept, count = without_oldest_images(request, 99_999)
    assert (count, dict(kept.images)) == (4, {})
