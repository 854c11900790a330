"""Commands have descriptions and Chinese names; the language follows setting and locale."""

from internal.channels.cli.repl.slash_commands import COMMANDS
from internal.channels.cli.repl.words import language_of, words


def test_every_command_has_a_meaning_and_a_chinese_name() -> None:
    for command in COMMANDS:
        assert getattr(words("zh"), command.meaning)
        assert words("en").aliases[command.name] == words("zh").aliases[command.name]
        assert not words("zh").aliases[command.name].isascii()


def test_the_setting_beats_the_locale() -> None:
    assert [language_of("auto", one) for one in ("zh_CN.UTF-8", "C.UTF-8", "")] == [
        "zh",
        "en",
        "en",
    ]
    assert (language_of("en", "zh_CN"), language_of("zh", "C")) == ("en", "zh")
