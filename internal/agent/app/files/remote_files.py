"""Remote files: the files of messages that a chat service keeps until a run fetches them."""

import asyncio
import mimetypes
from collections.abc import Sequence

from internal.agent.app.files.session_files import SessionFiles
from internal.agent.domain.errors import FilesUnavailable, FileTooLarge, RemoteFileUnavailable
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.attachments import OpenRemoteFile

FETCH_SECONDS = 300.0
"""The longest time for one file, with all attempts."""
MAX_ATTEMPTS = 4
_MAX_DELAY_SECONDS = 8.0
_CONCURRENCY = 4

FetchedFile = Attachment | RemoteFileUnavailable | FileTooLarge | FilesUnavailable


class RemoteFiles:
    """Fetches files from the accounts that were added.

    The URI of a file starts with the name of its account, such as `lark:cli_1/`.
    """

    def __init__(self, files: SessionFiles, *, first_delay: float = 0.5) -> None:
        self._files = files
        self._first_delay = first_delay
        self._accounts: dict[str, OpenRemoteFile] = {}

    def add_account(self, name: str, open_file: OpenRemoteFile) -> None:
        """Fetch the files whose URIs start with `name` and a slash with this function."""
        self._accounts[name] = open_file

    async def fetch(
        self, session_id: SessionId, attachments: Sequence[Attachment]
    ) -> list[FetchedFile]:
        """Store the files that are not stored yet; each is its attachment, or why there is none.

        Raises:
            StoreUnavailable: the database cannot be written.
        """
        slots = asyncio.Semaphore(_CONCURRENCY)

        async def fetch(attachment: Attachment) -> FetchedFile:
            if attachment.is_stored:
                return attachment
            async with slots:
                return await self._fetch(session_id, attachment)

        try:
            async with asyncio.TaskGroup() as tasks:
                fetched = [tasks.create_task(fetch(attachment)) for attachment in attachments]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return [each.result() for each in fetched]

    async def _fetch(self, session_id: SessionId, attachment: Attachment) -> FetchedFile:
        delay = self._first_delay
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                for _ in range(MAX_ATTEMPTS - 1):
                    try:
                        return await self._store(session_id, attachment)
                    except RemoteFileUnavailable as error:
                        if not error.is_temporary:
                            raise
                    await asyncio.sleep(delay)
                    delay = min(2 * delay, _MAX_DELAY_SECONDS)
                return await self._store(session_id, attachment)
        except (RemoteFileUnavailable, FileTooLarge, FilesUnavailable) as error:
            return error
        except TimeoutError:
            return RemoteFileUnavailable("it did not arrive in five minutes")

    async def _store(self, session_id: SessionId, attachment: Attachment) -> Attachment:
        open_file = self._accounts.get(attachment.uri.partition("/")[0])
        if open_file is None:
            raise RemoteFileUnavailable(
                "the chat that it was sent to is not connected to this process"
            )
        async with open_file(attachment.uri) as content:
            media_type = content.media_type or attachment.media_type
            name = _with_extension(attachment.name, media_type)
            return await self._files.put_stream(session_id, name, media_type, content.chunks)


def _with_extension(name: str, media_type: str) -> str:
    """Return a name that has an extension, that of its media type if it had none."""
    if "." in name.strip("."):
        return name
    return f"{name}{mimetypes.guess_extension(media_type) or ''}"
