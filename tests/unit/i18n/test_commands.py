"""Every command has the same texts in each language, and every word names one command."""

import json
from collections import Counter
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from internal.i18n import catalog
from internal.i18n.commands import (
    COMMAND_CHANNELS,
    CommandChannel,
    CommandTexts,
    command_words,
    shared_names,
)
from internal.i18n.language import LANGUAGES
from tests import ROOT

FILE = Path(catalog.__file__).with_name("commands.json")


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    assert sorted(keys) == sorted({*keys})
    return dict(pairs)


SECTIONS = json.loads(FILE.read_text(encoding="utf-8"), object_pairs_hook=unique)


def texts_of(name: str, channel: CommandChannel, language: str) -> dict[str, Any]:
    """The texts of a section that are shown on a channel."""
    own = (SECTIONS["every"] | SECTIONS[channel])[name][language]
    shown = {key: text for key, text in own.items() if key not in COMMAND_CHANNELS}
    return {**shown, **own.get(channel, {})}


def commands_of(channel: CommandChannel) -> list[str]:
    return [*SECTIONS["every"], *SECTIONS[channel]]


def test_no_command_of_one_channel_is_one_of_every_channel() -> None:
    assert set(SECTIONS) == {"every", *COMMAND_CHANNELS}
    assert shared_names() == tuple(SECTIONS["every"])
    assert not any(SECTIONS["every"].keys() & SECTIONS[each].keys() for each in COMMAND_CHANNELS)


@pytest.mark.parametrize("channel", COMMAND_CHANNELS)
def test_languages_have_the_same_texts_and_placeholders(channel: CommandChannel) -> None:
    for name in commands_of(channel):
        first, *others = (
            {
                key: {field for _, field, _, _ in Formatter().parse(text) if field}
                for key, text in texts_of(name, channel, language).items()
                if key != "words"
            }
            for language in LANGUAGES
        )
        assert "help" in first
        assert all(each == first for each in others), name


@pytest.mark.parametrize("channel", COMMAND_CHANNELS)
def test_a_word_of_any_language_names_one_command(channel: CommandChannel) -> None:
    words = [
        word
        for name in commands_of(channel)
        for language in LANGUAGES
        for word in texts_of(name, channel, language)["words"]
    ]
    assert Counter(words).most_common(1)[0][1] == 1
    assert all(word == word.lower() for word in words)
    assert {*command_words(channel)} == {*words}


def test_the_preferred_word_is_that_of_the_language() -> None:
    assert CommandTexts("skills", "chat", "zh").word == "技能"
    assert CommandTexts("mcp", "chat", "zh").word == "mcp"  # has none of its own
    assert CommandTexts("mcp", "terminal", "zh").word == "服务器"


def test_texts_of_a_channel_replace_those_of_every_channel() -> None:
    chat, terminal = (CommandTexts("skills", each, "en") for each in COMMAND_CHANNELS)
    assert chat("not_reviewed") == terminal("not_reviewed")
    assert chat("none") != terminal("none")
    assert "more" in chat
    assert "more" not in terminal
    assert chat("more", count=3) == "- and 3 more"
    with pytest.raises(KeyError):
        terminal("more", count=3)


def test_the_code_uses_every_text() -> None:
    """States of skills and servers are keys that the code does not name."""
    code = "".join(path.read_text() for path in (ROOT / "internal" / "channels").rglob("*.py"))
    states = {"offered", "not_reviewed", "changed_since_its_review", "not_usable", "disabled"}
    for channel in COMMAND_CHANNELS:
        for name in commands_of(channel):
            keys = texts_of(name, channel, "en").keys() - states - {"words"}
            assert [key for key in keys if f'"{key}"' not in code] == []
