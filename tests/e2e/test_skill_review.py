"""The review of a skill on a terminal: a person is asked about the files and about each rule."""

from pathlib import Path

import pytest

from tests.support.cli_environment import LARKSPUR
from tests.support.skills import write_skill
from tests.support.terminal import start_terminal

pytestmark = pytest.mark.slow


async def test_a_person_grants_each_rule_alone(home: Path, environ: dict[str, str]) -> None:
    write_skill(home, tools="Read Bash(git:*) Bash(git *) Bash(ls:*)")
    review: list[str | Path] = [LARKSPUR, "skills", "review", "bird-song"]
    async with start_terminal(review, environ, home.parent) as terminal:
        await terminal.wait_for("Bash(ls:*): can be allowed", "Accept these files of bird-song?")
        terminal.type("y\r")
        await terminal.wait_for("Allow shell(git *) without asking")
        terminal.type("\r")
        await terminal.wait_for("Allow shell(ls *) without asking")
        terminal.type("y\r")
        assert await terminal.wait_exit() == 0
        await terminal.wait_for("Granted: shell(ls *).")
        assert "Granted: shell(git *)" not in terminal.screen.text
    async with start_terminal([LARKSPUR, "rules", "--local"], environ, home.parent) as terminal:
        assert await terminal.wait_exit() == 0
        assert "shell(ls *)" in terminal.screen.text
        assert "shell(git *)" not in terminal.screen.text
