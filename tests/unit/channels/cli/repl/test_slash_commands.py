"""The registry of slash commands: names, descriptions, aliases."""

from internal.channels.cli.repl.slash_commands import SLASH_COMMANDS
from internal.i18n.commands import CommandTexts, command_words
from internal.i18n.language import LANGUAGES


def test_every_command_has_a_description_and_a_chinese_alias() -> None:
    words = command_words("terminal")
    for command in SLASH_COMMANDS:
        aliases = [word for word, name in words.items() if name == command.name != word]
        assert aliases
        assert not any(alias.isascii() for alias in aliases)
        assert all(CommandTexts(command.name, "terminal", one)("help") for one in LANGUAGES)


def test_names_and_aliases_are_unique() -> None:
    names = [command.name for command in SLASH_COMMANDS]
    assert len(names) == len({*names})
    assert {*names} == {*command_words("terminal").values()}
    assert all(command_words("terminal")[name] == name for name in names)
