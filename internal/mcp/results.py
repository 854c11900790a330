"""What a call returns: text that is marked as untrusted, pictures, and files."""

import asyncio
import base64
import binascii
import json
import mimetypes
import re
import tempfile
from collections.abc import Sequence
from typing import IO, Any

import msgspec

from internal.agent.domain.errors import DocumentUnreadable, ToolError
from internal.agent.domain.messages import Image
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.text import escape_hidden, mark_untrusted, truncate_line
from internal.agent.ports.documents import DocumentReader
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.mcp.elicitation import DECLINED_KEY

MAX_FILES = 20
"""Pictures and other files of one result; further ones are left out."""
MAX_BLOCKS = 1_000
DECLINED_NOTE = "A question of the server to people was declined, because it cannot be shown:"
_MAX_REASON_CHARS = 300
_MAX_NAME_CHARS = 100
_MAX_URI_CHARS = 500
_FOREIGN = re.compile(r"[^\w.-]+")
_BLANKS = re.compile(r"\s+")
_DATA_URL = re.compile(r"\s*data:[^,]{0,200};base64,", re.IGNORECASE)
_URL_ALPHABET = str.maketrans("-_", "+/")
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
        declined = [
            truncate_line(str(why), _MAX_REASON_CHARS) for why in result.get(DECLINED_KEY, ())
        ]
        files = _Files(context, self._documents)
        texts = [await self._read_block(block, files) for block in found.content[:MAX_BLOCKS]]
        text = await asyncio.to_thread(_joined, found, texts)
        if found.is_error:
            note = f"{DECLINED_NOTE} {'; '.join(declined)}.\n" if declined else ""
            failure = text or "the call failed without a reason"
            raise ToolError(f"{note}{mark_untrusted(source, failure)}")
        return ToolOutcome(
            mark_untrusted(source, text or "(nothing)"),
            attachments=tuple(files.stored),
            metadata={
                "source": source,
                "untrusted": True,
                **({"declined": declined} if declined else {}),
            },
            images=tuple(files.images),
        )

    async def _read_block(self, block: _Block, files: "_Files") -> str:
        match block.type:
            case "text":
                return block.text
            case "image":
                return await files.add_picture(block.data, block.mime_type)
            case "audio":
                return await files.add("audio", block.data, block.mime_type)
            case "resource_link":
                return f"[Link to a resource, which was not followed: {_uri(block.uri)}]"
            case "resource":
                return await self._read_resource(block.resource, files)
            case _:
                return f"[A part of an unknown type, {truncate_line(block.type, 40)}]"

    async def _read_resource(self, resource: _Resource, files: "_Files") -> str:
        if resource.text is not None:
            return f"[Resource {_uri(resource.uri)}]\n{resource.text}"
        name = resource.uri.rstrip("/").rpartition("/")[2]
        if resource.mime_type.startswith("image/"):
            return await files.add_picture(resource.blob or "", resource.mime_type)
        return await files.add(name or "resource", resource.blob or "", resource.mime_type)


class _Files:
    """Stores the pictures and files of one result."""

    def __init__(self, context: CallContext, documents: DocumentReader) -> None:
        self._context, self._documents = context, documents
        self._count = 0
        self.stored: list[Attachment] = []
        self.images: list[Image] = []

    async def add(self, name: str, data: str, media_type: str) -> str:
        """Store a file and return a line about it."""
        content = self._take(data)
        if isinstance(content, str):
            return content
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(_write, file, content)
            _, line = await self._store(file, _file_name(name, media_type))
        return line

    async def add_picture(self, data: str, media_type: str) -> str:
        """Store a picture, for the model if it can be decoded, and return a line about it."""
        content = self._take(data)
        if isinstance(content, str):
            return content
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

    def _take(self, data: str) -> bytes | str:
        """Return the bytes of a file, or a line that says why it is left out."""
        self._count += 1
        if self._count > MAX_FILES:
            return "" if self._count > MAX_FILES + 1 else "[More files are left out]"
        try:
            return _decoded(data)
        except (binascii.Error, ValueError):
            return "[A file that is not base64 is left out]"

    async def _store(self, file: IO[bytes], name: str) -> tuple[Attachment | None, str]:
        """Store a file, and return it with a line about it; None if it cannot be stored."""
        try:
            stored = await self._context.store_file(name, file.fileno())
        except ToolError as error:
            return None, f"[A file cannot be stored: {error}]"
        self.stored.append(stored)
        return stored, f"[File {stored.name}, {stored.size:,} bytes, attached]"


def _decoded(data: str) -> bytes:
    """Return the bytes of base64 as servers write it.

    It may have line ends, the prefix of a data URL, the alphabet of URLs, or no padding.

    Raises:
        ValueError: it is not base64.
    """
    plain = _BLANKS.sub("", _DATA_URL.sub("", data, count=1)).rstrip("=")
    plain = plain.translate(_URL_ALPHABET)
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def _joined(result: _Result, texts: Sequence[str]) -> str:
    """Return the whole text of a result, without hidden characters."""
    left_out = max(len(result.content) - MAX_BLOCKS, 0)
    notes = [f"[{left_out} more parts are left out]"] if left_out else []
    return escape_hidden("\n".join(filter(None, (*texts, _structured(result), *notes))))


def _structured(result: _Result) -> str:
    """Return the structured content as JSON; "" if a text says the same, as the protocol asks."""
    if result.structured_content is None:
        return ""
    texts: Sequence[str] = [block.text for block in result.content if block.type == "text"]
    for text in texts:
        try:
            if json.loads(text) in (result.structured_content, _inner(result.structured_content)):
                return ""
        except (ValueError, RecursionError):
            if text == _inner(result.structured_content):
                return ""
    return json.dumps(result.structured_content, ensure_ascii=False)


def _inner(value: Any) -> Any:
    """Return what is in {"result": …}, in which SDKs wrap values that are no objects."""
    return value.get("result") if isinstance(value, dict) and len(value) == 1 else value


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
