"""Uploads over real connections: streamed, cut off and continued, and refused."""

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import quote

import pytest

from internal.channels.web.services import WebTimeouts
from tests.support.http_client import Reply
from tests.support.web_app import WebApp, open_web_app

CONTENT = os.urandom(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PATH = "/api/attachments?name=a.bin"
RESUMABLE = f"{PATH}&sha256={SHA256}"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[WebApp]:
    async with open_web_app(tmp_path, timeouts=WebTimeouts(request_seconds=5)) as opened:
        yield opened


async def put(app: WebApp, path: str, content: bytes, **headers: str | None) -> Reply:
    kind = {"content-type": "application/pdf"}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return await app.client.request("PUT", path, content, {**kind, **given})


async def received(app: WebApp, sha256: str = SHA256) -> tuple[int, bool]:
    reply = await app.client.get(f"/api/attachments/{sha256}/upload")
    assert reply.status == 200, reply
    return reply.json()["received"], reply.json()["complete"]


async def cut_off(app: WebApp, path: str, content: bytes, announced: int) -> None:
    """Send a part of a body and close the connection when it is stored."""
    _, writer = await app.client.connect()
    writer.write(app.client.head("PUT", path, {"content-length": str(announced)}) + content)
    await writer.drain()
    offset = int(path.partition("offset=")[2] or 0)
    while await received(app) != (offset + len(content), False):
        pass  # each turn is a request
    writer.transport.abort()


def stored(folder: Path) -> list[Path]:
    folders = (folder / "attachments", folder / "uploads")
    return [path for each in folders for path in each.rglob("*") if path.is_file()]


async def test_a_file_is_stored_and_read_again(app: WebApp) -> None:
    for content in (b"", b"x", CONTENT):
        reply = await put(app, "/api/attachments?name=b%2Freport.pdf", content)
        assert reply.status == 201, reply
        sha256 = hashlib.sha256(content).hexdigest()
        uri = f"attachment:{sha256}"
        assert reply.json() == {
            "name": "report.pdf",
            "media_type": "application/pdf",
            "uri": uri,
            "sha256": sha256,
            "size": len(content),
        }
        download = await app.client.get(f"/api/attachments/{sha256}")
        assert download.body == content
        assert download.headers["content-type"] == "application/octet-stream"
        assert download.headers["content-disposition"].startswith("attachment;")
        assert download.headers["x-content-type-options"] == "nosniff"
    part = await app.client.get(f"/api/attachments/{SHA256}", {"range": "bytes=10-19"})
    assert (part.status, part.body) == (206, CONTENT[10:20])
    assert (await app.client.get(f"/api/attachments/{'0' * 64}")).status == 404


async def test_a_task_uses_an_uploaded_file(app: WebApp) -> None:
    file = (await put(app, RESUMABLE, CONTENT)).json()
    attachment = {key: file[key] for key in ("name", "media_type", "uri")}
    run = await app.task(attachments=[attachment])
    task = (await app.client.get(f"/api/tasks/{run.task_id}")).json()
    assert task["attachments"] == [file], task


async def test_a_body_above_the_limit_of_other_routes_is_stored(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, max_body_bytes=100_000) as app:
        assert (await put(app, PATH, CONTENT)).status == 201


async def test_a_chunked_body_is_stored(app: WebApp) -> None:
    head = app.client.head("PUT", PATH, {"transfer-encoding": "chunked"})
    chunks = b"%x\r\n%b\r\n" % (len(CONTENT), CONTENT)
    reply = await app.client.exchange(head + chunks * 2 + b"0\r\n\r\n")
    assert (reply.status, reply.json()["size"]) == (201, 2 * len(CONTENT))
    assert reply.json()["media_type"] == "application/octet-stream"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\u202egnp.exe", "x\n\r", ".", "文" * 80])
async def test_a_name_is_for_display_only(app: WebApp, tmp_path: Path, name: str) -> None:
    reply = await put(app, f"/api/attachments?name={quote(name)}", b"x")
    assert reply.status == 201, reply
    assert "/" not in reply.json()["name"]
    assert reply.json()["name"].isprintable()
    assert [path.name for path in stored(tmp_path)] == [hashlib.sha256(b"x").hexdigest()]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/attachments", 400),
        ("/api/attachments?name=", 400),
        (f"/api/attachments?name={'x' * 256}", 400),
        (f"{PATH}&sha256=x", 400),
        (f"{PATH}&offset=1", 400),
        (f"{PATH}&offset=-1", 400),
        (f"{RESUMABLE}&offset=1", 409),
        (f"{PATH}&sha256={'0' * 64}", 422),
    ],
)
async def test_a_bad_upload_is_refused_in_words(
    app: WebApp, tmp_path: Path, path: str, status: int
) -> None:
    reply = await put(app, path, CONTENT)
    assert (reply.status, bool(reply.error["message"])) == (status, True)
    assert [path for path in stored(tmp_path) if path.stat().st_size] == []


