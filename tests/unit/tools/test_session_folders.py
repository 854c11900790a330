"""Relative paths are in the workspace; the files that people sent are reached wherever they are."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.attachments import FileFolders
from internal.agent.ports.tools import CallContext
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.workspace import Workspace
from tests.support.tools import tool_box, unprotected

SESSION = SessionId("session-1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "session-files" / SESSION / "input").mkdir(parents=True)
    (folder / "token").write_text("secret")
    return folder


@pytest.fixture
def sent(home: Path) -> Path:
    folder = home / "session-files" / SESSION / "input"
    (folder / "report.txt").write_text("sent by a person")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in ("input", "output"):
        (folder / name).mkdir(parents=True)
        (folder / name / "own.txt").write_text("of the project")
    return folder


@pytest.fixture
def protected(home: Path) -> ProtectedPaths:
    return ProtectedPaths(home, session_folders=[home / "session-files"])


@pytest.fixture
def workspace(project: Path, sent: Path, protected: ProtectedPaths) -> Workspace:
    return Workspace(str(project), protected, FileFolders(str(sent), f"{project}/output"))


def read(workspace: Workspace, path: str) -> bytes:
    return workspace.read(workspace.parse(path)).content


def write(workspace: Workspace, path: str) -> None:
    workspace.write(workspace.parse(path), b"new")


@pytest.mark.parametrize("form", ["{}", "./{}", ".//{}", "{project}/{}"])
@pytest.mark.parametrize("name", ["input", "output"])
def test_every_spelling_of_a_path_in_the_workspace_is_one_file(
    workspace: Workspace, project: Path, form: str, name: str
) -> None:
    path = form.format(f"{name}/own.txt", project=project)
    assert str(workspace.parse(path)) == f"{name}/own.txt"
    write(workspace, path)
    assert (project / name / "own.txt").read_bytes() == b"new"


def test_what_people_sent_has_an_absolute_path_and_is_not_changed(
    workspace: Workspace, sent: Path
) -> None:
    assert read(workspace, f"{sent}/report.txt") == b"sent by a person"
    assert str(workspace.parse(f"{sent}//./report.txt")) == f"{sent}/report.txt"
    for name in ("report.txt", "new.txt", "deep/new.txt"):
        with pytest.raises(ToolError, match="cannot be changed: write to output/"):
            write(workspace, f"{sent}/{name}")
    assert [path.name for path in sent.iterdir()] == ["report.txt"]
    with pytest.raises(ToolError, match="is not a file of the session"):
        read(workspace, f"{sent}/other.txt")
    with pytest.raises(ToolError, match=f"does not exist.*what people sent is {sent}/report.txt"):
        read(workspace, "input/report.txt")


@pytest.mark.parametrize("path", ["input/a.txt", "./input/a.txt", "link/a.txt", "INPUT/../input/a"])
def test_input_in_a_workspace_of_the_session_is_not_changed_either(
    tmp_path: Path, path: str
) -> None:
    root = tmp_path / "workspace"
    (root / "input").mkdir(parents=True)
    (root / "link").symlink_to("input")
    folders = FileFolders(f"{root}/input", f"{root}/output")
    workspace = Workspace(str(root), unprotected(root), folders)
    with pytest.raises(ToolError, match=r"cannot be changed|contains '\.\.'"):
        write(workspace, path)
    assert list((root / "input").iterdir()) == []
    write(workspace, "output/a.txt")
    assert (root / "output" / "a.txt").is_file()


def test_no_link_leads_out_of_the_folder_of_sent_files(
    workspace: Workspace, sent: Path, home: Path
) -> None:
    (sent / "link").symlink_to(home / "token")
    (sent / "up").symlink_to("..")
    for path in (f"{sent}/link", f"{sent}/up/input/report.txt"):
        with pytest.raises(ToolError, match="leads outside"):
            read(workspace, path)


def test_a_folder_of_sent_files_that_became_a_link_is_not_followed(
    workspace: Workspace, sent: Path, home: Path
) -> None:
    (sent / "report.txt").unlink()
    sent.rmdir()
    sent.symlink_to(home)
    with pytest.raises(ToolError, match="cannot be opened"):
        read(workspace, f"{sent}/token")


def test_files_of_another_session_and_of_larkspur_stay_protected(
    workspace: Workspace, sent: Path, project: Path, home: Path
) -> None:
    (project / "files").symlink_to(sent.parents[1])
    other = f"{sent.parent}-2/input/a.txt"
    for path in ("files/session-1/input/report.txt", f"{home}/token", f"{sent}-2/a.txt", other):
        with pytest.raises(ToolError, match="outside"):
            read(workspace, path)


async def test_file_tools_and_commands_mean_the_same_files(
    workspace: Workspace, sent: Path, project: Path, protected: ProtectedPaths
) -> None:
    assert workspace.folders is not None
    box = tool_box(project, protected=protected, folders=lambda *_: workspace.folders)
    context = CallContext(SESSION, RunId("run-1"), "call-1", str(project), print)

    async def run(tool: str, **arguments: object) -> str:
        return (await box.run(context, tool, arguments)).text

    assert await run("read_file", path=f"{sent}/report.txt") == "sent by a person"
    assert "created" in await run("write_file", path="output/a.md", content="one\n")
    assert "one\n" in await run("shell", command="cat output/a.md; echo two > output/a.md")
    assert "two" in await run("read_file", path="output/a.md")
    assert await run("list_dir", path=".") == "input/\noutput/"
    assert await run("search_files", pattern="sent", path=str(sent)) == (
        f"{sent}/report.txt:1: sent by a person"
    )
    command = 'cat "$LARKSPUR_INPUT_DIR/report.txt" > "$LARKSPUR_OUTPUT_DIR/copy.txt"'
    await run("shell", command=command)
    assert (project / "output" / "copy.txt").read_text() == "sent by a person"
