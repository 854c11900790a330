"""Commands are recognized by exact words of all languages."""

import pytest

from internal.channels.chat.command_parser import (
    ChatCommand,
    UnknownCommand,
    is_stop_word,
    parse_command,
)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/new", ChatCommand("new")),
        ("/NEW", ChatCommand("new")),
        ("/reset", ChatCommand("new")),
        ("/clear", ChatCommand("new")),
        ("/重置", ChatCommand("new")),
        ("/清空", ChatCommand("new")),
        ("/新对话", ChatCommand("new")),
        ("/stop task-1", ChatCommand("stop", "task-1")),
        ("\uff0f帮助", ChatCommand("help")),
        ("/新会话", ChatCommand("new")),
        ("/状态", ChatCommand("status")),
        ("/taskfoo", UnknownCommand("/taskfoo")),
        ("/xyzzy", UnknownCommand("/xyzzy")),
        ("/approve 7Qa2-1", ChatCommand("approve", "7Qa2-1")),
        ("/同意", ChatCommand("approve")),
        ("/拒绝 不需要", ChatCommand("reject", "不需要")),
        ("/plan on", ChatCommand("plan", "on")),
        ("/配对 ABCD-2345", ChatCommand("pair", "ABCD-2345")),
        ("/newx", UnknownCommand("/newx")),
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


@pytest.mark.parametrize("text", ["stop", "Stop", " STOP! ", "停", "停。", "停止", "停下"])
def test_a_word_alone_can_stop(text: str) -> None:
    assert is_stop_word(text)


@pytest.mark.parametrize("text", ["stop it", "don't stop", "stopp", "停车", "别停", "停止服务", ""])
def test_a_word_in_a_sentence_does_not_stop(text: str) -> None:
    assert not is_stop_word(text)
