"""Commands are recognized by exact words of all languages."""

from typing import get_args

import pytest

from internal.channels.chat.command_parser import (
    ChatCommand,
    CommandName,
    UnknownCommand,
    format_help,
    parse_command,
)
from internal.i18n.chat import ChatPhrases

EN, ZH = ChatPhrases("en"), ChatPhrases("zh")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/new", ChatCommand("new")),
        ("/NEW", ChatCommand("new")),
        ("/stop task-1", ChatCommand("stop", "task-1")),
        ("\uff0f帮助", ChatCommand("help")),
        ("/新会话", ChatCommand("new")),
        ("/状态", ChatCommand("status")),
        ("/taskfoo", UnknownCommand("/taskfoo", "/tasks")),
        ("/xyzzy", UnknownCommand("/xyzzy")),
        ("/approve 7Qa2-1", ChatCommand("approve", "7Qa2-1")),
        ("/同意", ChatCommand("approve")),
        ("/拒绝 不需要", ChatCommand("reject", "不需要")),
        ("/plan on", ChatCommand("plan", "on")),
        ("/配对 ABCD-2345", ChatCommand("pair", "ABCD-2345")),
        ("/newx", UnknownCommand("/newx", "/new")),
        ("/etc/passwd is what?", None),
        ("/ new", None),
        ("new", None),
        ("say /new", None),
        ("/" + "x" * 40, None),
        ("", None),
    ],
)
def test_a_command_is_an_exact_word_and_its_argument(text: str, command: object) -> None:
    assert parse_command(text) == command


def test_help_names_every_command_in_its_language() -> None:
    assert all(f"`/{name}`" in format_help(EN, busy_mode="steer") for name in get_args(CommandName))
    assert "`/停止`" in format_help(ZH, busy_mode="queue")
    assert "starts a new one" in format_help(EN, busy_mode="interrupt")
