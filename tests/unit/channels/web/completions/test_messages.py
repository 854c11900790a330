"""Messages as clients send them."""

import base64
from typing import Any

import msgspec
import pytest

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.completions.messages import (
    CompletionInput,
    ConversationMessage,
    SentFile,
    Unreadable,
    read_file,
    read_messages,
)

DATA = base64.b64encode(b"abc").decode()
URL = f"data:image/png;base64,{DATA}"


def read(message: dict[str, Any]) -> ConversationMessage:
    (found,) = read_messages([msgspec.convert(message, CompletionInput)])
    return found


CONTENTS: list[tuple[Any, tuple[Any, ...]]] = [
    (None, ()),
    ("hi", ("hi",)),
    (["hi", {"type": "text", "text": "there", "cache_control": {}}], ("hi", "there")),
    ({"type": "text", "text": "hi"}, ("hi",)),
    ([{"text": "hi"}], ("hi",)),
    ([{"type": "text", "text": {"value": "hi", "annotations": []}}], ("hi",)),
    (
        [{"type": "image_url", "image_url": {"url": URL, "detail": "low"}}],
        (SentFile("image", URL),),
    ),
    ([{"type": "image_url", "image_url": URL}], (SentFile("image", URL),)),
    (
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}],
        (SentFile("image", URL),),
    ),
    (
        [{"type": "input_audio", "input_audio": {"data": DATA, "format": "mp3"}}],
        (SentFile("audio", f"data:audio/mpeg;base64,{DATA}"),),
    ),
    (
        [{"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:a/pdf;base64,{DATA}"}}],
        (SentFile("file", f"data:a/pdf;base64,{DATA}", "a.pdf"),),
    ),
    ([{"type": "file", "file": {"file_id": "file-1"}}], (Unreadable("file"),)),
    (
        [{"type": "video_url"}, 3, {}],
        (Unreadable("video_url"), Unreadable("int"), Unreadable("without a type")),
    ),
    ([{"type": "refusal", "refusal": "I will not."}], ("I will not.",)),
    ([{"type": "thinking", "thinking": "hm"}, {"type": "reasoning"}], ()),
]


@pytest.mark.parametrize(("content", "parts"), CONTENTS)
def test_the_parts_of_a_message(content: Any, parts: tuple[Any, ...]) -> None:
    assert read({"role": "user", "content": content}).parts == parts


def test_calls_of_tools_are_told_and_are_not_said() -> None:
    calls = [{"function": {"name": "weather", "arguments": '{"city": "Paris"}'}}]
    message = read({"role": "assistant", "content": None, "tool_calls": calls})
    assert message.calls == '(called weather: {"city": "Paris"})'
    assert message.text == ""
    assert read({"role": "function", "name": "weather", "content": "12"}).role == "tool"


def test_an_unknown_role_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="role is 'critic'"):
        read({"role": "critic", "content": "hi"})


FILES = [
    (SentFile("image", URL), "image-2.png", "image/png"),
    (SentFile("image", f"data:image/jpeg;name=a.jpg;base64,{DATA}"), "image-2.jpg", "image/jpeg"),
    (SentFile("audio", f"data:audio/wav;base64,{DATA}"), "audio-2.wav", "audio/wav"),
    (SentFile("file", "data:text/plain;base64,YW\nJj", "a.txt"), "a.txt", "text/plain"),
]


@pytest.mark.parametrize(("file", "name", "media_type"), FILES)
def test_a_file_with_its_name(file: SentFile, name: str, media_type: str) -> None:
    found = read_file(file, 2)
    assert (found.name, found.media_type, found.data) == (name, media_type, b"abc")


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (SentFile("image", "https://example.com/a.png"), "An image must be a data URL"),
        (SentFile("image", f"data:text/html;base64,{DATA}"), "image 1 is text/html"),
        (SentFile("file", "data:text/plain;base64,a$"), "file 1 is not valid base64"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(file: SentFile, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        read_file(file, 1)
