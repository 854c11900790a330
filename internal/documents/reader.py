"""`ChildDocumentReader`: reads each file in a child process of its own."""

import asyncio
import contextlib
import logging
import os
import signal
import stat
import sys
import sysconfig
from pathlib import Path

import msgspec

import internal
from internal.agent.app.background_task import wait_for_completion
from internal.agent.domain.errors import DocumentUnreadable
from internal.agent.ports.documents import (
    MAX_DOCUMENT_CHARACTERS,
    DocumentText,
    FileForm,
    Picture,
)
from internal.documents.kinds import HEAD_BYTES, detect_kind, extension_of

logger = logging.getLogger(__name__)

_PROGRAM = str(Path(__file__).with_name("child.py"))
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_MAX_EXTENSION_CHARACTERS = 10
_DAMAGED = "The file is damaged, or of a form that cannot be read."
_CRASHED = "The file could not be read: it is damaged, or needs too much memory."


class _Header(msgspec.Struct, frozen=True):
    """The first line of an answer; which fields are set depends on the request."""

    unreadable: str = ""
    failure: str = ""
    kind: str = ""
    parts: int = 1
    next_offset: int | None = None
    total: int | None = None
    media_type: str = ""
    width: int = 0
    height: int = 0
    unchanged: bool = False


class ChildDocumentReader:
    """Implements `DocumentReader`. At most `concurrency` files are read at once; others wait.

    Args:
        timeout_seconds: how long a file may take, not counting the wait.
        memory_bytes: the address space of a child.
        concurrency: how many children run at once.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float = 30.0,
        memory_bytes: int = 512 * 1024 * 1024,
        concurrency: int = 2,
    ) -> None:
        self._timeout = timeout_seconds
        self._memory = memory_bytes
        self._slots = asyncio.Semaphore(concurrency)

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
        shown = f"x.{extension[:_MAX_EXTENSION_CHARACTERS]}" if plain else "x"
        header, content = await self._ask(
            descriptor, ("text", shown, str(max(offset, 0)), str(max(max_characters, 1)))
        )
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
        header, content = await self._ask(descriptor, ("picture", "x", str(page), "0"))
        return Picture(
            media_type=header.media_type,
            width=header.width,
            height=header.height,
            content=None if header.unchanged else content,
            pages=header.parts,
        )

    async def _ask(self, descriptor: int, request: tuple[str, ...]) -> tuple[_Header, bytes]:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DocumentUnreadable("It is not a regular file.")
        async with self._slots:
            child = _Child(descriptor, self._arguments(request), self._timeout)
            try:
                answer = await wait_for_completion(child.run(), child.end)
            finally:
                os.lseek(descriptor, 0, os.SEEK_SET)  # the child has read through it
        line, _, content = answer.partition(b"\n")
        try:
            header = msgspec.json.decode(line, type=_Header)
        except msgspec.DecodeError as error:
            raise DocumentUnreadable(_CRASHED) from error
        if header.failure:
            logger.warning("document cannot be read", extra={"failure": header.failure})
            raise DocumentUnreadable(_DAMAGED)
        if header.unreadable:
            raise DocumentUnreadable(header.unreadable)
        return header, content

    def _arguments(self, request: tuple[str, ...]) -> tuple[str, ...]:
        cpu_seconds = str(max(int(self._timeout), 1) + 1)
        return (_folders(), str(os.getpid()), str(self._memory), cpu_seconds, *request)


def _folders() -> str:
    """Return where the child finds this package and the libraries."""
    paths = sysconfig.get_paths()
    own = Path(internal.__file__ or "").parent.parent
    return os.pathsep.join(dict.fromkeys((str(own), paths["purelib"], paths["platlib"])))


class _Child:
    """One child process, from its start until it is reaped."""

    def __init__(self, descriptor: int, arguments: tuple[str, ...], timeout: float) -> None:
        self._descriptor = descriptor
        self._arguments = arguments
        self._timeout = timeout
        self._process: asyncio.subprocess.Process | None = None
        self._ended = False

    def end(self) -> None:
        """Kill the process. May be called at any time and repeatedly."""
        self._ended = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def run(self) -> bytes:
        """Return what the process answers.

        Raises:
            DocumentUnreadable: it cannot be started, takes too long, or answers too much.
        """
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-W", "ignore", _PROGRAM, *self._arguments),
                stdin=self._descriptor,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
                env={"LANG": "C.UTF-8"},
            )
        except OSError as error:
            raise DocumentUnreadable("The file cannot be read now: no process starts.") from error
        if self._ended:
            self.end()
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._read(self._process)
                code = await self._process.wait()
        except TimeoutError as error:
            raise DocumentUnreadable(self._too_slow) from error
        finally:
            self.end()
            await self._process.wait()
        if code == -signal.SIGXCPU:
            raise DocumentUnreadable(self._too_slow)
        return answer if code == 0 else b""

    async def _read(self, process: asyncio.subprocess.Process) -> bytes:
        output = process.stdout
        answer = bytearray()
        while output is not None and (chunk := await output.read(1 << 16)):
            answer += chunk
            if len(answer) > _MAX_ANSWER_BYTES:
                raise DocumentUnreadable(_DAMAGED)
        return bytes(answer)

    @property
    def _too_slow(self) -> str:
        return f"Reading the file takes longer than {self._timeout:g} seconds."
