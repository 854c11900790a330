"""Attachments in a bucket of S3, besides the contract of every store."""

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from internal.agent.domain.errors import FilesUnavailable, NotFound, StoreCorrupt
from internal.attachments.s3 import S3Attachments
from internal.attachments.s3_client import PART_BYTES, S3Client
from tests.support.s3_server import S3Server, s3_server

LARGE = os.urandom(PART_BYTES) * 2 + b"end"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[S3Server]:
    async with s3_server(tmp_path / "server") as server:
        yield server


@pytest.fixture
async def client(server: S3Server) -> AsyncGenerator[S3Client]:
    client = S3Client(server.bucket())
    yield client
    client.close()


@pytest.fixture
def store(client: S3Client, tmp_path: Path) -> S3Attachments:
    return S3Attachments(client, "one", tmp_path / "spool")


async def chunks(content: bytes) -> AsyncGenerator[bytes]:
    yield content


async def test_a_large_file_is_sent_in_parts(store: S3Attachments, tmp_path: Path) -> None:
    kept = await store.put_stream("a", "", chunks(LARGE), max_bytes=len(LARGE))
    assert await store.get(kept.sha256) == LARGE
    assert [path for path in (tmp_path / "spool").rglob("*") if path.is_file()] == []


async def test_keys_have_the_prefix(
    store: S3Attachments, client: S3Client, server: S3Server, tmp_path: Path
) -> None:
    kept = await store.put("a", "", b"content")
    assert [path.relative_to(server.folder / "files") for path in server.objects()] == [
        Path("one", kept.sha256)
    ]
    other = S3Attachments(client, "", tmp_path / "spool")
    with pytest.raises(NotFound):
        await other.get(kept.sha256)
    await other.put("a", "", b"other")
    assert [each.size async for each in other.stored()] == [5]


async def test_a_url_downloads_the_file_under_its_name(store: S3Attachments) -> None:
    kept = await store.put("a", "", b"content")
    url = await store.url(kept.sha256, 'Bericht "ü".pdf', "application/pdf")
    query = parse_qs(urlsplit(url).query)
    assert query["response-content-disposition"] == [
        "attachment; filename*=UTF-8''Bericht%20%22%C3%BC%22.pdf"
    ]
    assert query["response-content-type"] == ["application/pdf"]
    async with httpx.AsyncClient() as http:
        assert (await http.get(url)).content == b"content"
        refused = await http.get(url.replace(kept.sha256, "0" * 64))
    assert refused.status_code == 403


async def test_a_damaged_object_is_neither_copied_nor_sent_completely(
    store: S3Attachments, client: S3Client, tmp_path: Path
) -> None:
    sha256 = hashlib.sha256(LARGE).hexdigest()
    (tmp_path / "damaged").write_bytes(LARGE[:-1] + b"x")
    with (tmp_path / "damaged").open("rb") as file:
        await client.upload(f"one/{sha256}", file, len(LARGE))
    with pytest.raises(StoreCorrupt, match="is damaged"):
        await store.get(sha256)
    with (tmp_path / "copy").open("w+b") as file, pytest.raises(StoreCorrupt):
        await store.copy_to(sha256, file.fileno())
    assert (tmp_path / "copy").read_bytes() == b""


@pytest.mark.parametrize(
    ("bucket", "secret", "sentence"),
    [
        ("missing", S3Server.secret_key, "has no bucket missing"),
        ("files", "wrong", "refuses the access key (AccessDenied)"),
    ],
)
async def test_wrong_settings_are_named(
    server: S3Server, tmp_path: Path, bucket: str, secret: str, sentence: str
) -> None:
    client = S3Client(server.bucket(bucket, secret))
    store = S3Attachments(client, "", tmp_path / "spool")
    with pytest.raises(FilesUnavailable) as raised:
        await store.put("a", "", b"content")
    assert str(raised.value) == (
        f"attachments cannot be written: 127.0.0.1:{server.port} {sentence}"
    )
    client.close()


@pytest.mark.slow
async def test_the_store_works_again_when_the_server_is_back(
    store: S3Attachments, server: S3Server
) -> None:
    kept = await store.put("a", "", b"content")
    await server.stop()
    for use in (store.put("a", "", b"more"), store.get(kept.sha256), store.size(kept.sha256)):
        with pytest.raises(FilesUnavailable, match=r"127\.0\.0\.1:\d+ cannot be reached"):
            await use
    with pytest.raises(FilesUnavailable, match="cannot be listed"):
        await anext(store.stored())
    with pytest.raises(FilesUnavailable, match="cannot be removed"):
        async with store.removal() as remove:
            await remove(kept.sha256)
    await server.start()
    assert await store.get(kept.sha256) == b"content"
    assert (await store.put("a", "", b"more")).size == 4


async def test_another_server_is_named(tmp_path: Path) -> None:
    """A port that speaks HTTP, but not S3."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as http:
        server = S3Server(tmp_path)
        server.port = http.sockets[0].getsockname()[1]
        client = S3Client(server.bucket())
        store = S3Attachments(client, "", tmp_path / "spool")
        with pytest.raises(FilesUnavailable, match="does not answer as a storage service does"):
            await anext(store.stored())
        client.close()


async def test_a_cancelled_upload_is_not_stored(store: S3Attachments, server: S3Server) -> None:
    registered = asyncio.Event()

    async def register(_sha256: str, _size: int) -> None:
        registered.set()

    putting = asyncio.create_task(
        store.put_stream("a", "", chunks(LARGE * 4), max_bytes=len(LARGE) * 4, register=register)
    )
    await registered.wait()
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert server.objects() == []
