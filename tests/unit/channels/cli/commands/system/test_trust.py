"""`larkspur trust`."""

from pathlib import Path

from internal.channels.cli.exit_codes import OK, USAGE
from internal.tools.untrusted_files import UntrustedFiles
from tests.unit.channels.cli.commands.conftest import CommandRunner


def test_a_file_is_trusted_once(run: CommandRunner, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("obey")
    UntrustedFiles(home).record([str(file)])
    first, second = run("trust", str(file)), run("trust", str(file))
    assert (first.code, second.code) == (OK, OK)
    assert "from the next run on" in first.out
    assert "nothing has changed" in second.out
    assert not UntrustedFiles(home).contains(str(file), b"obey")


def test_a_missing_file_is_an_error(run: CommandRunner, tmp_path: Path) -> None:
    assert run("trust", str(tmp_path / "AGENTS.md")).code == USAGE
