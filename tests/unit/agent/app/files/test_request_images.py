"""The images of a request are read from the store, the newest first and within limits."""

from pathlib import Path

import pytest

from internal.agent.app.files.request_images import MAX_REQUEST_IMAGE_CHARACTERS, RequestImages
from internal.agent.domain.messages import Image, Message, ToolResult, user_message
from internal.attachments.local import LocalAttachments
from tests.support.images import an_image, in_base64


@pytest.fixture
def attachments(tmp_path: Path) -> LocalAttachments:
    return LocalAttachments(tmp_path / "attachments")


async def _stored(attachments: LocalAttachments, content: bytes) -> Image:
    await attachments.put("a.png", "image/png", content)
    return an_image(content)


async def test_images_of_people_and_of_tools_are_read(attachments: LocalAttachments) -> None:
    sent, drawn = await _stored(attachments, b"sent"), await _stored(attachments, b"drawn")
    result = Message("user", (ToolResult("a", "", images=(drawn,)),))
    loaded = await RequestImages(attachments).load([user_message("hi", [sent]), result])
    assert loaded == in_base64([b"sent", b"drawn"])


async def test_an_image_that_is_lost_or_damaged_is_missing(
    attachments: LocalAttachments, tmp_path: Path
) -> None:
    damaged = await _stored(attachments, b"damaged")
    (path,) = (tmp_path / "attachments").glob(f"*/{damaged.sha256}")
    path.write_bytes(b"other")
    kept = await _stored(attachments, b"kept")
    message = user_message("hi", [an_image(b"lost"), damaged, kept])
    assert await RequestImages(attachments).load([message]) == in_base64([b"kept"])


async def test_the_oldest_of_too_many_images_are_missing(attachments: LocalAttachments) -> None:
    older, newer = b"1" * (MAX_REQUEST_IMAGE_CHARACTERS // 2), b"2"
    messages = [user_message("hi", [await _stored(attachments, older)]) for _ in range(2)]
    messages.append(user_message("hi", [await _stored(attachments, older + b"1")]))
    messages.append(user_message("hi", [await _stored(attachments, newer)]))
    assert await RequestImages(attachments).load(messages) == in_base64([older + b"1", newer])


async def test_an_image_is_read_once_while_the_cache_holds_it(
    attachments: LocalAttachments, tmp_path: Path
) -> None:
    first, second = await _stored(attachments, b"1" * 300), await _stored(attachments, b"2" * 300)
    images = RequestImages(attachments, max_cached=500)
    assert await images.load([user_message("", [first])])
    for path in (tmp_path / "attachments").glob("*/*"):
        path.unlink()
    assert await images.load([user_message("", [first])])
    await attachments.put("a.png", "image/png", b"2" * 300)
    assert await images.load([user_message("", [second])])
    assert await images.load([user_message("", [first])]) == {}
