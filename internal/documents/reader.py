"""`ChildDocumentReader`: reads each file in a child process of its own."""

import asyncio
import logging
import os
import signal
import stat
import sys
import sysconfig
from pathlib import Path

import msgspec

import internal
from internal.agent.app.background_task import run_to_completion
from internal.agent.domain.errors import DocumentUnreadable, ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.ports.documents import (
    MAX_DOCUMENT_CHARACTERS,
    DocumentText,
    FileForm,
    Picture,
    WebPage,
)
from internal.agent.ports.fair_slots import FairSlots
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand, SandboxResult
from internal.documents.kinds import (
    ENCODED_KINDS,
    HEAD_BYTES,
    PACKAGES,
    Kind,
    detect_kind,
    extension_of,
    is_text,
)
from internal.documents.plain_text import read_chunks
from internal.open_files.paths import resolve_links
from internal.text_encodings.detection import EncodingDetector, TextEncoding, detect
from internal.text_encodings.labels import codec_of_label

logger = logging.getLogger(__name__)

_PROGRAM = str(Path(__file__).with_name("child.py"))
_SESSION = SessionId("documents")
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_MAX_EXTENSION_CHARACTERS = 10
_MAX_OTHER_KINDS = 2  # such as a ZIP file that is a Word document that embeds web pages
_MAX_NUL_BYTES = 16 * 1024 * 1024
_WEB_PAGE_MEMORY_BYTES = 1024 * 1024 * 1024
_CPU_LIMIT_EXITS = (-signal.SIGXCPU, 128 + signal.SIGXCPU)
_DAMAGED = "The file was not understood: it is damaged, or of a form that is not read."
_CRASHED = "The file could not be read: it is damaged, or needs too much memory."


class _Header(msgspec.Struct, frozen=True):
    """The first line of an answer; which fields are set depends on the request."""

    unreadable: str = ""
    failure: str = ""
    kind: str = ""
    is_other_kind: bool = False
    parts: int = 1
    next_offset: int | None = None
    total: int | None = None
    media_type: str = ""
    width: int = 0
    height: int = 0
    unchanged: bool = False
    page: WebPage | None = None


