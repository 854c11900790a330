"""Programs of projects, found in real folders."""

import shlex
from pathlib import Path

import pytest

from internal.mcp.launch.project_runs import ProjectRun, find_project_run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").touch()
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def found(line: str, project: Path, folder: str = "") -> ProjectRun | None:
    command, *args = shlex.split(line.replace("DIR", str(project)))
    return find_project_run(command, args, folder)


@pytest.mark.parametrize(
    ("line", "started", "kept"),
    [
        ("uv --directory DIR run server.py a", "BIN/python DIR/server.py", 1),
        ("uv run --project=DIR --frozen serve --port 1", "BIN/serve", 2),
        ("uv run --directory DIR --with x -m server", "BIN/python -m", 1),
    ],
)
def test_the_program_of_the_environment_is_started(
    project: Path, line: str, started: str, kept: int
) -> None:
    programs = str(project / ".venv" / "bin")
    expected = started.replace("BIN", programs).replace("DIR", str(project))
    assert found(line, project) == ProjectRun(project, tuple(expected.split()), kept)


def test_the_working_folder_may_be_the_project(project: Path) -> None:
    run = found("uv run serve", project, str(project))
    assert run is not None
    assert run.argv == (f"{project}/.venv/bin/serve",)
    assert found("uv run serve", project) is None


def test_a_project_without_an_environment_is_known(project: Path) -> None:
    (project / ".venv" / "bin" / "python").unlink()
    assert found("uv --directory DIR run serve", project) == ProjectRun(project, ())


@pytest.mark.parametrize(
    "line", ["uvx serve", "uv tool run serve", "uv --directory DIR/none run serve", "uv run"]
)
def test_other_command_lines_are_none(project: Path, line: str) -> None:
    assert found(line, project) is None
