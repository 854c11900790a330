"""Programs of hooks, compared with their state when the settings were read."""

import os
import shutil
from pathlib import Path

import pytest

from internal.hooks.answer import HookFailed
from internal.hooks.program import PinnedPrograms


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "hook.sh"
    path.write_text("#!/bin/sh\nexit 2\n")
    path.chmod(0o755)
    return path


async def test_a_program_that_is_what_it_was_runs(program: Path) -> None:
    pinned = PinnedPrograms([program])
    await pinned.check()
    os.utime(program)  # its content is compared
    await pinned.check()
    await PinnedPrograms([]).check()
    await PinnedPrograms([program.parent]).check()


def replace(program: Path, change: str) -> None:
    """Put something else in the place of a program."""
    if change == "text":
        program.write_text("#!/bin/sh\n")
    elif change == "same size":
        status = program.stat()
        program.write_text(program.read_text().replace("2", "0"))
        os.utime(program, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        old = program.rename(program.with_name("old.sh"))
        if change == "other inode":
            shutil.copy2(old, program)
        elif change == "link":
            program.symlink_to(shutil.copy2(old, old.with_name("new.sh")))
        elif change == "folder":
            program.mkdir()


@pytest.mark.parametrize("change", ["text", "same size", "other inode", "link", "gone", "folder"])
async def test_a_program_that_is_another_one_does_not_run(program: Path, change: str) -> None:
    pinned = PinnedPrograms([program])
    replace(program, change)
    with pytest.raises(HookFailed, match=r"hook.sh is not what it was .* restart Larkspur"):
        await pinned.check()


async def test_a_program_that_was_missing_does_not_run(tmp_path: Path) -> None:
    pinned = PinnedPrograms([tmp_path / "later.sh"])
    await pinned.check()
    (tmp_path / "later.sh").touch()
    with pytest.raises(HookFailed, match=r"later.sh was not there"):
        await pinned.check()


async def test_files_that_are_read_may_change(program: Path, tmp_path: Path) -> None:
    rules, other = tmp_path / "rules.json", tmp_path / "other.sh"
    rules.touch()
    shutil.copy2(program, other)
    pinned = PinnedPrograms([program, rules, other])
    rules.write_text("{}")
    await pinned.check()
    other.write_text("")
    with pytest.raises(HookFailed, match=r"other.sh"):
        await pinned.check()
