"""Files of messages are fetched into their session, or there is a sentence why not."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from internal.agent.app.files.remote_files import MAX_ATTEMPTS, RemoteFiles
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.domain.errors import FileTooLarge, RemoteFileUnavailable
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.attachments import RemoteContent
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.session_files import session_files

SESSION = SessionId("session-1")
MIB = 1024 * 1024


class Service:
    """A chat service with one file of `size` bytes; the first `failures` requests break off."""

    def __init__(self, size: int, failures: int = 0, media_type: str = "") -> None:
        self.size, self.failures, self.media_type = size, failures, media_type
        self.requests: list[str] = []

    @asynccontextmanager
    async def open_file(self, uri: str) -> AsyncGenerator[RemoteContent]:
        self.requests.append(uri)
        yield RemoteContent(self.media_type, self._chunks(len(self.requests) <= self.failures))

    async def _chunks(self, is_cut: bool) -> AsyncIterator[bytes]:
        for start in range(0, self.size, MIB):
            yield bytes(min(MIB, self.size - start))
            if is_cut:
                raise RemoteFileUnavailable("it broke off", is_temporary=True)


@pytest.fixture
async def files(tmp_path: Path) -> AsyncGenerator[SessionFiles]:
    async with open_database(tmp_path / "larkspur.db") as database:
        yield session_files(tmp_path, database, Stores())


def remote(files: SessionFiles, service: Service) -> RemoteFiles:
    found = RemoteFiles(files, first_delay=0.001)
    found.add_account("chat:one", service.open_file)
    return found


def sent(name: str = "report.pdf", account: str = "chat:one") -> Attachment:
    return Attachment(name, "application/octet-stream", f"{account}/m-1/k", "", 0)


@pytest.mark.parametrize(
    ("name", "media_type", "stored"),
    [
        ("report.pdf", "", "report.pdf"),
        ("picture", "image/png", "picture.png"),
        ("picture", "image/unknown", "picture"),
        ("...", "image/jpeg", "....jpg"),
    ],
)
async def test_a_file_gets_an_extension_if_it_has_none(
    files: SessionFiles, name: str, media_type: str, stored: str
) -> None:
    fetching = remote(files, Service(3 * MIB, media_type=media_type))
    [found] = await fetching.fetch(SESSION, [sent(name)])
    assert isinstance(found, Attachment)
    assert (found.name, found.size, found.is_stored) == (stored, 3 * MIB, True)
    assert found.media_type == (media_type or "application/octet-stream")
    assert await files.size(found.sha256) == 3 * MIB


async def test_what_is_stored_is_not_requested(files: SessionFiles) -> None:
    service = Service(MIB)
    fetching = remote(files, service)
    first = await fetching.fetch(SESSION, [sent()])
    assert await fetching.fetch(SESSION, [each for each in first if isinstance(each, Attachment)])
    assert len(service.requests) == 1


@pytest.mark.parametrize("failures", [MAX_ATTEMPTS - 1, MAX_ATTEMPTS])
async def test_a_download_that_breaks_off_is_repeated(files: SessionFiles, failures: int) -> None:
    service = Service(2 * MIB, failures)
    [found] = await remote(files, service).fetch(SESSION, [sent()])
    assert isinstance(found, Attachment if failures < MAX_ATTEMPTS else RemoteFileUnavailable)
    assert len(service.requests) == MAX_ATTEMPTS


async def test_a_file_over_100_mb_is_refused_while_it_arrives(files: SessionFiles) -> None:
    service = Service(100 * MIB + 1)
    [found] = await remote(files, service).fetch(SESSION, [sent()])
    assert isinstance(found, FileTooLarge)
    assert len(service.requests) == 1


async def test_one_failure_does_not_affect_the_other_files(files: SessionFiles) -> None:
    fetching = remote(files, Service(MIB))
    good, lost = await fetching.fetch(SESSION, [sent(), sent(account="chat:two")])
    assert isinstance(good, Attachment)
    assert isinstance(lost, RemoteFileUnavailable)
    assert "not connected" in str(lost)
