"""The disk space of a session, with real commands."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand, SandboxResult
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.disk_quota import MAX_DEPTH, QuotaSandbox, count_bytes
from internal.sandbox.landlock import LandlockSandbox
from internal.sandbox.workspaces import SessionFolders
from tests.support.sandboxes import sandbox_class_params

MEGABYTE = 1_000_000
SESSION = SessionId("session-1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def quota(make: Callable[[SessionFolders], Sandbox], folder: Path, megabytes: int) -> QuotaSandbox:
    sandbox = make(SessionFolders(folder.parent / "homes"))
    return QuotaSandbox(sandbox, lambda _: [folder, folder / "absent"], megabytes * MEGABYTE)


async def run(sandbox: Sandbox, folder: Path, script: str) -> tuple[SandboxResult, str]:
    output = bytearray()
    access = FileAccess((str(folder),))
    command = SandboxCommand(("bash", "-c", script), str(folder), 60.0, SESSION, access=access)
    return await sandbox.run(command, output.extend), output.decode()


@pytest.mark.parametrize("make", sandbox_class_params((BubblewrapSandbox, LandlockSandbox)))
async def test_a_session_that_takes_too_much_can_delete_and_nothing_else(
    make: Callable[[SessionFolders], Sandbox], folder: Path
) -> None:
    sandbox = quota(make, folder, 5)
    assert await run(sandbox, folder, "head -c 6000000 /dev/zero > big") == (SandboxResult(0), "")
    result, said = await run(sandbox, folder, "(echo more > more); echo then; rm big; cat more")
    assert result.exceeded == "disk"
    assert said.endswith("then\n")
    assert not (folder / "big").exists()
    assert await run(sandbox, folder, "echo more > more") == (SandboxResult(0), "")
    assert (folder / "more").read_text() == "more\n"


@pytest.mark.slow
@pytest.mark.parametrize("make", sandbox_class_params((BubblewrapSandbox, LandlockSandbox)))
async def test_a_command_that_takes_too_much_is_ended(
    make: Callable[[SessionFolders], Sandbox], folder: Path
) -> None:
    sandbox = quota(make, folder, 5)
    async with asyncio.timeout(50):
        result, _ = await run(sandbox, folder, "head -c 6000000 /dev/zero > big; sleep 600")
    assert (result.exceeded, result.exit_code) == ("disk", -9)


def test_the_space_of_a_folder_is_counted_without_following_links(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    for place in (outside, folder / "a" / "b"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "file").write_bytes(bytes(MEGABYTE))
    (folder / "link").symlink_to(outside)
    (folder / "second").hardlink_to(folder / "a" / "b" / "file")
    used = count_bytes(folder, 10 * MEGABYTE)
    assert MEGABYTE <= used < 1.2 * MEGABYTE
    assert count_bytes(folder / "link", 10 * MEGABYTE) == 0
    assert count_bytes(folder, MEGABYTE / 2) > MEGABYTE / 2


def test_what_is_nested_too_deeply_counts_as_too_much(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(MAX_DEPTH + 1):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert count_bytes(folder, MEGABYTE) > MEGABYTE
