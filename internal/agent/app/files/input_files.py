"""Input files: the attachments of a message, in the session's folder and as the model sees them."""

import hashlib
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import NamedTuple

from internal.agent.app.background_task import open_to_completion, run_to_completion
from internal.agent.app.files.remote_files import RemoteFiles
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.files.transcripts import Transcripts
from internal.agent.domain.errors import (
    AudioNotTranscribed,
    DocumentUnreadable,
    FilesUnavailable,
    InvalidRequest,
    NotFound,
    StoreCorrupt,
)
from internal.agent.domain.events.types import Notice
from internal.agent.domain.ids import SessionId
from internal.agent.domain.messages import Image, Part, Text
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.text import escape_delimiters, is_invisible, truncate, truncate_json
from internal.agent.ports.attachments import FileFolderResolver
from internal.agent.ports.audio import AudioReader, Transcript
from internal.agent.ports.documents import DocumentReader
from internal.text_encodings.conversion import decode_utf8

MAX_FILES = 50
"""Files of one message that the model is shown; further ones are counted."""
MAX_SHOWN_CHARACTERS = 20_000
MAX_SHOWN_CHARACTERS_OF_ALL = 60_000
"""Characters of one file, and of all files, that are a part of the message."""


_MAX_NAME_BYTES = 200  # leaves room for a number within the 255 bytes of a file system
_MAX_EXTENSION_CHARACTERS = 12
_MAX_DIRECT_BYTES = 4 * MAX_SHOWN_CHARACTERS
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_READ_ON = "[read_file reads on]"
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class MessageFile(NamedTuple):
    """A file as the model sees it; `problem` says why it cannot be used, "" if it can.

    `is_unheard`: it is a recording, and no service transcribes recordings.
    """

    text: Text
    image: Image | None = None
    problem: str = ""
    attachment: Attachment | None = None
    is_unheard: bool = False


def file_parts(files: Sequence[MessageFile]) -> tuple[Part, ...]:
    """Return files as parts of a message: the pictures first."""
    images = (file.image for file in files if file.image is not None)
    return (*images, *(file.text for file in files))


def stored_files(files: Sequence[MessageFile]) -> tuple[Attachment, ...]:
    """Return the attachments of the files that are stored."""
    return tuple(file.attachment for file in files if file.attachment is not None)


def file_problems(files: Sequence[MessageFile]) -> Iterator[Notice]:
    """Yield why files cannot be used; the chat of the run is told as well."""
    for file in files:
        if file.problem:
            yield Notice(about="input_files", text=truncate_json(file.problem))


class _Message(NamedTuple):
    """A message whose files are added. `shown` is the path of the folder as tools take it."""

    session_id: SessionId
    folder: str
    shown: str
    transcripts: Transcripts

    def element(
        self, attachment: Attachment, name: str, text: str, seconds: float | None = None
    ) -> Text:
        """Return how a file is introduced to the model, whatever its name and text contain."""
        shown = _attribute(truncate(attachment.name, 200))
        path = _attribute(f"{self.shown}/{name}")
        media_type = _attribute(truncate(attachment.media_type, 100))
        about = f'name="{shown}" path="{path}" media_type="{media_type}"'
        about += f' size="{attachment.size:,}"'
        if seconds is not None:
            about += f' seconds="{seconds:.1f}"'
        return Text(f"<attachment {about}>\n{escape_delimiters(text)}\n</attachment>\n")


