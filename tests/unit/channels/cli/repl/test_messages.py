"""Commands have descriptions and Chinese names; the language follows setting and locale."""

from internal.channels.cli.repl.messages import load_messages, resolve_language
from internal.channels.cli.repl.slash_commands import SLASH_COMMANDS


def test_every_command_has_a_meaning_and_a_chinese_name() -> None:
    for command in SLASH_COMMANDS:
        assert getattr(load_messages("zh"), command.meaning)
        assert (
            load_messages("en").aliases[command.name] == load_messages("zh").aliases[command.name]
        )
        assert not load_messages("zh").aliases[command.name].isascii()


def test_the_setting_beats_the_locale() -> None:
    assert [resolve_language("auto", one) for one in ("zh_CN.UTF-8", "C.UTF-8", "")] == [
        "zh",
        "en",
        "en",
    ]
    assert (resolve_language("en", "zh_CN"), resolve_language("zh", "C")) == ("en", "zh")
