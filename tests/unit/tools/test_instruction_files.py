"""Reading of instruction files: which ones apply, and hostile ones that are ignored."""

import os
from pathlib import Path

import pytest

from internal.agent.ports.instructions import MAX_TEXT_BYTES, FoundInstructions
from internal.tools.instruction_files import MAX_FOLDERS, WorkspaceInstructionFiles
from internal.tools.instruction_trust import InstructionTrust
from internal.tools.protected_paths import ProtectedPaths


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "workspaces" / "s1").mkdir(parents=True)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / "a" / "b").mkdir(parents=True)
    return folder


def read(home: Path, workspace: Path) -> FoundInstructions:
    protected = ProtectedPaths(home, session_folders=[home / "workspaces"])
    return WorkspaceInstructionFiles(home, protected, InstructionTrust(home)).read(str(workspace))


def test_files_apply_from_the_root_of_the_repository_down_to_the_folder(
    home: Path, repository: Path
) -> None:
    (home / "AGENTS.md").write_text("owner")
    (repository.parent / "AGENTS.md").write_text("above the repository")
    (repository / "AGENTS.md").write_text("root")
    (repository / "CLAUDE.md").write_text("not read beside AGENTS.md")
    (repository / "a" / "CLAUDE.md").write_text("a")
    (repository / "a" / "b" / "AGENTS.md").write_text("b")
    (repository / "a" / "b" / "c").mkdir()
    (repository / "a" / "b" / "c" / "AGENTS.md").write_text("below the folder")

    found = read(home, repository / "a" / "b")

    assert [(each.source, each.name, each.text) for each in found.texts] == [
        ("owner", "AGENTS.md", "owner"),
        ("folder", "AGENTS.md", "root"),
        ("folder", "a/CLAUDE.md", "a"),
        ("folder", "a/b/AGENTS.md", "b"),
    ]
    assert found.problems == ()


def test_without_a_repository_only_the_folder_itself_applies(home: Path, tmp_path: Path) -> None:
    (tmp_path / "plain" / "sub").mkdir(parents=True)
    (tmp_path / "plain" / "AGENTS.md").write_text("above")
    assert read(home, tmp_path / "plain" / "sub") == FoundInstructions()
    assert [each.text for each in read(home, tmp_path / "plain").texts] == ["above"]


def test_nothing_above_the_folder_of_a_session_applies(home: Path) -> None:
    (home.parent / ".git").mkdir()
    (home.parent / "AGENTS.md").write_text("above")
    session = home / "workspaces" / "s1"
    (session / "AGENTS.md").write_text("of the session")
    assert [each.reason for each in read(home, session).ignored] == ["written"]
    InstructionTrust(home).trust(str(session / "AGENTS.md"), b"of the session")
    found = read(home, session)
    assert [each.text for each in found.texts] == ["of the session"]
    assert found.problems == ()


def test_a_link_is_followed_inside_the_repository_only(
    home: Path, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    (home / "token").write_text("token")
    (repository / "CONTRIBUTING.md").write_text("tools change it without a question")
    (repository / "CLAUDE.md").write_text("inside")
    (repository / "a" / "b" / "c").mkdir()
    (repository / "a" / "b" / "c" / "AGENTS.md").symlink_to("../../../CONTRIBUTING.md")
    (repository / "AGENTS.md").symlink_to(tmp_path / "secret")
    (repository / "a" / "AGENTS.md").symlink_to("../CLAUDE.md")
    (repository / "a" / "b" / "AGENTS.md").symlink_to(home / "token")

    found = read(home, repository / "a" / "b" / "c")

    assert [each.text for each in found.texts] == ["inside"]
    assert len(found.problems) == 3
    assert found.problems[0].startswith("AGENTS.md was ignored: it leads outside")
    assert found.problems[1].startswith("a/b/AGENTS.md was ignored")
    assert found.problems[2].endswith("it is a symbolic link to a file of another name")


def test_files_of_larkspur_are_no_instructions_of_a_folder(repository: Path) -> None:
    home = repository / ".larkspur"
    (home / "workspaces").mkdir(parents=True)
    (home / "token").write_text("token")
    (repository / "AGENTS.md").symlink_to(".larkspur/token")
    os.link(home / "token", repository / "a" / "AGENTS.md")

    found = read(home, repository / "a")

    assert found.texts == ()
    assert [each.partition(": ")[2] for each in found.problems] == ["it belongs to Larkspur"] * 2


def test_what_is_no_readable_file_is_ignored_and_named(home: Path, repository: Path) -> None:
    os.mkfifo(repository / "AGENTS.md")
    (repository / "CLAUDE.md").write_text("stands beside an AGENTS.md")
    (repository / "a" / "AGENTS.md").mkdir()
    (repository / "a" / "b" / "AGENTS.md").symlink_to("AGENTS.md")
    (home / "AGENTS.md").symlink_to("elsewhere")

    found = read(home, repository / "a" / "b")

    assert found.texts == ()
    assert [each.partition(" was ")[0] for each in found.problems] == [
        "AGENTS.md of the owner",
        "AGENTS.md",
        "a/AGENTS.md",
        "a/b/AGENTS.md",
    ]


def test_only_the_bound_of_a_huge_file_is_read(home: Path, repository: Path) -> None:
    content = ("é" * 2_500_000).encode()
    (repository / "AGENTS.md").write_bytes(b"x" + content)
    (only,) = read(home, repository).texts
    assert only.text == "x" + "é" * ((MAX_TEXT_BYTES - 1) // 2)
    assert len(only.text.encode()) + only.unread == len(content) + 1


def test_only_the_deepest_folders_are_searched(home: Path, repository: Path) -> None:
    folder = repository.joinpath(*["x"] * MAX_FOLDERS)
    folder.mkdir(parents=True)
    for each in (folder, *folder.parents[:MAX_FOLDERS]):
        (each / "AGENTS.md").write_text("x")
    names = [each.name for each in read(home, folder).texts]
    assert len(names) == MAX_FOLDERS
    assert names[0] == "x/AGENTS.md"


def test_instructions_in_another_encoding_are_read(home: Path, repository: Path) -> None:
    rules = "Größen in Metern, Namen wie Müller groß."
    (repository / "AGENTS.md").write_bytes(rules.encode("cp1252"))
    assert read(home, repository).texts[0].text == rules


def test_a_missing_folder_has_no_instructions(home: Path, tmp_path: Path) -> None:
    found = read(home, tmp_path / "gone")
    assert (found.texts, found.problems) == ((), ())