class InputFiles:
    """Puts the files of a message into the session's input folder and describes them to the model.

    Files that a chat service still has are fetched first.

    A file has the same name there after a second preparation; a name that is used by other bytes
    gets a number.
    """

    def __init__(
        self,
        files: SessionFiles,
        remote: RemoteFiles,
        *,
        documents: DocumentReader,
        audio: AudioReader,
        folders: FileFolderResolver,
    ) -> None:
        self._files = files
        self._remote = remote
        self._documents = documents
        self._audio = audio
        self._folders = folders

    async def add(
        self, session_id: SessionId, workspace: str, attachments: Sequence[Attachment]
    ) -> list[MessageFile]:
        """Return the files as parts of a message; an unusable one is replaced by the reason.

        Raises:
            StoreUnavailable: the store cannot be used now.
        """
        if not attachments:
            return []
        folders = self._folders(session_id, workspace)
        shown = "input" if folders.are_together else folders.input
        message = _Message(session_id, folders.input, shown, Transcripts(self._audio))
        left = MAX_SHOWN_CHARACTERS_OF_ALL
        added: list[MessageFile] = []
        used = attachments[:MAX_FILES]
        fetched = await self._remote.fetch(session_id, used)
        for attachment, found in zip(used, fetched, strict=True):
            if not isinstance(found, Attachment):
                added.append(_unusable(attachment, str(found)))
                continue
            limit = max(min(left, MAX_SHOWN_CHARACTERS), 0)
            file = (await self._add(message, found, limit))._replace(attachment=found)
            left -= len(file.text.text)
            added.append(file)
        if len(attachments) > MAX_FILES:
            problem = f"{len(attachments) - MAX_FILES} more files are not used: 50 at a time."
            added.append(MessageFile(Text(f"({problem})\n"), problem=problem))
        return added

    def explain_unheard(
        self,
        files: Sequence[MessageFile],
        instruction: str,
        earlier: Callable[[], Sequence[str]],
    ) -> tuple[list[MessageFile], str]:
        """Tell the person once, and not for each recording, that recordings are not heard.

        Returns the files with their problems and, if the message is nothing but such recordings,
        its answer. `earlier` returns what was written before, the newest first.
        """
        unheard = [file for file in files if file.is_unheard]
        if not unheard:
            return [*files], ""
        notice = self._audio.unheard_notice(instruction, earlier())
        is_answer = notice.is_answer and len(unheard) == len(files)
        explained = [file._replace(problem="") if file.is_unheard else file for file in files]
        if not is_answer:
            first = explained.index(unheard[0]._replace(problem=""))
            explained[first] = explained[first]._replace(problem=notice.text)
        return explained, notice.text if is_answer else ""

    async def _add(self, message: _Message, attachment: Attachment, limit: int) -> MessageFile:
        try:
            name, descriptor = await self._place(message.folder, attachment)
        except (NotFound, StoreCorrupt, FilesUnavailable) as error:
            return _unusable(attachment, str(error))
        except OSError as error:
            return _unusable(attachment, f"it cannot be written. {describe_system_error(error)}")
        try:
            return await self._describe(message, attachment, name, descriptor, limit=limit)
        except AudioNotTranscribed as error:
            text, is_unheard = (
                message.element(attachment, name, str(error)),
                not self._audio.can_transcribe,
            )
            return MessageFile(text, problem=f"{name}: {error}", is_unheard=is_unheard)
        except (DocumentUnreadable, InvalidRequest, FilesUnavailable) as error:
            return MessageFile(
                message.element(attachment, name, str(error)), problem=f"{name}: {error}"
            )
        finally:
            os.close(descriptor)

    async def _place(self, folder: str, attachment: Attachment) -> tuple[str, int]:
        """Put a file into the folder, unless it is there; return its name and open it.

        Raises:
            OSError: the folder cannot be used; nothing was added.
            NotFound, StoreCorrupt: the store does not have the content.
        """
        opened = os.open(folder, _FOLDER_FLAGS)
        try:
            for name in _numbered(safe_name(attachment.name)):
                found = await self._find(opened, name, attachment)
                if found is None:
                    found = await self._copy(opened, name, attachment)
                if found is not None:
                    return name, found
        finally:
            os.close(opened)
        raise FileExistsError(f"too many files are called {attachment.name}")

    async def _find(self, folder: int, name: str, attachment: Attachment) -> int | None:
        """Open a file of an open folder if it has the content of the attachment."""

        def close(descriptor: int | None) -> None:
            if descriptor is not None:
                os.close(descriptor)

        return await open_to_completion(partial(_open_same, folder, name, attachment), close)

    async def _copy(self, folder: int, name: str, attachment: Attachment) -> int | None:
        """Copy a file from the store into an open folder and open it; None if the name is taken."""
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            return None
        temporary = f".larkspur-{secrets.token_hex(8)}"
        descriptor = os.open(temporary, _NEW_FLAGS, 0o400, dir_fd=folder)
        try:
            await self._files.copy_to(attachment.sha256, descriptor)
            if await run_to_completion(_publish, folder, temporary, name, descriptor):
                return os.dup(descriptor)
        finally:
            os.close(descriptor)
            os.unlink(temporary, dir_fd=folder)
        return None

    async def _describe(
        self,
        message: _Message,
        attachment: Attachment,
        name: str,
        descriptor: int,
        *,
        limit: int,
    ) -> MessageFile:
        """Return a file of the folder as a part of a message, according to its content.

        Raises:
            DocumentUnreadable: it is damaged, protected by a password, or hostile.
            AudioNotTranscribed: it is a recording that cannot be transcribed.
        """
        if not attachment.size:
            return MessageFile(message.element(attachment, name, "[the file is empty]"))
        form = self._documents.form(descriptor, name)
        if form == "picture":
            image = await self._picture(message.session_id, attachment, descriptor)
            return MessageFile(
                message.element(attachment, name, "[a picture, shown to you]"), image
            )
        if form != "document" and (
            recording := self._audio.inspect(
                descriptor, attachment.media_type if form == "binary" else ""
            )
        ):
            transcript = await message.transcripts.get(attachment.sha256, descriptor, recording)
            return await self._recording(message, attachment, name, transcript, limit=limit)
        if form == "binary":
            return MessageFile(message.element(attachment, name, "[a binary file, not shown]"))
        if not limit:
            return MessageFile(message.element(attachment, name, "[read_file reads it]"))
        text, is_whole = await self._text(descriptor, name, limit, is_plain=form == "text")
        beginning = text if is_whole else f"{text}\n{_READ_ON}"
        return MessageFile(message.element(attachment, name, beginning))

    async def _recording(
        self,
        message: _Message,
        attachment: Attachment,
        name: str,
        transcript: Transcript,
        *,
        limit: int,
    ) -> MessageFile:
        """Return a recording with its transcript; one that is too long becomes a file as well."""
        text = transcript.text
        if len(text) > limit:
            content = text.encode()
            file = await self._files.put(message.session_id, f"{name}.txt", "text/plain", content)
            whole, descriptor = await self._place(message.folder, file)
            os.close(descriptor)
            text = f"{text[:limit]}\n[the whole transcript is in {message.shown}/{whole}]"
        shown = f"[transcript]\n{text}"
        return MessageFile(message.element(attachment, name, shown, transcript.seconds))

    async def _text(
        self, descriptor: int, name: str, limit: int, *, is_plain: bool
    ) -> tuple[str, bool]:
        """Return the beginning of a file's text, and whether it is all of it."""
        if is_plain:
            content = os.pread(descriptor, _MAX_DIRECT_BYTES + 1, 0)
            is_direct = len(content) <= _MAX_DIRECT_BYTES and b"\0" not in content
            if is_direct and (text := decode_utf8(content)) is not None:
                return text[:limit], len(text) <= limit
        source = "text.txt" if is_plain else name
        document = await self._documents.read(descriptor, source, max_characters=limit)
        remark = "" if document.encoding is None else document.encoding.remark
        shown = f"{remark}\n{document.text}" if remark else document.text
        return shown, document.next_offset is None

    async def _picture(
        self, session_id: SessionId, attachment: Attachment, descriptor: int
    ) -> Image:
        picture = await self._documents.read_picture(descriptor)
        stored = attachment
        if picture.content is not None:
            stored = await self._files.put(
                session_id, attachment.name, picture.media_type, picture.content
            )
        return Image(picture.media_type, stored.sha256, picture.width, picture.height, stored.uri)


