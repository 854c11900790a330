"""The messages of a completion request, and what a task gets of them."""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.schemas import AttachmentInput

_DATA_URL = re.compile(r"data:(image/[a-z0-9.+-]{1,40});base64,(.*)", re.DOTALL | re.IGNORECASE)
_IMAGE_NAMES = {"image/jpeg": "jpg", "image/svg+xml": "svg"}


class ImageUrl(msgspec.Struct, frozen=True):
    """An image: a data URL. Addresses are not fetched."""

    url: str


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a message: a text, or an image."""

    type: Literal["text", "image_url"]
    text: str = ""
    image_url: ImageUrl | None = None


class CompletionInput(msgspec.Struct, frozen=True):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[tuple[ContentPart, ...], Meta(max_length=200)] | None = None

    @property
    def parts(self) -> tuple[ContentPart, ...]:
        """The content as parts."""
        if isinstance(self.content, str):
            return (ContentPart("text", self.content),)
        return self.content or ()

    @property
    def text(self) -> str:
        """The text of the message."""
        return "\n".join(part.text for part in self.parts if part.type == "text")


def instruction_with_transcript(earlier: Sequence[CompletionInput], last: CompletionInput) -> str:
    """Return the last message after a transcript of those before it."""
    said = [f"{message.role}: {message.text}" for message in earlier if message.text.strip()]
    if not said:
        return last.text
    transcript = "\n\n".join(said)
    return f"The conversation so far:\n\n{transcript}\n\nMy message now:\n\n{last.text}"


def image_inputs(message: CompletionInput) -> tuple[AttachmentInput, ...]:
    """Return the images of a message, named by their numbers.

    Raises:
        InvalidRequest: an image is not a data URL, or not valid.
    """
    urls = (part.image_url.url for part in message.parts if part.image_url is not None)
    return tuple(_attachment(url, number) for number, url in enumerate(urls, 1))


def _attachment(url: str, number: int) -> AttachmentInput:
    match = _DATA_URL.fullmatch(url)
    if match is None:
        raise InvalidRequest("An image must be a data URL, such as data:image/png;base64,….")
    media_type, data = match[1].lower(), match[2]
    try:
        content = b64decode(data, validate=True)
    except (Base64Error, ValueError) as error:
        raise InvalidRequest(f"The data of image {number} is not valid base64.") from error
    suffix = _IMAGE_NAMES.get(media_type, media_type.partition("/")[2])
    return AttachmentInput(f"image-{number}.{suffix}", media_type, content)
