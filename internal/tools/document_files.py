"""Documents and pictures of the workspace, as read_file returns them."""

import asyncio
import os
import stat
import tempfile
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import PurePosixPath
from typing import IO

from internal.agent.app.background_task import run_to_completion
from internal.agent.domain.errors import DocumentUnreadable, ToolError
from internal.agent.domain.messages import Image
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.documents import DocumentText
from internal.agent.ports.tools import ToolOutcome
from internal.tools.tool import MAX_RESULT_CHARS, ToolContext
from internal.tools.workspace import Workspace, WorkspacePath

_MAX_CHARACTERS = MAX_RESULT_CHARS - 1_000  # leaves room for the first line
_MAX_PAGES = 4
_KINDS = {
    "docx": "Word document",
    "epub": "EPUB book",
    "gzip": "Archive",
    "html": "HTML page",
    "mail": "Mail",
    "msg": "Outlook message",
    "odp": "OpenDocument presentation",
    "ods": "OpenDocument workbook",
    "odt": "OpenDocument text",
    "pdf": "PDF",
    "pptx": "PowerPoint presentation",
    "tar": "Archive",
    "xls": "Excel workbook of before 2007",
    "xlsb": "binary Excel workbook",
    "xlsx": "Excel workbook",
    "xmlss": "Excel workbook in XML",
    "zip": "ZIP archive",
}
_PARTS = {
    "epub": ("chapter", "chapters"),
    "odp": ("slide", "slides"),
    "ods": ("sheet", "sheets"),
    "pdf": ("page", "pages"),
    "pptx": ("slide", "slides"),
    "xls": ("sheet", "sheets"),
    "xlsb": ("sheet", "sheets"),
    "xlsx": ("sheet", "sheets"),
    "xmlss": ("sheet", "sheets"),
    "zip": ("entry", "entries"),
}
_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png"}


@asynccontextmanager
async def open_file(workspace: Workspace, path: WorkspacePath) -> AsyncGenerator[int]:
    """Open a regular file for reading while the block runs.

    Raises:
        ToolError: it cannot be opened, or is not a regular file.
    """
    with ExitStack() as opened:
        descriptor = await run_to_completion(opened.enter_context, workspace.open(path))
        status = await run_to_completion(os.fstat, descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{path} is a folder: use list_dir")
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{path} is not a regular file")
        yield descriptor


async def read_text(
    context: ToolContext, path: WorkspacePath, descriptor: int, max_characters: int
) -> DocumentText:
    """Return the text of a file in any encoding.

    Raises:
        ToolError: it is binary.
    """
    try:
        return await context.documents.read(
            descriptor, "text.txt", max_characters=max(max_characters, 1)
        )
    except DocumentUnreadable as error:
        raise ToolError(f"{path}: {error}") from error


async def read_document(
    context: ToolContext, path: WorkspacePath, descriptor: int, offset: int
) -> ToolOutcome:
    """Return the text of a document from a character on, counted from 1, below a line about it.

    Raises:
        ToolError: it cannot be read.
    """
    try:
        document = await context.documents.read(
            descriptor, path.parts[-1], offset=offset - 1, max_characters=_MAX_CHARACTERS
        )
    except DocumentUnreadable as error:
        raise ToolError(f"{path}: {error}") from error
    if document.kind == "pdf" and document.total == 0:
        return await _read_pages(context, path, descriptor, range(offset, document.parts + 1))
    remark = "" if document.encoding is None else document.encoding.remark
    return ToolOutcome(
        "\n".join(filter(None, (f"[{_about(document, offset)}]", remark))) + f"\n{document.text}",
        metadata={
            "kind": document.kind,
            "parts": document.parts,
            "characters": len(document.text),
            "total_characters": document.total,
        },
    )


def _about(document: DocumentText, offset: int) -> str:
    about = _KINDS.get(document.kind, document.kind)
    if document.kind in _PARTS:
        one, many = _PARTS[document.kind]
        about += f", {document.parts:,} {one if document.parts == 1 else many}"
    last = offset - 1 + len(document.text)
    if document.total:
        about += f"; characters {offset:,} to {last:,} of {document.total:,}"
    elif document.text and document.total is None:
        about += f"; characters {offset:,} to {last:,} of many more"
    if document.next_offset is not None:
        about += f": offset={document.next_offset + 1} reads on"
    if document.kind == "html":
        about += "; source=true returns the source"
    return about


async def _read_pages(
    context: ToolContext, path: WorkspacePath, descriptor: int, pages: range
) -> ToolOutcome:
    """Return pages of a scanned PDF as pictures.

    Raises:
        ToolError: there is no such page, or one cannot be shown or stored.
    """
    last = pages.stop - 1
    if not pages:
        raise ToolError(f"{path} has {last:,} pages: there is no page {pages.start:,}")
    shown = pages[:_MAX_PAGES]
    pictures = [await _picture(context, path, descriptor, page) for page in shown]
    more = f": offset={shown.stop} shows the next ones" if shown.stop <= last else ""
    return ToolOutcome(
        f"[PDF, {last:,} {'page' if last == 1 else 'pages'} without text, probably scanned;"
        f" pages {shown.start:,} to {shown.stop - 1:,} are shown as pictures{more}]",
        attachments=tuple(stored for _, stored in pictures),
        metadata={"kind": "pdf", "parts": last},
        images=tuple(image for image, _ in pictures),
    )


async def read_picture(context: ToolContext, path: WorkspacePath, descriptor: int) -> ToolOutcome:
    """Return a picture for the model, scaled if it is larger than providers accept.

    Raises:
        ToolError: it cannot be decoded or stored.
    """
    image, stored = await _picture(context, path, descriptor)
    note = "" if stored.name == path.parts[-1] else ", as it is shown to you"
    return ToolOutcome(
        f"[Picture {path}: {image.width} by {image.height} pixels{note}]",
        attachments=(stored,),
        metadata={"width": image.width, "height": image.height},
        images=(image,),
    )


async def _picture(
    context: ToolContext, path: WorkspacePath, descriptor: int, page: int | None = None
) -> tuple[Image, Attachment]:
    """Store a picture, or a page of a PDF, in its form for the model."""
    try:
        picture = await context.documents.read_picture(descriptor, page or 1)
    except DocumentUnreadable as error:
        raise ToolError(f"{path}: {error}") from error
    if picture.content is None:
        stored = await context.call.store_file(path.parts[-1], descriptor)
    else:
        stem = PurePosixPath(path.parts[-1]).stem
        name = (stem if page is None else f"{stem}-page-{page}") + _EXTENSIONS[picture.media_type]
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(_write, file, picture.content)
            stored = await context.call.store_file(name, file.fileno())
    image = Image(picture.media_type, stored.sha256, picture.width, picture.height, stored.uri)
    return image, stored


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.flush()
    file.seek(0)
