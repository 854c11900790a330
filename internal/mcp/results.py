"""The result of a call: text that is marked as untrusted, pictures, and files."""

import asyncio
import hashlib
import json
import mimetypes
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import IO, Any

import msgspec

from internal.agent.domain.errors import DocumentUnreadable, ToolError
from internal.agent.domain.messages import Image
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.text import escape_hidden, mark_untrusted, truncate_line
from internal.agent.ports.documents import DocumentReader
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.mcp.elicitation import DECLINED_KEY
from internal.mcp.encoded_files import decoded, find_encoded, is_picture_text
from internal.mcp.repeated_content import is_repeated
from internal.mcp.server_messages import LOGGED_KEY

MAX_FILES = 20
"""Pictures and other files of one result; further ones are left out."""
MAX_BLOCKS = 1_000
DECLINED_NOTE = "A question of the server to people was declined, because it cannot be shown:"
_MAX_REASON_CHARS = 300
_MAX_NAME_CHARS = 100
_MAX_URI_CHARS = 500
_FOREIGN = re.compile(r"[^\w.-]+")
_DATA_SCHEME = "data:"
_EXTENSIONS = {"audio/wav": ".wav", "image/jpeg": ".jpg", "image/png": ".png"}


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    uri: str = ""
    mime_type: str = ""
    text: str | None = None
    blob: str | None = None


class _Block(msgspec.Struct, frozen=True, rename="camel"):
    """A block of any type; which fields it has depends on the type."""

    type: str
    text: str = ""
    data: str = ""
    mime_type: str = ""
    uri: str = ""
    name: str = ""
    resource: _Resource = _Resource()


class _Result(msgspec.Struct, frozen=True, rename="camel"):
    content: list[_Block] = []
    structured_content: Any = None
    is_error: bool = False


class ResultReader:
    """Turns the results of servers into outcomes of tools.

    Args:
        documents: decodes pictures in a child process.
    """

    def __init__(self, documents: DocumentReader) -> None:
        self._documents = documents

    async def read(self, context: CallContext, source: str, result: dict[str, Any]) -> ToolOutcome:
        """Return the outcome of a call; `source` names the tool for the model.

        Raises:
            ToolError: the server says that the call failed, or the result is none.
        """
        try:
            found = msgspec.convert(result, _Result)
        except msgspec.ValidationError as error:
            raise ToolError(f"{source} returned something that is no result") from error
        declined, logged = (
            [truncate_line(str(why), _MAX_REASON_CHARS) for why in result.get(key, ())]
            for key in (DECLINED_KEY, LOGGED_KEY)
        )
        files = _Files(context, self._documents)
        texts = [await self._read_block(block, files) for block in found.content[:MAX_BLOCKS]]
        texts.append(await files.take_from(await asyncio.to_thread(_structured, found, result)))
        text = await asyncio.to_thread(_joined, found, texts)
        if found.is_error:
            note = f"{DECLINED_NOTE} {'; '.join(declined)}.\n" if declined else ""
            failure = "\n".join((text or "the call failed without a reason", *logged))
            raise ToolError(f"{note}{mark_untrusted(source, failure)}")
        return ToolOutcome(
            mark_untrusted(source, text or "(nothing)"),
            attachments=tuple(files.stored),
            metadata={
                "source": source,
                "untrusted": True,
                **({"declined": declined} if declined else {}),
                **({"logged": logged} if logged else {}),
            },
            images=tuple(files.images),
        )

    async def _read_block(self, block: _Block, files: "_Files") -> str:
        match block.type:
            case "text":
                return await files.take_from(block.text)
            case "image":
                return await files.add_picture(block.data, block.mime_type)
            case "audio":
                return await files.add("audio", block.data, block.mime_type)
            case "resource_link":
                link = f"[Link to a resource, which was not followed: {_uri(block.uri)}]"
                is_data = block.uri.startswith(_DATA_SCHEME)
                return await files.take_from(block.uri) if is_data else link
            case "resource":
                return await self._read_resource(block.resource, files)
            case _:
                return f"[A part of an unknown type, {truncate_line(block.type, 40)}]"

    async def _read_resource(self, resource: _Resource, files: "_Files") -> str:
        if resource.text is not None:
            text = await files.take_from(resource.text)
            return f"[Resource {_uri(resource.uri)}]\n{text}"
        is_data = resource.uri.startswith(_DATA_SCHEME)
        name = "" if is_data else resource.uri.rstrip("/").rpartition("/")[2]
        is_picture = not resource.mime_type and is_picture_text(resource.blob or "")
        if is_picture or resource.mime_type.startswith("image/"):
            return await files.add_picture(resource.blob or "", resource.mime_type)
        return await files.add(name or "resource", resource.blob or "", resource.mime_type)


