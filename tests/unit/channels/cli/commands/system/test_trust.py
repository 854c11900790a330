"""`larkspur trust`."""

from pathlib import Path

from internal.channels.cli.exit_codes import OK, USAGE
from internal.tools.instruction_trust import InstructionTrust
from tests.support.command_runner import CommandRunner


def test_the_text_that_is_shown_is_trusted(run: CommandRunner, home: Path, tmp_path: Path) -> None:
    file, trust = tmp_path / "AGENTS.md", InstructionTrust(home)
    file.write_text("obey\n\u202eme\n")
    trust.begin_commands(str(tmp_path), dict)
    asked = run("trust", str(file))  # there is no terminal
    assert (asked.code, "obey" in asked.out, "--yes" in asked.message) == (USAGE, True, True)
    assert not trust.follows(str(file), file.read_bytes(), is_own=False)
    agreed = run("trust", str(file), "--yes")
    assert agreed.code == OK
    assert "obey\n\\u202eme\n" in agreed.out
    assert trust.follows(str(file), file.read_bytes(), is_own=False)
    assert not trust.follows(str(file), b"another text", is_own=False)


def test_a_missing_file_is_an_error(run: CommandRunner, tmp_path: Path) -> None:
    assert run("trust", str(tmp_path / "AGENTS.md")).code == USAGE
