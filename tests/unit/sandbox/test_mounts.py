"""The mounts of a command: paths that must be what they are called."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.landlock import LandlockSandbox
from internal.sandbox.mounts import CHANGED, Mounts
from internal.sandbox.workspaces import SessionFolders
from tests.support.sandboxes import sandbox_class_params

SANDBOXES = (BubblewrapSandbox, LandlockSandbox)


async def run(sandbox: Sandbox, workspace: Path, script: str, access: FileAccess) -> str:
    command = SandboxCommand(
        ("bash", "-c", script), str(workspace), 20.0, SessionId("session-1"), access=access
    )
    output = bytearray()
    await sandbox.run(command, output.extend)
    return output.decode()


@pytest.mark.parametrize("make", sandbox_class_params(SANDBOXES))
@pytest.mark.parametrize("link", ["data", "data/inner"])
async def test_a_path_that_has_become_a_link_is_not_given_to_a_command(
    make: Callable[[SessionFolders], Sandbox], tmp_path: Path, link: str
) -> None:
    workspace, secret, data = (tmp_path / name for name in ("workspace", "secret", "data"))
    for folder in (workspace, secret, data, data / "inner"):
        folder.mkdir()
    (secret / "inner").mkdir()
    (secret / "inner" / "canary").write_text("canary")
    sandbox, path = make(SessionFolders(tmp_path / "homes")), str(data / "inner")
    access = FileAccess((str(workspace),), (path,), exact=(path,))
    assert await run(sandbox, workspace, f"ls {path}", access) == ""

    place = tmp_path / link
    place.rename(tmp_path / "moved")
    place.symlink_to(secret if link == "data" else secret / "inner")
    with pytest.raises(ToolError, match=CHANGED):
        await run(sandbox, workspace, f"cat {path}/canary", access)


def test_what_is_mounted_is_compared_with_what_was_found(tmp_path: Path) -> None:
    workspace, data, home = (tmp_path / name for name in ("workspace", "data", "home"))
    for folder in (workspace, data, home):
        folder.mkdir()
    access = FileAccess((str(workspace),), (str(data),), exact=(str(data),))
    *_, identities, paths = Mounts(access, str(home)).comparison()
    status = data.lstat()
    assert (paths, identities) == (str(data), f"{status.st_dev}:{status.st_ino}")
    plain = FileAccess((str(workspace),), (str(data),))
    assert Mounts(plain, str(home)).comparison() == []


@pytest.mark.needs("namespaces")
async def test_a_path_that_contains_larkspur_is_refused_where_it_cannot_be_hidden(
    tmp_path: Path,
) -> None:
    workspace, data = tmp_path / "workspace", tmp_path / "data"
    home = data / ".larkspur"
    for folder in (workspace, data, home):
        folder.mkdir()
    (home / "token").write_text("canary")
    homes, access = SessionFolders(tmp_path / "homes"), FileAccess((str(workspace),))
    exact = FileAccess((str(workspace),), (str(data),), exact=(str(data),))
    script = f"cat {home}/token; ls -A {data}"
    for hidden, seen in (((home,), exact), ((home,), access)):
        readable = () if seen is exact else (str(data),)
        landlock = LandlockSandbox(homes, hidden=hidden, read_only=readable)
        with pytest.raises(ToolError, match=r"contains .* of Larkspur"):
            await run(landlock, workspace, script, seen)
        bubblewrap = BubblewrapSandbox(homes, hidden=hidden, read_only=readable)
        shown = await run(bubblewrap, workspace, script, seen)
        assert ("canary" in shown, ".larkspur" in shown) == (False, True)
    assert os.listdir(home) == ["token"]  # noqa: PTH208  # names