async def test_a_content_type_that_is_none_is_refused(app: WebApp) -> None:
    assert (await put(app, PATH, b"x", content_type="what?")).status == 415


async def test_pages_of_other_origins_cannot_upload(app: WebApp) -> None:
    assert (await put(app, PATH, b"x", origin="http://evil.example")).status == 403
    assert (await put(app, PATH, b"x", sec_fetch_site="cross-site")).status == 403
    assert (await put(app, PATH, b"x", authorization=None)).status == 401


async def test_too_large_a_file_is_refused(app: WebApp, tmp_path: Path) -> None:
    most = 100 * 1024 * 1024
    announced = app.client.head("PUT", PATH, {"content-length": str(most + 1)})
    reply = await app.client.exchange(announced)
    assert (reply.status, reply.error["code"]) == (413, "too_large")
    endless = app.client.head("PUT", RESUMABLE, {"transfer-encoding": "chunked"})
    chunk = b"100000\r\n" + bytes(1024 * 1024) + b"\r\n"
    reply = await app.client.exchange(endless + chunk * 101)
    assert (reply.status, reply.error["code"]) == (413, "too_large")
    assert stored(tmp_path) == []


async def test_an_upload_is_continued_after_a_lost_connection(app: WebApp, tmp_path: Path) -> None:
    assert await received(app) == (0, False)
    await cut_off(app, RESUMABLE, CONTENT[:100_000], len(CONTENT))
    await cut_off(app, f"{RESUMABLE}&offset=100000", CONTENT[100_000:150_000], 200_000)
    wrong = await put(app, f"{RESUMABLE}&offset=99999", CONTENT[99_999:])
    assert wrong.status == 409
    assert "150,000 bytes" in wrong.error["message"]
    reply = await put(app, f"{RESUMABLE}&offset=150000", CONTENT[150_000:])
    assert reply.status == 201, reply
    assert await received(app) == (len(CONTENT), True)
    assert (await app.client.get(f"/api/attachments/{SHA256}")).body == CONTENT
    assert [path.name for path in stored(tmp_path)] == [SHA256]


async def test_a_known_file_is_returned_without_its_bytes(app: WebApp) -> None:
    await put(app, PATH, CONTENT)
    head = app.client.head("PUT", RESUMABLE, {"content-length": str(len(CONTENT))})
    reply = await app.client.exchange(head)
    assert (reply.status, reply.json()["size"]) == (201, len(CONTENT))


async def test_a_lost_connection_without_hash_leaves_nothing(app: WebApp, tmp_path: Path) -> None:
    _, writer = await app.client.connect()
    writer.write(app.client.head("PUT", PATH, {"content-length": "9"}) + b"x")
    unfinished = tmp_path / "attachments" / "unfinished"
    while not unfinished.is_dir() or not any(unfinished.iterdir()):
        await app.client.get("/api/me")
    writer.transport.abort()
    while any(unfinished.iterdir()):
        await app.client.get("/api/me")
    assert stored(tmp_path) == []


async def test_two_uploads_of_one_file_at_once(app: WebApp, tmp_path: Path) -> None:
    _, writer = await app.client.connect()
    writer.write(app.client.head("PUT", RESUMABLE, {"content-length": "300000"}) + CONTENT[:9])
    while await received(app) != (9, False):
        pass  # each turn is a request
    assert (await put(app, RESUMABLE, CONTENT)).status == 409
    async with asyncio.TaskGroup() as tasks:
        puts = [tasks.create_task(put(app, PATH, CONTENT)) for _ in range(8)]
    assert {each.result().status for each in puts} == {201}
    writer.transport.abort()
    found = [path.name for path in stored(tmp_path) if path.parent.name == SHA256[:2]]
    assert found == [SHA256]


async def test_a_client_that_sends_nothing_is_told(tmp_path: Path) -> None:
    timeouts = WebTimeouts(request_seconds=0.2)
    async with open_web_app(tmp_path, timeouts=timeouts) as app:
        head = app.client.head("PUT", PATH, {"content-length": "10"})
        reply = await app.client.exchange(head + b"x")
        assert (reply.status, reply.error["code"]) == (408, "timeout")
        assert stored(tmp_path) == []