class _Files:
    """Stores the pictures and files of one result."""

    def __init__(self, context: CallContext, documents: DocumentReader) -> None:
        self._context, self._documents = context, documents
        self._count = 0
        self._lines: dict[bytes, str] = {}
        self.stored: list[Attachment] = []
        self.images: list[Image] = []

    async def take_from(self, text: str) -> str:
        """Store the files that are in a text as base64, and return it with a line for each."""
        parts: list[str] = []
        position = 0
        for each in await asyncio.to_thread(lambda: [*find_encoded(text)]):
            line = await self._add_encoded(each.data, each.media_type)
            parts += (text[position : each.start], line)
            position = each.end
        return "".join((*parts, text[position:]))

    async def add(self, name: str, data: str, media_type: str) -> str:
        """Store a file and return a line about it."""
        return await self._add(data, partial(self._store_file, name, media_type), once=False)

    async def add_picture(self, data: str, media_type: str) -> str:
        """Store a picture, for the model if it can be decoded, and return a line about it."""
        return await self._add(data, partial(self._store_picture, media_type))

    async def _add_encoded(self, data: str, media_type: str) -> str:
        if media_type and not media_type.startswith("image/"):
            return await self._add(data, partial(self._store_file, "file", media_type))
        return await self.add_picture(data, media_type)

    async def _add(
        self, data: str, store: Callable[[bytes], Awaitable[str]], *, once: bool = True
    ) -> str:
        """Store a file and return the line about it; with `once` the line that is there already."""
        try:
            content = await asyncio.to_thread(decoded, data)
        except ValueError:
            content = None
        digest = hashlib.sha256(content).digest() if content is not None else b""
        if once and digest in self._lines:
            return self._lines[digest]
        self._count += 1
        if self._count > MAX_FILES:
            return "" if self._count > MAX_FILES + 1 else "[More files are left out]"
        if content is None:
            return "[A file that is not base64 is left out]"
        line = self._lines[digest] = await store(content)
        return line

    async def _store_file(self, name: str, media_type: str, content: bytes) -> str:
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(_write, file, content)
            _, line = await self._store(file, _file_name(name, media_type))
        return line

    async def _store_picture(self, media_type: str, content: bytes) -> str:
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(_write, file, content)
            try:
                picture = await self._documents.read_picture(file.fileno())
            except DocumentUnreadable:
                return (await self._store(file, _file_name("file", media_type)))[1]
            if picture.content is not None:
                await asyncio.to_thread(_write, file, picture.content)
            name = f"picture-{self._count}{_EXTENSIONS.get(picture.media_type, '')}"
            stored, line = await self._store(file, name)
        if stored is not None:
            size = picture.width, picture.height
            self.images.append(Image(picture.media_type, stored.sha256, *size, stored.uri))
        return line

    async def _store(self, file: IO[bytes], name: str) -> tuple[Attachment | None, str]:
        """Store a file, and return it with a line about it; None if it cannot be stored."""
        try:
            stored = await self._context.store_file(name, file.fileno())
        except ToolError as error:
            return None, f"[A file cannot be stored: {error}]"
        self.stored.append(stored)
        return stored, f"[File {stored.name}, {stored.size:,} bytes, attached]"


def _joined(result: _Result, texts: Sequence[str]) -> str:
    """Return the whole text of a result, without hidden characters."""
    left_out = max(len(result.content) - MAX_BLOCKS, 0)
    notes = [f"[{left_out} more parts are left out]"] if left_out else []
    return escape_hidden("\n".join(filter(None, (*texts, *notes))))


def _structured(found: _Result, result: Mapping[str, Any]) -> str:
    """Return the structured content as JSON; "" if the other parts say the same."""
    structured = found.structured_content
    if structured is None or is_repeated(structured, result.get("content", ())):
        return ""
    return json.dumps(structured, ensure_ascii=False)


def _uri(uri: str) -> str:
    return truncate_line(uri, _MAX_URI_CHARS)


def _file_name(name: str, media_type: str) -> str:
    """Return a plain name for a file, with an extension for its media type."""
    plain = _FOREIGN.sub("_", escape_hidden(name)).strip("._")[-_MAX_NAME_CHARS:] or "file"
    kind = media_type.partition(";")[0].strip().lower()
    extension = _EXTENSIONS.get(kind) or mimetypes.guess_extension(kind) or ""
    return plain if "." in plain else plain + extension


def _write(file: IO[bytes], content: bytes) -> None:
    """Replace the content of an open file."""
    file.seek(0)
    file.truncate()
    file.write(content)
    file.flush()
    file.seek(0)
