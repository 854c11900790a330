"""Removing unused files while they are uploaded again, and with a kill in the middle."""

import asyncio
import hashlib
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from internal.agent.ports.attachments import Attachments
from internal.attachments.local import LocalAttachments
from internal.attachments.s3 import S3Attachments
from internal.attachments.s3_client import S3Client
from tests import ROOT
from tests.support.gateway_process import LARKSPUR, running_gateway
from tests.support.http_client import HttpClient
from tests.support.s3_server import s3_server

FILES = {"local": 120, "s3": 40}
"""The more, the likelier that the two processes meet at one file; a bucket is slower."""
PLAIN = {"content-type": "text/plain"}


@asynccontextmanager
async def opened(
    kind: str, home: Path, environ: dict[str, str]
) -> AsyncGenerator[tuple[Attachments, dict[str, str]]]:
    """Open the store of a home folder; yield it with the environment of its gateway."""
    environ = {**environ, "LARKSPUR_SERVER__RATE_LIMIT_BURST": "10000"}
    if kind == "local":
        yield LocalAttachments(home / "attachments"), environ
        return
    async with s3_server(home.parent / "server") as server:
        client = S3Client(server.bucket())
        yield S3Attachments(client, "larkspur", home / "attachments"), {**environ, **server.environ}
        client.close()


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def collect(environ: Mapping[str, str], *flags: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(str(LARKSPUR), "files", "gc", *flags), env=environ, stdout=PIPE, stderr=PIPE
    )


async def output(process: Process) -> str:
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    return out.decode()


async def upload(client: HttpClient, content: bytes) -> None:
    reply = await client.request("PUT", "/api/attachments?name=a.txt", content, PLAIN)
    assert reply.status == 201, reply


async def upload_all(client: HttpClient, contents: Iterable[bytes]) -> None:
    waiting = asyncio.Semaphore(4)

    async def one(content: bytes) -> None:
        async with waiting:
            await upload(client, content)

    async with asyncio.TaskGroup() as tasks:
        for content in contents:
            tasks.create_task(one(content))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local", "s3"])
async def test_a_file_that_is_uploaded_while_it_is_removed_is_kept(
    kind: str, home: Path, environ: dict[str, str]
) -> None:
    """Another process removes files that the gateway stores again: no confirmed file is lost."""
    contents = sorted((b"file %d" % number for number in range(FILES[kind])), key=sha)
    async with opened(kind, home, environ) as (store, settings):
        for content in contents:
            await store.put("a.txt", "", content)  # as a process leaves it that is killed
        async with running_gateway(settings, home) as (_, client, _):
            assert await output(await collect(settings, "--dry-run")) == (
                f"Unused files: {len(contents)} ({sum(map(len, contents))} bytes)\n"
            )
            removing = await collect(settings, "--local")
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(upload_all(client, reversed(contents)))
                done = tasks.create_task(output(removing))
            assert done.result().startswith("Unused files removed: ")
            assert "Unused files removed: 0 " in await output(await collect(settings))
            for content in contents:
                reply = await client.get(f"/api/attachments/{sha(content)}")
                assert reply.body == content, reply
        assert [each.sha256 async for each in store.stored()] == [*map(sha, contents)]


@pytest.mark.parametrize("plan", ["unstored", pytest.param("stored", marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_a_removal_that_is_killed_is_finished_by_the_next(
    plan: str, home: Path, environ: dict[str, str]
) -> None:
    store, contents = LocalAttachments(home / "attachments"), (b"one", b"two", b"three")
    async with running_gateway(environ, home) as (_, client, _):
        await upload(client, b"used")
        for content in contents:
            await store.put("a.txt", "", content)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.chaos.crash_launcher", str(home.parent / "count")),
            *(f"{plan}:delete_file_removal", "files", "gc", "--local"),
            env={**environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"},
        )
        assert await process.wait() == -signal.SIGKILL
        assert len([each async for each in store.stored()]) == 3
        assert (await output(await collect(environ))).startswith("Unused files removed: 2 (")
        assert [each.sha256 async for each in store.stored()] == [sha(b"used")]
        assert (await client.get(f"/api/attachments/{sha(b'used')}")).body == b"used"
