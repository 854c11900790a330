"""The workspaces that Larkspur creates."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import StoreUnavailable
from internal.agent.domain.ids import SessionId
from internal.sandbox.workspaces import Workspaces


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspaces"
    folder.mkdir()
    return folder


def names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


async def test_a_workspace_is_removed_without_following_links(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "kept.txt").write_text("x")
    folder = root / "session-1"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "file").write_text("x")
    (folder / "link").symlink_to(outside)
    (folder / "a").chmod(0)
    (root / "session-2").symlink_to(outside)
    workspaces = Workspaces(root)
    for name in ("session-1", "session-2", "session-3"):
        await workspaces.remove(SessionId(name))
    assert names_in(root) == []
    assert names_in(outside) == ["kept.txt"]
    assert outside.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["", ".", "..", "../outside", "session-1/inner", "/etc"])
async def test_only_folders_of_sessions_are_removed(root: Path, tmp_path: Path, name: str) -> None:
    for folder in (root / "session-1" / "inner", tmp_path / "outside"):
        folder.mkdir(parents=True)
    await Workspaces(root).remove(SessionId(name))
    assert (root / "session-1" / "inner").is_dir()
    assert (tmp_path / "outside").is_dir()


async def test_a_folder_that_cannot_be_removed_is_reported(root: Path) -> None:
    (root / "session-1").write_text("not a folder")
    with pytest.raises(StoreUnavailable, match="session-1 cannot be removed"):
        await Workspaces(root).remove(SessionId("session-1"))
