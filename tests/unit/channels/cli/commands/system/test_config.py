"""`larkspur config`."""

from pathlib import Path

from tests.support.command_runner import CommandRunner


def test_settings_are_shown_with_their_origin(run: CommandRunner) -> None:
    assert "llm.provider: offline  # default" in run("config", "show").out


def test_path_of_the_configuration_file(run: CommandRunner, home: Path) -> None:
    assert run("config", "path").out == f"{home / 'config.yaml'}\n"
