"""Files that agents and programs trust later, compared around a command."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.tools.commands.configuration_files import (
    MAX_FILES,
    MAX_REPORTED,
    ConfigurationSnapshot,
    configuration_metadata,
    describe_changes,
)
from internal.tools.untrusted_files import UntrustedFiles

NOTHING = UntrustedFiles(Path("/no/such/home"))


def changes(workspace: Path, change: Callable[[], object]) -> list[str]:
    before = ConfigurationSnapshot([str(workspace)])
    change()
    return before.report(NOTHING)


def write(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    "name",
    [
        "AGENTS.md",
        "CLAUDE.md",
        ".mcp.json",
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/commondir",
        ".git/config.worktree",
        ".larkspur/skills/deep/SKILL.md",
    ],
)
def test_a_new_and_a_changed_file_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = "[core]\n\tfsmonitor = ./run\n"
    assert changes(tmp_path, lambda: write(path, text)) == [name]
    assert changes(tmp_path, lambda: None) == []
    assert changes(tmp_path, lambda: write(path, f"{text}\tpager = ./x\n")) == [name]
    assert changes(tmp_path, lambda: path.chmod(0o700)) == [name]
    assert changes(tmp_path, path.unlink) == []


def test_a_file_with_the_same_size_and_time_is_different(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("one")
    before, times = ConfigurationSnapshot([str(tmp_path)]), path.stat()
    path.write_text("two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert before.report(NOTHING) == ["AGENTS.md"]


def test_other_files_and_what_git_itself_writes_are_not_named(tmp_path: Path) -> None:
    def work() -> None:
        write(tmp_path / "src" / "AGENTS.md")
        for arguments in (
            ("init", "--quiet"),
            ("config", "user.name", "Lin"),
            ("remote", "add", "origin", "https://example.com/a.git"),
            ("config", "branch.main.remote", "origin"),
            ("config", "branch.main.merge", "refs/heads/main"),
        ):
            subprocess.run(["git", "-C", tmp_path, *arguments], check=True)

    assert changes(tmp_path, work) == []
    assert (tmp_path / ".git" / "hooks").is_dir()


@pytest.mark.parametrize(
    "config",
    [
        "[core]\n\thooksPath = hooks\n",
        "[alias]\n\tst = !sh -c x\n",
        "[core] fsmonitor = ./x\n",
        '[remote "origin"]\n\turl = ext::sh -c x\n',
        '[branch "main"]\n\tremote = ext::sh -c x\n',
        '[include]\n\tpath = "x"\n',
        "[core]\n\tbare = false\\\n\tpager = x\n",
        '[filter "x"]\n\tclean = ./x\n',
        "x" * 70_000,
    ],
)
def test_settings_of_git_that_name_programs_are_named(tmp_path: Path, config: str) -> None:
    assert changes(tmp_path, lambda: write(tmp_path / ".git" / "config", config)) == [".git/config"]


def test_links_pipes_and_folders_in_the_place_of_files(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    for folder in (workspace / ".git" / "hooks", outside):
        folder.mkdir(parents=True)
    (outside / "x").write_text("x")
    assert changes(workspace, lambda: (workspace / "AGENTS.md").symlink_to(outside / "x")) == [
        "AGENTS.md"
    ]
    assert changes(workspace, lambda: (outside / "x").write_text("longer")) == []
    assert changes(workspace, lambda: os.mkfifo(workspace / ".git" / "config")) == [".git/config"]
    (workspace / ".git" / "config").unlink()
    assert changes(workspace, lambda: write(workspace / ".mcp.json" / "x")) == [".mcp.json/x"]

    def replace_git() -> None:
        (workspace / ".git").rename(workspace / "moved")
        (workspace / ".git").write_text("gitdir: moved")

    assert changes(workspace, replace_git) == [".git"]
    assert changes(workspace, lambda: (workspace / ".git").write_text("gitdir: other")) == [".git"]


def test_names_are_shown_safely_and_are_bounded(tmp_path: Path) -> None:
    hooks = tmp_path / ".git" / "hooks"
    hooks.mkdir(parents=True)
    assert changes(tmp_path, lambda: write(hooks / "a\n\u202eb")) == [".git/hooks/a\\n\\u202eb"]

    def many() -> None:
        for number in range(2 * MAX_FILES):
            (hooks / f"hook-{number}").touch()

    found = changes(tmp_path, many)
    assert MAX_REPORTED < len(found) <= MAX_FILES + 1  # with their folder
    assert len(configuration_metadata(found)["configuration"]) == MAX_REPORTED
    assert f"and {len(found) - MAX_REPORTED} more." in describe_changes(found)
    assert (configuration_metadata([]), describe_changes([])) == ({}, "")


@pytest.mark.parametrize("crowd", ["samples", "hooks", "folders"])
def test_no_crowd_of_files_hides_a_new_one(tmp_path: Path, crowd: str) -> None:
    hooks = tmp_path / ".git" / "hooks"
    hooks.mkdir(parents=True)
    for number in range(2 * MAX_FILES):
        match crowd:
            case "samples":
                (hooks / f"a{number}.sample").touch()
            case "folders":
                (hooks / f"a{number}").mkdir()
            case _:
                (hooks / f"a{number}").touch()

    def work() -> None:
        (tmp_path / "AGENTS.md").touch()
        (hooks / "pre-commit").touch()

    found = changes(tmp_path, work)
    assert "AGENTS.md" in found
    assert any(one.startswith(".git/hooks") for one in found)


def test_what_makes_a_folder_a_bare_repository_is_named(tmp_path: Path) -> None:
    assert changes(tmp_path, lambda: write(tmp_path / "config", "[core]")) == []

    def work() -> None:
        for name in ("HEAD", "objects/x", "refs/x", "hooks/post-checkout"):
            write(tmp_path / name)

    assert changes(tmp_path, work) == ["HEAD", "config", "hooks/post-checkout"]
    assert changes(tmp_path, lambda: write(tmp_path / "config", "[core] x")) == ["config"]


def test_names_of_other_folders_are_absolute(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
    before = ConfigurationSnapshot([str(first), str(second)])
    for folder in (first, second):
        (folder / "AGENTS.md").touch()
    assert before.report(NOTHING) == ["AGENTS.md", f"{second}/AGENTS.md"]
    assert ConfigurationSnapshot([str(tmp_path / "missing")]).report(NOTHING) == []
