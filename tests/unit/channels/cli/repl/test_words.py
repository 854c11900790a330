"""Both catalogues say the same things, with the same names to fill in."""

import string
import tomllib
from dataclasses import asdict, fields
from pathlib import Path

from internal.channels.cli.repl import words as module
from internal.channels.cli.repl.slash_commands import COMMANDS
from internal.channels.cli.repl.words import Words, language_of, words


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_no_sentence_is_missing_or_left_over() -> None:
    wanted = {field.name for field in fields(Words)}
    for language in ("en", "zh"):
        path = Path(module.__file__).with_name(f"words.{language}.toml")
        assert set(tomllib.loads(path.read_text(encoding="utf-8"))) == wanted


def test_both_fill_in_the_same_names() -> None:
    english, chinese = asdict(words("en")), asdict(words("zh"))
    for name, text in english.items():
        if isinstance(text, str):
            assert names(text) == names(chinese[name]), name


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