class ChildDocumentReader:
    """Implements `DocumentReader`. At most `concurrency` files are read at once; see `FairSlots`.

    Args:
        sandbox: runs the child, which denies itself further rights.
        timeout_seconds: how long a file may take, not counting the wait.
        memory_bytes: the address space of a child.
        concurrency: how many children run at once.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        timeout_seconds: float = 30.0,
        memory_bytes: int = 512 * 1024 * 1024,
        concurrency: int = 2,
    ) -> None:
        self._sandbox = sandbox
        self._timeout = timeout_seconds
        self._memory = memory_bytes
        self._slots = FairSlots(concurrency)

    def form(self, descriptor: int, name: str, /) -> FileForm:
        """Return the form of a file; CSV and other plain text is shown by its characters."""
        match _detected(descriptor, name):
            case "picture" | "heif":
                return "picture"
            case "binary":
                return "binary"
            case "text" | "csv" | "tsv":
                return "text"
            case _:
                return "document"

    async def read(
        self,
        descriptor: int,
        name: str,
        *,
        offset: int = 0,
        max_characters: int = MAX_DOCUMENT_CHARACTERS,
    ) -> DocumentText:
        """Return the text from character `offset` on; see the port.

        Raises:
            DocumentUnreadable: the file has no text that can be read.
        """
        extension = extension_of(name)
        plain = extension.isascii() and extension.isalnum()
        extension = extension[:_MAX_EXTENSION_CHARACTERS] if plain else ""
        part = (extension, str(max(offset, 0)), str(max(max_characters, 1)))
        kind = _kind_of(descriptor, name)
        if kind == "zip" and extension in PACKAGES:
            kind = extension
        encoding = await self._encoding(descriptor, kind)
        codec = "" if encoding is None else encoding.codec
        header, content = await self._read_file(descriptor, "text", kind, codec, *part)
        for _ in range(_MAX_OTHER_KINDS):
            if header.is_other_kind:  # as which libraries are needed for
                request = ("text", header.kind, "", *part)
                header, content = await self._read_file(descriptor, *request)
        if header.is_other_kind:
            raise DocumentUnreadable(_DAMAGED)
        return DocumentText(
            text=content.decode("utf-8", "replace"),
            kind=header.kind,
            parts=header.parts,
            next_offset=header.next_offset,
            total=header.total,
            encoding=encoding,
        )

    async def read_picture(self, descriptor: int, /, page: int = 1) -> Picture:
        """Return the size of a picture, and other bytes if needed; see the port.

        Raises:
            DocumentUnreadable: it is not a picture, or cannot be read.
        """
        kind = _kind_of(descriptor, "")
        header, content = await self._read_file(descriptor, "picture", kind, "", "", str(page), "0")
        return Picture(
            media_type=header.media_type,
            width=header.width,
            height=header.height,
            content=None if header.unchanged else content,
            pages=header.parts,
        )

    async def convert_html(self, html: bytes, charset: str, address: str, /) -> WebPage:
        """Return the main content of a web page as Markdown; see the port.

        Raises:
            DocumentUnreadable: it cannot be converted.
        """
        if not html:
            return WebPage(has_text=False)
        encoding = await asyncio.to_thread(detect, html, codec_of_label(charset) or "")
        request = ("html", "html", encoding.codec, address, "0", "0")
        header, content = await self._ask(html, *request)
        page = header.page or WebPage()
        return msgspec.structs.replace(page, text=content.decode("utf-8", "replace"))

    async def _encoding(self, descriptor: int, kind: str) -> TextEncoding | None:
        """Return the encoding of a file, None if its bytes are not text."""
        if kind not in ENCODED_KINDS:
            return None
        try:
            return await run_to_completion(_detect_encoding, descriptor)
        except OSError as error:
            raise DocumentUnreadable(_DAMAGED) from error

    async def _read_file(self, descriptor: int, *request: str) -> tuple[_Header, bytes]:
        try:
            return await self._ask(descriptor, *request)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)  # the child has read through it

    async def _ask(self, content: bytes | int, *request: str) -> tuple[_Header, bytes]:
        async with self._slots.take():
            answer = await self._run(self._command(content, request))
        line, _, body = answer.partition(b"\n")
        try:
            header = msgspec.json.decode(line, type=_Header)
        except msgspec.DecodeError as error:
            raise DocumentUnreadable(_CRASHED) from error
        if header.failure:
            logger.warning("document cannot be read", extra={"failure": header.failure})
            raise DocumentUnreadable(_DAMAGED)
        if header.unreadable:
            raise DocumentUnreadable(header.unreadable)
        return header, body

    def _command(self, content: bytes | int, request: tuple[str, ...]) -> SandboxCommand:
        folders = _library_folders()
        read_only = resolve_links((*folders, *_interpreter_folders()))
        cpu_seconds = max(int(self._timeout), 1) + 1
        memory = _WEB_PAGE_MEMORY_BYTES if request[0] == "html" else self._memory
        return SandboxCommand(
            (
                *(str(Path(sys.executable).resolve()), "-I", "-S", "-W", "ignore", _PROGRAM),
                *(os.pathsep.join(folders), str(memory), str(cpu_seconds), *request),
            ),
            cwd="/",
            timeout_seconds=self._timeout,
            session_id=_SESSION,
            stdin=content,
            access=FileAccess(read_only=tuple(read_only), links=read_only),
        )

    async def _run(self, command: SandboxCommand) -> bytes:
        """Return the answer of the child.

        Raises:
            DocumentUnreadable: it cannot be started, takes too long, or answers too much.
        """
        answer = bytearray()

        def take(chunk: bytes) -> None:
            answer.extend(chunk)
            if len(answer) > _MAX_ANSWER_BYTES:
                raise DocumentUnreadable(_DAMAGED)

        try:
            finished = await self._sandbox.run(command, take)
        except ToolError as error:
            logger.warning("no process starts to read a document", extra={"reason": str(error)})
            raise DocumentUnreadable("The file cannot be read now: no process starts.") from error
        return self._checked(finished, bytes(answer))

    def _checked(self, finished: SandboxResult, answer: bytes) -> bytes:
        if finished.timed_out or finished.exit_code in _CPU_LIMIT_EXITS:
            raise DocumentUnreadable(
                f"Reading the file takes longer than {self._timeout:g} seconds."
            )
        if finished.exit_code:
            extra = {"exit_code": finished.exit_code}
            logger.warning("the process that reads a document has failed", extra=extra)
            raise DocumentUnreadable(_CRASHED)
        return answer


def _kind_of(descriptor: int, name: str) -> str:
    """Return the kind of a file by its beginning.

    Raises:
        DocumentUnreadable: it cannot be read, or is not a file.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise DocumentUnreadable("It is not a regular file.")
    try:
        return _detected(descriptor, name)
    except OSError as error:
        raise DocumentUnreadable(_DAMAGED) from error


def _detected(descriptor: int, name: str) -> Kind:
    """Return the kind of a file; a log may begin with many NUL bytes where it was cut off.

    Raises:
        OSError: it cannot be read.
    """
    head = os.pread(descriptor, HEAD_BYTES, 0)
    if len(head) < HEAD_BYTES or head.strip(b"\0"):
        return detect_kind(head, name)
    for place in range(HEAD_BYTES, _MAX_NUL_BYTES, _MAX_NUL_BYTES // 16):
        if found := os.pread(descriptor, _MAX_NUL_BYTES // 16, place).lstrip(b"\0"):
            return "text" if is_text(found[:HEAD_BYTES]) else "binary"
    return "binary"


def _detect_encoding(descriptor: int) -> TextEncoding:
    detector = EncodingDetector()
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        for chunk in read_chunks(file):
            detector.feed(chunk)
        file.seek(0)
    return detector.result()


def _library_folders() -> tuple[str, ...]:
    """Return where the child finds this package and the libraries."""
    paths = sysconfig.get_paths()
    own = Path(internal.__file__ or "").parent.parent
    return tuple(dict.fromkeys((str(own), paths["purelib"], paths["platlib"])))


def _interpreter_folders() -> tuple[str, ...]:
    """Return further folders that the interpreter needs; it may be installed anywhere."""
    return tuple(dict.fromkeys((sys.base_prefix, str(Path(sys.base_prefix).resolve()))))
