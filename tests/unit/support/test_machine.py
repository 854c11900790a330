"""Tests that the machine cannot run are left out, counted and named; nothing else is."""

import subprocess
import sys
from pathlib import Path

import pytest

from internal.sandbox.environment import DEFAULT_PATH
from tests import ROOT
from tests.machine import abilities, programs

MODULE = """
import pytest

@pytest.mark.needs("ripgrep")
@pytest.mark.parametrize("number", [1, 2])
def test_with_ripgrep(number): pass

@pytest.mark.needs("program:no-such-program")
def test_with_a_program(): pass

@pytest.mark.slow
@pytest.mark.needs("ripgrep")
def test_that_is_not_selected(): pass

def test_without_needs(): pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with tests, and one with the only program that pytest finds: not ripgrep."""
    (tmp_path / "test_needs.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rg").write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    (tmp_path / "bin" / "rg").chmod(0o755)
    return tmp_path


def run(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder}/bin:{programs.SYSTEM_PATH}", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.machine.plugin", "-p", "no:randomly"),
            *("-p", "no:cacheprovider", "-m", "not slow", *options, "test_needs.py"),
        ],
        cwd=folder,
        env=environment | variables,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_tests_whose_needs_are_not_met_are_counted_and_named(folder: Path, workers: str) -> None:
    done = run(folder, f"--numprocesses={workers}")
    assert done.returncode == 0, done.stdout
    report = done.stdout.partition("not run on this machine")[2].split("\n")[1:]
    report = [line for line in report if line]
    name = "no-such-program"
    assert report[:2] == [
        f"1 test not run without {name}: {name} is not in {DEFAULT_PATH}",
        "  test_needs.py::test_with_a_program",
    ]
    assert report[2:4] == [
        "2 tests not run without ripgrep: rg: broken",
        "  test_needs.py::test_with_ripgrep (2 forms)",
    ]
    assert "1 passed" in report[-1]


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_required_ability_that_is_absent_ends_the_run(folder: Path, workers: str) -> None:
    required = {"LARKSPUR_TEST_REQUIRE": "ripgrep"}
    done = run(folder, f"--numprocesses={workers}", **required)
    assert done.returncode == 1
    assert "This run requires what the machine lacks. ripgrep: rg: broken." in done.stderr
    assert "passed" not in done.stdout


@pytest.mark.slow
def test_a_need_or_requirement_that_is_not_in_the_list_is_an_error(folder: Path) -> None:
    assert "is called vision" in run(folder, LARKSPUR_TEST_REQUIRE="vision").stderr
    (folder / "test_needs.py").write_text(MODULE.replace('"ripgrep"', '"vision"', 1))
    assert "is called vision" in run(folder).stderr


def test_a_program_that_does_not_end_is_no_ability(folder: Path) -> None:
    (folder / "bin" / "rg").write_text("#!/bin/sh\nsleep 1000 & wait\n")
    with pytest.raises(abilities.Failed, match=r"rg did not end in 0\.5 s"):
        abilities.run_program("rg", path=f"{folder}/bin", seconds=0.5)


@pytest.mark.parametrize(
    ("is_root", "has_apt_get", "advice"),
    [
        (False, True, "install them with `sudo apt-get install ripgrep pgbouncer`"),
        (True, True, "apt-get could not install ripgrep pgbouncer"),
        (False, False, "Debian's packages with them are ripgrep pgbouncer"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(
    is_root: bool, has_apt_get: bool, advice: str
) -> None:
    missing = [each for each in programs.PROGRAMS if each.name in ("rg", "pgbouncer")]
    assert programs.explain(missing, is_root=is_root, has_apt_get=has_apt_get) == (
        f"Missing: rg, pgbouncer; {advice}. Tests that need them are not run, and named at the end."
    )