def safe_name(name: str) -> str:
    """Return the name of a file without folders and without signs that mislead people or programs.

    At most 200 bytes of UTF-8; the extension is kept.
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name).rstrip("/\\"))[-1]
    blank = "".join(" " if unicodedata.category(each) == "Zs" else each for each in last)
    visible = "".join("_" if is_invisible(each) and each != " " else each for each in blank)
    plain = " ".join(visible.split()).lstrip(".-~ ").rstrip(". ")
    plain = re.sub(r'[<>:"|?*]', "_", plain.encode("utf-8", "replace").decode())
    if not plain.strip("_"):
        plain = "file"
    if _RESERVED.fullmatch(plain):
        plain = f"_{plain}"
    stem, extension = _split(plain)
    return f"{_cut(stem, _MAX_NAME_BYTES - len(extension.encode()))}{extension}"


def _split(name: str) -> tuple[str, str]:
    stem, extension = os.path.splitext(name)  # noqa: PTH122 - a name, not a path
    return (name, "") if len(extension) > _MAX_EXTENSION_CHARACTERS else (stem, extension)


def _cut(text: str, max_bytes: int) -> str:
    return text.encode()[:max_bytes].decode("utf-8", "ignore")


def _numbered(name: str) -> Iterator[str]:
    """Yield the name, then the same one with numbers."""
    yield name
    stem, extension = _split(name)
    for number in range(2, MAX_FILES * 1_000):
        yield f"{stem}-{number}{extension}"


def _open_same(folder: int, name: str, attachment: Attachment) -> int | None:
    """Open the file of this name if it has the content of the attachment."""
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=folder)
    except OSError:  # there is none, or it is no file
        return None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size == attachment.size:
        with closing(os.fdopen(os.dup(descriptor), "rb")) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == attachment.sha256:
                return descriptor
    os.close(descriptor)
    return None


def _publish(folder: int, temporary: str, name: str, descriptor: int) -> bool:
    """Make a complete file read-only and give it its name; False if the name is taken."""
    os.fchmod(descriptor, 0o444)
    os.fsync(descriptor)
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)  # fails if it exists
    except FileExistsError:
        return False
    return True


def _unusable(attachment: Attachment, reason: str) -> MessageFile:
    name = _attribute(truncate(attachment.name, 200))
    text = f'<attachment name="{name}">\n[the file is not available: {reason}]\n</attachment>\n'
    return MessageFile(Text(text), problem=f"{name}: {reason}")


def _attribute(text: str) -> str:
    visible = "".join("_" if is_invisible(each) and each != " " else each for each in text)
    return visible.translate({ord('"'): "'", ord("<"): "(", ord(">"): ")"})
