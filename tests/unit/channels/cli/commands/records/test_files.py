"""`larkspur files`: listing, and saving without overwriting."""

from pathlib import Path

import pytest

from internal.config import home as home_folder
from tests.support.command_runner import CommandResult, CommandRunner

NAME = "report.md"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LARKSPUR_HOME", str(home))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def make_report(run: CommandRunner, *shot: str) -> CommandResult:
    """Run a task that writes a report into the folder for people, in the current folder."""
    return run.local("-p", "make a report about larks", "--permission-mode", "edit", *shot)


def report_id(run: CommandRunner) -> str:
    made = make_report(run, "--output-format", "json").json
    artifact_id: str = made["files"][0]["artifact_id"]
    return artifact_id


def test_produced_files_are_in_the_summary_and_in_the_list(run: CommandRunner) -> None:
    summary = make_report(run, "--output-format", "json").json
    [file] = summary["files"]
    assert (file["name"], file["version"], file["type"]) == ("report.md", 1, "text")

    [listed] = run.local("files", "--json").json
    assert listed["artifact_id"] == file["artifact_id"]
    assert run.local("files").out.split()[0] == file["artifact_id"][-4:]
    for option, value, count in (
        ("--session", summary["session_id"], 1),
        ("--type", "image", 0),
        ("--search", "REPORT", 1),
        ("--search", "nothing", 0),
    ):
        assert len(run.local("files", "--json", option, value).json) == count, (option, value)


def test_the_text_output_names_the_file_on_standard_error(run: CommandRunner) -> None:
    shot = make_report(run)
    path = Path("output", NAME).resolve()
    assert f"File: report.md ({path.stat().st_size} bytes)  {path}\n" in shot.err
    assert "File:" not in shot.out


def test_a_file_is_saved_and_never_overwritten_without_force(
    run: CommandRunner, folder: Path
) -> None:
    artifact_id = report_id(run)
    saved = run.local("files", "get", artifact_id[-8:])
    assert (saved.code, saved.out) == (0, "report.md\n")
    path = folder / "report.md"
    content = path.read_text()
    assert content == Path("output", NAME).read_text()

    path.write_text("mine")
    again = run.local("files", "get", artifact_id)
    assert (again.code, again.message) == (2, "report.md exists; --force replaces it.")
    assert path.read_text() == "mine"
    assert run.local("files", "get", artifact_id, "--force").code == 0
    assert path.read_text() == content
    assert sorted(entry.name for entry in folder.iterdir()) == ["output", "report.md"]


def test_a_file_is_saved_into_a_folder_or_printed(run: CommandRunner, folder: Path) -> None:
    artifact_id = report_id(run)
    (folder / "sub").mkdir()
    assert run.local("files", "get", artifact_id, "sub").out == "sub/report.md\n"
    assert run.local("files", "get", artifact_id, "-").out == (folder / "sub/report.md").read_text()
    assert run.local("files", "get", artifact_id, "sub/other.md").code == 0


@pytest.mark.parametrize(
    ("path", "sentence"),
    [("no/where.md", "no/where.md cannot be written: No such file"), ("link", "link exists")],
)
def test_a_place_that_cannot_be_used_is_refused(
    run: CommandRunner, folder: Path, path: str, sentence: str
) -> None:
    artifact_id = report_id(run)
    (folder / "link").symlink_to("nowhere")
    refused = run.local("files", "get", artifact_id, path)
    assert refused.code in {1, 2}
    assert refused.message.startswith(sentence)
    assert sorted(entry.name for entry in folder.iterdir()) == ["link", "output"]


def test_unknown_files_and_arguments_are_refused(run: CommandRunner) -> None:
    assert "No id begins or ends with nothing" in run.local("files", "get", "nothing").message
    assert run.local("files", "get").message.startswith("Usage: larkspur files")
    assert run.local("files").err == "No files.\n"


def test_unused_files_are_counted_and_removed(run: CommandRunner) -> None:
    artifact_id = report_id(run)
    folder = home_folder.locate() / "attachments" / "aa"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ("a" * 64)).write_bytes(b"x" * 2_000)
    assert run.local("files", "gc", "--dry-run").out == "Unused files: 1 (2.0 KB)\n"
    assert run.local("files", "gc", "--json").json == {"files": 1, "size": 2000, "removed": True}
    assert run.local("files", "gc").out == "Unused files removed: 0 (0 bytes)\n"
    assert run.local("files", "get", artifact_id, "-").code == 0
    assert "gc [--dry-run]" in run.local("files", "gc", "now").message
