"""Storage of attachments and of the workspaces of sessions."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Attachment, Task

RegisterUse = Callable[[str, int], Awaitable[None]]
"""Stores who uses a file, given its hash and size. An exception means that it is not stored.

It is awaited when the content is complete and before the file can be found. So a file is always
known to the database, and a removal does not cross with a `put` of the same content.
"""


RemoveFile = Callable[[str], Awaitable[None]]
"""Removes the bytes with a hash, if there are any.

Raises StoreUnavailable or FilesUnavailable if it cannot.
"""


class StoredFile(NamedTuple):
    """A file of a store."""

    sha256: str
    size: int


class Attachments(Protocol):
    """A content-addressed store: equal bytes have the same URI, such as `attachment:<sha256>`.

    Every method that stores raises StoreUnavailable if the disk cannot be written, and any
    exception of `register`. Nothing was stored then. Every method raises FilesUnavailable if
    another service stores the files and does not answer.
    """

    async def put(
        self, name: str, media_type: str, content: bytes, /, register: RegisterUse | None = None
    ) -> Attachment:
        """Store the bytes and return their attachment. Repeating this is free."""
        ...

    async def put_stream(
        self,
        name: str,
        media_type: str,
        chunks: AsyncIterable[bytes],
        /,
        *,
        max_bytes: int,
        register: RegisterUse | None = None,
    ) -> Attachment:
        """Store the bytes of `chunks`; at most a few chunks are held in memory.

        Raises:
            FileTooLarge: there are more than `max_bytes`.
        """
        ...

    async def put_file(
        self,
        name: str,
        media_type: str,
        descriptor: int,
        /,
        *,
        max_bytes: int,
        register: RegisterUse | None = None,
    ) -> Attachment:
        """Store an open regular file from its first byte, read once.

        The hash always describes the stored bytes, even if the file changes meanwhile.

        Raises:
            FileTooLarge: it has more than `max_bytes`.
            OSError: it cannot be read.
        """
        ...

    async def get(self, sha256: str, /) -> bytes:
        """Return the bytes.

        Raises:
            NotFound: no file has this hash.
            StoreCorrupt: the file is damaged.
        """
        ...

    def stream(
        self, sha256: str, /, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield the bytes from `start` up to, without, `end`.

        A file that is read as a whole is verified before its last bytes are yielded.

        Raises:
            NotFound: no file has this hash.
            StoreCorrupt: the file is damaged.
        """
        ...

    async def copy_to(self, sha256: str, descriptor: int, /) -> int:
        """Write the bytes to an empty file that is open for reading and writing; return their size.

        The file shares no storage that a later write to it could change. It is empty after an
        error.

        Raises:
            NotFound: no file has this hash.
            StoreCorrupt: the stored file is damaged.
            OSError: the file cannot be written.
        """
        ...

    async def size(self, sha256: str, /) -> int:
        """Return the number of bytes.

        Raises:
            NotFound: no file has this hash.
        """
        ...

    async def url(self, sha256: str, name: str, media_type: str, /) -> str | None:
        """Return a temporary URL that downloads the file, None if the store has none."""
        ...

    async def remove_unfinished(self) -> None:
        """Remove the incomplete files that killed processes left."""
        ...

    def stored(self, *, after: str = "") -> AsyncGenerator[StoredFile]:
        """Yield the stored files with hashes greater than `after`, in their order."""
        ...

    async def identify(self, new: str = "", /) -> str:
        """Return the id of the store, by which hosts find out whether they share it.

        A store without an id gets `new`; without that "" is returned.

        Raises:
            StoreUnavailable, FilesUnavailable: the store cannot be reached.
        """
        ...

    def removal(self) -> AbstractAsyncContextManager[RemoveFile]:
        """Hold off every file that is about to become available, of all processes, in a block.

        The block gets a function that removes a file.
        """
        ...


class RemoteContent(NamedTuple):
    """The content of a file that a chat service sends, in pieces; `media_type` "" is unknown."""

    media_type: str
    chunks: AsyncIterator[bytes]


OpenRemoteFile = Callable[[str], AbstractAsyncContextManager[RemoteContent]]
"""Opens the file with a URI. Opening it and reading its chunks raise RemoteFileUnavailable."""


INPUT_VARIABLE, OUTPUT_VARIABLE = "LARKSPUR_INPUT_DIR", "LARKSPUR_OUTPUT_DIR"
"""Environment variables of commands with the paths of `FileFolders`."""


class FileFolders(NamedTuple):
    """The folders of a session for files that people sent, and for files that are made for them.

    `output` is the folder of this name in the workspace. `input` is in the workspace too if that is
    Larkspur's own, else in the home folder: nothing is created in a folder of a person. `read_only`
    are other folders that commands read, such as the objects of a repository.
    """

    input: str
    output: str
    read_only: tuple[str, ...] = ()

    @property
    def are_together(self) -> bool:
        """Whether both are in a workspace of Larkspur's own, in which no person works."""
        return self.input.rpartition("/")[0] == self.output.rpartition("/")[0]


FileFolderResolver = Callable[[SessionId, str], FileFolders]
"""Returns the folders of a session that works in a workspace; they may not exist."""


class PartialUpload(Protocol):
    """An upload that a client sends. Everything that was received is in the file `descriptor`."""

    descriptor: int

    async def append(self, chunks: AsyncIterable[bytes], /) -> None:
        """Append the received bytes.

        Raises:
            FileTooLarge: there are more bytes than allowed; the upload is discarded.
            StoreUnavailable: the file cannot be written.
        """
        ...

    def discard(self) -> None:
        """Remove the received part."""
        ...


class PartialUploads(Protocol):
    """The received parts of incomplete uploads, by principal and announced SHA-256."""

    async def received(self, principal: str, sha256: str, /) -> int:
        """Return how many bytes of an upload are stored, 0 if there is none."""
        ...

    def open(
        self, principal: str, sha256: str, /, *, offset: int, max_bytes: int
    ) -> AbstractAsyncContextManager[PartialUpload]:
        """Continue an upload at `offset`, or start it with offset 0; one connection at a time.

        The received part stays when the block fails, until `discard`.

        Raises:
            Conflict: `offset` is not the stored size, or another connection sends the same file.
            StoreUnavailable: the folder cannot be written.
        """
        ...

    async def remove_expired(self) -> None:
        """Remove uploads to which nothing was added for a day."""
        ...


class SessionWorkspaces(Protocol):
    """The folders that Larkspur created for sessions, their subtasks and their commands."""

    async def remove(self, session_id: SessionId, /) -> None:
        """Remove the folders of a session and everything in them, if there are any.

        Raises:
            StoreUnavailable: a part of it cannot be removed.
        """
        ...

    async def remove_worktree(self, task: Task, /) -> None:
        """Remove the worktree of a task and its branch, which stays if somebody has changed it.

        Raises:
            StoreUnavailable: a part of it cannot be removed.
        """
        ...
