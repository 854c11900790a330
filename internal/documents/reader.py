"""`ChildDocumentReader`: reads each file in a child process of its own."""

import logging
import os
import signal
import stat
import sys
import sysconfig
from pathlib import Path

import msgspec

import internal
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
from internal.documents.kinds import HEAD_BYTES, PACKAGES, detect_kind, extension_of
from internal.open_files.paths import resolve_links

logger = logging.getLogger(__name__)

_PROGRAM = str(Path(__file__).with_name("child.py"))
_SESSION = SessionId("documents")
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_MAX_EXTENSION_CHARACTERS = 10
_WEB_PAGE_MEMORY_BYTES = 1024 * 1024 * 1024
_CPU_LIMIT_EXITS = (-signal.SIGXCPU, 128 + signal.SIGXCPU)
_DAMAGED = "The file is damaged, or of a form that cannot be read."
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
        match detect_kind(os.pread(descriptor, HEAD_BYTES, 0), name):
            case "picture" | "binary" as form:
                return form
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
        header, content = await self._read_file(descriptor, "text", kind, *part)
        if header.is_other_kind:  # as which libraries are needed for
            header, content = await self._read_file(descriptor, "text", header.kind, *part)
        if header.is_other_kind:
            raise DocumentUnreadable(_DAMAGED)
        return DocumentText(
            text=content.decode("utf-8", "replace"),
            kind=header.kind,
            parts=header.parts,
            next_offset=header.next_offset,
            total=header.total,
        )

    async def read_picture(self, descriptor: int, /, page: int = 1) -> Picture:
        """Return the size of a picture, and other bytes if needed; see the port.

        Raises:
            DocumentUnreadable: it is no picture, or cannot be read.
        """
        kind = _kind_of(descriptor, "")
        header, content = await self._read_file(descriptor, "picture", kind, "", str(page), "0")
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
        header, content = await self._ask(html, "html", charset, address, "0", "0")
        page = header.page or WebPage()
        return msgspec.structs.replace(page, text=content.decode("utf-8", "replace"))

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
        """Return what the child answers.

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
        return detect_kind(os.pread(descriptor, HEAD_BYTES, 0), name)
    except OSError as error:
        raise DocumentUnreadable(_DAMAGED) from error


def _library_folders() -> tuple[str, ...]:
    """Return where the child finds this package and the libraries."""
    paths = sysconfig.get_paths()
    own = Path(internal.__file__ or "").parent.parent
    return tuple(dict.fromkeys((str(own), paths["purelib"], paths["platlib"])))


def _interpreter_folders() -> tuple[str, ...]:
    """Return what the interpreter needs besides; it may be installed anywhere."""
    return tuple(dict.fromkeys((sys.base_prefix, str(Path(sys.base_prefix).resolve()))))
