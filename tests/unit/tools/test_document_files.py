"""Documents and pictures, as read_file returns them."""

import asyncio
import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PictureFile

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.messages import Image
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.tools import CallContext, ToolOutcome
from tests.support import documents
from tests.support.tools import tool_box

Read = Callable[..., Any]


@pytest.fixture
def stored() -> dict[str, bytes]:
    return {}


@pytest.fixture
def read(tmp_path: Path, stored: dict[str, bytes]) -> Read:
    async def store_file(name: str, descriptor: int) -> Attachment:
        content = await asyncio.to_thread(os.read, descriptor, 10_000_000)
        stored[name] = content
        sha256 = hashlib.sha256(content).hexdigest()
        return Attachment(name, "image/png", f"attachment:{sha256}", sha256, len(content))

    box = tool_box(tmp_path)
    context = CallContext(
        SessionId("s"), RunId("r"), "c", str(tmp_path), lambda _: None, store_file
    )

    async def run(path: str, **arguments: object) -> ToolOutcome:
        return await box.run(context, "read_file", {"path": path, **arguments})

    return run


async def test_reading_by_offset_returns_every_character_once(read: Read, tmp_path: Path) -> None:
    pages = [f"page {number} " + "x" * 700 for number in range(100)]
    (tmp_path / "a.pdf").write_bytes(documents.pdf(*pages))
    text, offset = "", 1
    while True:
        outcome = await read("a.pdf", offset=offset)
        first_line, _, part = outcome.text.partition("\n")
        assert len(outcome.text) <= 30_000
        assert first_line.startswith(f"[PDF, 100 pages; characters {offset:,} to ")
        text += part
        offset += len(part)
        if "reads on" not in first_line:
            break
        assert f"offset={offset} reads on" in first_line
    assert outcome.metadata["total_characters"] == len(text)
    assert text == "".join(f"## Page {n}\n\n{page}\n\n" for n, page in enumerate(pages, 1))


async def test_an_unchanged_picture_is_stored_as_it_is(
    read: Read, tmp_path: Path, stored: dict[str, bytes]
) -> None:
    content = documents.picture("PNG", (20, 10))
    (tmp_path / "chart.png").write_bytes(content)
    outcome = await read("chart.png")
    sha256 = hashlib.sha256(content).hexdigest()
    assert outcome.images == (Image("image/png", sha256, 20, 10, f"attachment:{sha256}"),)
    assert stored == {"chart.png": content}
    assert outcome.attachments[0].sha256 == sha256


async def test_a_converted_picture_has_the_extension_of_its_kind(
    read: Read, tmp_path: Path, stored: dict[str, bytes]
) -> None:
    (tmp_path / "scan.bmp").write_bytes(documents.picture("BMP", (20, 10)))
    outcome = await read("scan.bmp")
    assert outcome.text == "[Picture scan.bmp: 20 by 10 pixels, as it is shown to you]"
    assert stored["scan.png"].startswith(b"\x89PNG")


async def test_pages_of_a_scanned_pdf_are_shown_as_pictures(
    read: Read, tmp_path: Path, stored: dict[str, bytes]
) -> None:
    (tmp_path / "a.pdf").write_bytes(documents.scanned_pdf(6))
    first = await read("a.pdf")
    assert first.text == (
        "[PDF, 6 pages without text, probably scanned; pages 1 to 4 are shown as pictures:"
        " offset=5 shows the next ones]"
    )
    assert [(image.width, image.height) for image in first.images] == [(400, 200)] * 4
    rest = await read("a.pdf", offset=5)
    assert rest.text.endswith("pages 5 to 6 are shown as pictures]")
    assert list(stored) == [f"a-page-{number}.png" for number in range(1, 7)]
    with PictureFile.open(io.BytesIO(stored["a-page-5.png"])) as page:
        assert page.convert("RGB").getpixel((200, 100)) == (255, 0, 0)
    with pytest.raises(ToolError, match=r"a\.pdf has 6 pages: there is no page 7"):
        await read("a.pdf", offset=7)


@pytest.mark.parametrize("name", ["folder", "pipe", "missing.pdf", "link.pdf"])
async def test_only_regular_files_inside_are_read(read: Read, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.pdf").symlink_to("/etc/hostname")
    with pytest.raises(ToolError, match=r"folder|not a regular file|not exist|outside"):
        await read(name)


async def test_an_unreadable_document_is_named(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(documents.encrypted_pdf())
    with pytest.raises(ToolError, match=r"^a\.pdf: The PDF is encrypted"):
        await read("a.pdf")
    (tmp_path / "b.pdf").write_bytes(documents.pdf("x"))
    with pytest.raises(ToolError, match="there is no character 1,000"):
        await read("b.pdf", offset=1_001)
