"""A database on a full or read-only disk: an error sentence, no lost data, and later recovery."""

import asyncio
import shutil
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.chaos import invariants
from tests.chaos.conversation import DATABASE, Conversation, check, open_conversation
from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Reply, Rules
from tests.support.small_disk import SmallDisk, small_disk

pytestmark = pytest.mark.needs("mounts")

MEGABYTES = 8
FULL_SECONDS = 5.0
"""Time for which the disk is full; a write is retried every five seconds at the latest."""

Environ = dict[str, str]


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncGenerator[SmallDisk]:
    async with small_disk(tmp_path / "disk", MEGABYTES) as mounted:
        yield mounted


@pytest.fixture
def on_disk(environ: Environ, disk: SmallDisk) -> Environ:
    """Return the environment of a gateway with its database on the disk."""
    return {**environ, DATABASE: f"sqlite:///{disk.path}/larkspur.db"}


async def start(folder: Path, environ: Environ, disk: SmallDisk) -> tuple[int, str]:
    """Start a gateway that must not serve; return its exit code and its last sentence."""
    async with ScriptedOpenAI(Rules([Reply("never")])) as model:
        gateway = RestartingGateway(folder, model, environ, disk.prefix)
        process = await gateway.start("serve", "--port", "0")
        assert await process.ready(gateway.home) is None, "it serves"
        code = await process.wait()
    assert not any("Traceback" in line for line in process.stderr_lines)
    return code, process.stderr_lines[-1].strip()


async def create(folder: Path, environ: Environ, disk: SmallDisk) -> bytes:
    """Let a gateway create the database and end; return the bytes of the file."""
    async with ScriptedOpenAI(Rules([Reply("never")])) as model:
        gateway = RestartingGateway(folder, model, environ, disk.prefix)
        process = await gateway.start("serve", "--port", "0")
        assert await process.ready(gateway.home) is not None
        process.process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    return (disk.outside / "larkspur.db").read_bytes()


@pytest.mark.chaos
async def test_a_conversation_survives_a_full_disk(
    tmp_path: Path, on_disk: Environ, disk: SmallDisk
) -> None:
    async def fill(conversation: Conversation) -> None:
        await conversation.until(lambda: conversation.shows("Allowed once"))
        disk.fill()
        await asyncio.sleep(FULL_SECONDS)  # the length of the outage
        disk.free()

    opened = open_conversation(tmp_path, on_disk, [NO_CRASH], prefix=disk.prefix)
    async with opened as conversation:
        await conversation.hold_while(fill)
        await check(conversation)
    copy = tmp_path / "copy.db"
    shutil.copy(disk.outside / "larkspur.db", copy)
    invariants.check_file(copy)


async def test_no_gateway_starts_on_a_full_disk(
    tmp_path: Path, on_disk: Environ, disk: SmallDisk
) -> None:
    disk.fill()
    code, sentence = await start(tmp_path, on_disk, disk)
    assert code == 1, sentence
    assert "is full" in sentence
    disk.free()
    await create(tmp_path, on_disk, disk)


@pytest.mark.slow
async def test_no_gateway_starts_on_a_read_only_disk(
    tmp_path: Path, on_disk: Environ, disk: SmallDisk
) -> None:
    before = await create(tmp_path, on_disk, disk)
    await disk.make_read_only()
    code, sentence = await start(tmp_path, on_disk, disk)
    assert code == 1, sentence
    assert f"The folder {disk.path} of the database cannot be written" in sentence
    assert (disk.outside / "larkspur.db").read_bytes() == before
