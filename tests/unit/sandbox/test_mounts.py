"""Mounts of a command: a mounted path must still be the path that was checked."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.ports.sandbox import FileAccess, Sandbox
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.landlock import LandlockSandbox
from internal.sandbox.mounts import Mounts
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.workspaces import SessionFolders
from tests.support.mount_attacks import ROLES, attack, run
from tests.support.sandboxes import sandbox_class_params

SANDBOXES = (BubblewrapSandbox, LandlockSandbox)


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
    access = FileAccess((str(workspace),), (path,))
    assert await run(sandbox, workspace, f"ls {path}", access) == ""

    place = tmp_path / link
    place.rename(tmp_path / "moved")
    place.symlink_to(secret if link == "data" else secret / "inner")
    with pytest.raises(ToolError, match="leads to"):
        await run(sandbox, workspace, f"cat {path}/canary", access)


def test_what_is_mounted_is_compared_with_what_was_found(tmp_path: Path) -> None:
    workspace, data, home = (tmp_path / name for name in ("workspace", "data", "home"))
    for folder in (workspace, data, home):
        folder.mkdir()
    access = FileAccess((str(workspace),), (str(data),))
    *_, points, identities, paths = Mounts(access, str(home)).comparison()
    folders = (workspace, home, data)
    assert (points, paths) == ("", "\n".join(map(str, folders)))
    found = [f"{each.lstat().st_dev}:{each.lstat().st_ino}" for each in folders]
    assert identities == "\n".join(found)


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
    named = FileAccess((str(workspace),), (str(data),))
    script = f"cat {home}/token; ls -A {data}"
    private = PrivatePlaces((home,))
    for seen, readable in ((named, ()), (access, (str(data),))):
        landlock = LandlockSandbox(homes, private=private, read_only=readable)
        with pytest.raises(ToolError, match=r"contains .* of Larkspur"):
            await run(landlock, workspace, script, seen)
        bubblewrap = BubblewrapSandbox(homes, private=private, read_only=readable)
        shown = await run(bubblewrap, workspace, script, seen)
        assert ("canary" in shown, ".larkspur" in shown) == (False, True)
    assert os.listdir(home) == ["token"]  # noqa: PTH208  # names


@pytest.mark.parametrize("place", ["data", "outer"])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("make", sandbox_class_params(SANDBOXES))
async def test_a_root_that_changes_all_the_time_is_the_right_one_or_none(
    make: Callable[[SessionFolders], Sandbox], role: str, tmp_path: Path, place: str
) -> None:
    await attack(make(SessionFolders(tmp_path / "homes")), role, tmp_path, place)


@pytest.mark.chaos
@pytest.mark.parametrize("place", ["data", "outer"])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("make", sandbox_class_params(SANDBOXES))
async def test_a_root_that_changes_all_the_time_for_long(
    make: Callable[[SessionFolders], Sandbox], role: str, tmp_path: Path, place: str
) -> None:
    sandbox = make(SessionFolders(tmp_path / "homes"))
    outcomes = await attack(sandbox, role, tmp_path, place, rounds=1_000)
    assert outcomes == {"right", "none"}


@pytest.mark.parametrize("make", sandbox_class_params(SANDBOXES))
@pytest.mark.parametrize("place", ["", "attachments", "workspaces"])
async def test_no_root_is_in_a_folder_of_larkspur(
    make: Callable[..., Sandbox], tmp_path: Path, place: str
) -> None:
    home, homes = tmp_path / "home", SessionFolders(tmp_path / "homes")
    own = home / "workspaces" / "session-1"
    for folder in (own, home / "attachments", tmp_path / "workspace"):
        folder.mkdir(parents=True)
    private = PrivatePlaces((home, tmp_path / "absent"), (home / "workspaces",))
    sandbox = make(homes, private=private)
    await run(sandbox, own, "touch made", FileAccess((str(own),)))
    assert (own / "made").exists()
    for access in (FileAccess((str(home / place),)), FileAccess((), (str(home / place),))):
        with pytest.raises(ToolError, match="belongs to Larkspur"):
            await run(sandbox, Path("/"), "true", access)
