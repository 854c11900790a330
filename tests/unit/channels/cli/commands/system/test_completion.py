"""`larkspur completion`."""

import pytest

from tests.support.command_runner import CommandRunner


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_has_commands_actions_and_options(run: CommandRunner, shell: str) -> None:
    script = run("completion", shell).out
    for word in ("doctor", "rename", "output-format"):
        assert word in script
    assert "@" not in script.replace("$@", "")


@pytest.mark.parametrize(
    ("shell", "option"), [("bash", "--tree"), ("zsh", "--tree"), ("fish", "-l tree")]
)
def test_options_of_a_command_are_offered_after_it(
    run: CommandRunner, shell: str, option: str
) -> None:
    lines = run("completion", shell).out.splitlines()
    (line,) = [each for each in lines if f"{option} " in each]
    assert "tasks" in line
