"""Pictures of phones, read where no process and no file can be opened."""

import base64
import io
import os
from pathlib import Path

import pytest
from PIL import Image

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.reader import ChildDocumentReader
from tests.support.tools import native_sandbox

HEIC = base64.b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAX1tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAA"
    "AAAAAAAAAAAAACJpbG9jAAAAAERAAAEAAQAAAAABoQABAAAAAAAAABkAAAAjaWluZgAAAAAAAQAAABVpbmZlAgAA"
    "AAABAABodmMxAAAAAA5waXRtAAAAAAABAAAA/WlwcnAAAADdaXBjbwAAAHZodmNDAQNwAAAAkAAAAAAAHvAA/P34"
    "+AAADwNgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQAqQgEBA3AAAAMAkAAAAwAAAwAeoCCBBZbq5Ka5"
    "uAhoMCAAAAMDIAAAAwAhYgABAAZEAcFzwIkAAAATY29scm5jbHgAAQANAAaAAAAAFGlzcGUAAAAAAAAAQAAAAEAA"
    "AAAoY2xhcAAAAEAAAAABAAAAMAAAAAEAAAAAAAAAAv////AAAAACAAAAEHBpeGkAAAAAAwgICAAAABhpcG1hAAAA"
    "AAAAAAEAAQWBAgMFhAAAACFtZGF0AAAAFSgBrwtg9eWDr//yyvfqKIOhV0/1Dg=="
)
"""A red picture of 64 by 48 pixels."""


def avif() -> bytes:
    output = io.BytesIO()
    Image.new("RGB", (64, 48), (200, 30, 30)).save(output, "AVIF")
    return output.getvalue()


@pytest.mark.parametrize("content", [HEIC, avif()], ids=["heic", "avif"])
async def test_a_picture_of_a_phone_is_converted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "IMG_1.HEIC"
    path.write_bytes(content)
    reader = ChildDocumentReader(native_sandbox(tmp_path))
    with path.open("rb") as file:
        assert reader.form(file.fileno(), path.name) == "picture"
        picture = await reader.read_picture(file.fileno())
        assert (picture.media_type, picture.width, picture.height) == ("image/jpeg", 64, 48)
        with Image.open(io.BytesIO(picture.content or b"")) as image:
            red, green, blue = image.convert("RGB").getpixel((32, 24))  # type: ignore[misc]  # of RGB
        assert red > 150 > max(green, blue)
        with pytest.raises(DocumentUnreadable, match="which has no text"):
            await reader.read(file.fileno(), path.name)


async def test_a_damaged_picture_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.heic"
    path.write_bytes(HEIC[:200])
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(DocumentUnreadable, match="picture is damaged"):
            await ChildDocumentReader(native_sandbox(tmp_path)).read_picture(descriptor)
    finally:
        os.close(descriptor)
