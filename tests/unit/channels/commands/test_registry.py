"""The commands of every channel."""

from pathlib import Path

from internal.channels import commands
from internal.channels.commands.registry import COMMANDS
from internal.i18n.commands import COMMAND_CHANNELS, CommandTexts, shared_names


def test_the_module_of_each_command_has_its_name() -> None:
    assert tuple(command.name for command in COMMANDS) == shared_names()
    modules = {path.stem for path in Path(commands.__file__).parent.glob("*.py")}
    assert modules - {"__init__", "command", "records", "registry"} == {*shared_names()}


def test_a_command_with_choices_says_in_chats_how_it_is_used() -> None:
    for command in COMMANDS:
        assert all("help" in CommandTexts(command.name, each, "en") for each in COMMAND_CHANNELS)
        if command.arguments.choices:
            assert "how" in CommandTexts(command.name, "chat", "en")
