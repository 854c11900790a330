"""The workspaces that Larkspur creates."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import InvalidRequest, StoreUnavailable, ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import RunSpec
from internal.sandbox.workspaces import Workspaces
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.workspace import Workspace
from internal.worktrees.worktrees import GitWorktrees
from tests.support.store_records import a_task


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
    workspaces = Workspaces(root.parent, GitWorktrees())
    for name in ("session-1", "session-2", "session-3"):
        await workspaces.remove(SessionId(name))
    assert names_in(root) == []
    assert names_in(outside) == ["kept.txt"]
    assert outside.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["", ".", "..", "../outside", "session-1/inner", "/etc"])
async def test_only_folders_of_sessions_are_removed(root: Path, tmp_path: Path, name: str) -> None:
    for folder in (root / "session-1" / "inner", tmp_path / "outside"):
        folder.mkdir(parents=True)
    await Workspaces(root.parent, GitWorktrees()).remove(SessionId(name))
    assert (root / "session-1" / "inner").is_dir()
    assert (tmp_path / "outside").is_dir()


async def test_a_folder_that_cannot_be_removed_is_reported(root: Path) -> None:
    (root / "session-1").write_text("not a folder")
    with pytest.raises(StoreUnavailable, match="session-1 cannot be removed"):
        await Workspaces(root.parent, GitWorktrees()).remove(SessionId("session-1"))


@pytest.mark.parametrize("name", [".", "attachments", "workspaces", "workspaces/s/inner"])
def test_a_folder_of_larkspur_is_no_workspace(root: Path, tmp_path: Path, name: str) -> None:
    (root / "s" / "inner").mkdir(parents=True)
    (tmp_path / "attachments").mkdir()
    with pytest.raises(InvalidRequest, match="belongs to Larkspur itself"):
        Workspaces(tmp_path, GitWorktrees()).find(
            a_task(spec=RunSpec(workspace=str(tmp_path / name)))
        )


@pytest.mark.parametrize("link", ["inner", "inner/deep"])
def test_a_link_in_the_place_of_a_workspace_is_refused(tmp_path: Path, link: str) -> None:
    workspaces = Workspaces(tmp_path / "home", GitWorktrees())
    task = a_task(spec=RunSpec(workspace=str(tmp_path / "inner" / "deep")))
    (tmp_path / "inner" / "deep").mkdir(parents=True)
    (tmp_path / "secrets" / "deep").mkdir(parents=True)
    assert workspaces.find(task) == task.spec.workspace
    (tmp_path / link).rename(tmp_path / "moved")
    (tmp_path / link).symlink_to(tmp_path / "secrets")
    with pytest.raises(InvalidRequest, match=r"leads to .*secrets"):
        workspaces.find(task)


def test_other_folders_and_those_of_sessions_are_workspaces(root: Path, tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path, GitWorktrees())
    own = workspaces.find(a_task(session_id="session-1"))
    assert not Path(own).exists(), "most sessions need none"
    assert workspaces.create(a_task(session_id="session-1")) == own
    assert own == str(root / "session-1")
    assert Path(own).stat().st_mode & 0o777 == 0o700
    for folder in (Path(own), tmp_path.parent):  # also one that contains the home folder
        assert workspaces.create(a_task(spec=RunSpec(workspace=str(folder)))) == str(folder)
    with pytest.raises(InvalidRequest, match="is not a folder"):
        workspaces.create(a_task(spec=RunSpec(workspace=str(tmp_path / "gone"))))


async def test_the_home_of_commands_is_removed_with_the_workspace(tmp_path: Path) -> None:
    workspaces, session_id = Workspaces(tmp_path, GitWorktrees()), SessionId("session-1")
    for folder in (workspaces.folders.create(session_id), workspaces.homes.create(session_id)):
        (Path(folder) / "file").touch()
    await workspaces.remove(session_id)
    assert names_in(workspaces.folders.root) == names_in(workspaces.homes.root) == []


def test_a_workspace_with_too_long_a_name_is_refused_in_one_short_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="is not a folder") as refused:
        Workspaces(tmp_path, GitWorktrees()).find(a_task(spec=RunSpec(workspace="/" + "a" * 5_000)))
    assert len(str(refused.value)) < 300


async def test_a_subtask_has_a_folder_of_its_own_until_its_session_ends(tmp_path: Path) -> None:
    workspaces, spec = Workspaces(tmp_path, GitWorktrees()), RunSpec(own_folder=True)
    folders = [
        Path(workspaces.create(a_task(task_id, session_id=session, spec=spec)))
        for task_id, session in (("task-1", "s"), ("task-2", "s"), ("task-3", "s.x"))
    ]
    assert len({*folders, Path(workspaces.create(a_task(session_id="s")))}) == 4
    first = folders[0]
    assert first.stat().st_mode & 0o777 == 0o700
    assert sorted(names_in(first)) == ["input", "output"]
    inside = workspaces.file_folders(SessionId("s"), str(first))
    assert inside == (str(first / "input"), str(first / "output"), ())
    foreign = workspaces.file_folders(SessionId("other"), str(first))
    assert foreign.input == str(tmp_path / "session-files" / "other" / "input")
    shared = a_task("task-4", session_id="s", spec=RunSpec(workspace=str(first)))
    assert workspaces.create(shared) == str(first)
    await workspaces.remove(SessionId("s"))
    assert [folder.exists() for folder in folders] == [False, False, True]


@pytest.mark.parametrize("root", ["task-folders", "worktrees"])
def test_tools_work_in_the_folder_of_a_subtask_and_see_no_other(tmp_path: Path, root: str) -> None:
    folders = [tmp_path / root / f"s.task-{number}" for number in (1, 2)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("mine")
    (tmp_path / root / "s.task-1.json").write_text("a record")
    roots = Workspaces(tmp_path, GitWorktrees()).roots
    protected = ProtectedPaths(tmp_path, session_folders=roots)
    own = Workspace(str(folders[0]), protected)
    assert own.read(own.parse("a.txt")).content == b"mine"
    above = Workspace(str(tmp_path / root), protected)
    for name in ("s.task-2/a.txt", "s.task-1.json"):
        with pytest.raises(ToolError, match="belongs to Larkspur itself"):
            above.read(above.parse(name))


async def test_what_an_interrupted_worktree_left_is_removed_with_its_session(
    tmp_path: Path,
) -> None:
    root = tmp_path / "worktrees"
    (root / "s.task-1.new" / "half").mkdir(parents=True)
    (root / "s.task-2.json").write_text("{}")
    (root / "other.task-3").mkdir()
    await Workspaces(tmp_path, GitWorktrees()).remove(SessionId("s"))
    assert names_in(root) == ["other.task-3"]
