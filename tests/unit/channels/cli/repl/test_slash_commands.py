"""The registry of slash commands: names, descriptions, aliases."""

from collections import Counter

from internal.channels.cli.repl.slash_commands import SLASH_COMMANDS
from internal.i18n.catalog import MessageCatalog, load_catalog
from internal.i18n.language import LANGUAGES


def test_every_command_has_a_description_and_a_chinese_alias() -> None:
    for command in SLASH_COMMANDS:
        aliases = {load_catalog("repl", one)["aliases"][command.name] for one in LANGUAGES}
        assert len(aliases) == 1
        assert not aliases.pop().isascii()
        assert all(MessageCatalog("repl", one)(f"command_{command.name}") for one in LANGUAGES)


def test_names_and_aliases_are_unique() -> None:
    aliases = load_catalog("repl", "zh")["aliases"]
    names = [*aliases, *(alias for known in aliases.values() for alias in known.split())]
    assert set(aliases) == {command.name for command in SLASH_COMMANDS}
    assert Counter(names).most_common(1)[0][1] == 1
