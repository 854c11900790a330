"""`larkspur completion`."""

import pytest

from tests.unit.channels.cli.commands.conftest import CommandRunner


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_has_commands_actions_and_options(run: CommandRunner, shell: str) -> None:
    script = run("completion", shell).out
    for word in ("doctor", "rename", "output-format"):
        assert word in script
    assert "@" not in script.replace("$@", "")
