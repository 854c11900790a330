"""The commands of chats: help, suggestions, rights."""

import pytest

from internal.channels.chat.command_handlers import CHAT_COMMANDS, find_similar, format_help
from internal.channels.chat.command_parser import UnknownCommand, is_pairing, parse_command
from internal.i18n.chat import ChatPhrases
from internal.i18n.commands import command_words
from tests.support.echo_app import EchoApp

EN, ZH = ChatPhrases("en"), ChatPhrases("zh")


async def test_a_mistyped_command_gets_a_suggestion(app: EchoApp) -> None:
    assert "/status" in (await app.command("/statos")).text
    assert "/help" in (await app.command("/xyzzy")).text
    assert "/stop" in (await app.command("/help")).text


@pytest.mark.parametrize(
    ("word", "suggested"),
    [
        ("/hepl", "/help"),
        ("/task", "/tasks"),
        ("/stat", "/status"),
        ("/stauts", "/status"),
        ("/question", "/questions"),
        ("/usages", "/usage"),
        ("/modle", "/model"),
        ("/plans", "/plan"),
        ("/instruction", "/instructions"),
        # words that mean the opposite of a similar command, or less
        ("/start", ""),
        ("/stopp", ""),
        ("/step", ""),
        ("/restart", ""),
        ("/result", ""),
        ("/rejected", ""),
        ("/approved", ""),
        ("/unapprove", ""),
        ("/news", ""),
        ("/renew", ""),
        ("/pause", ""),
        ("/halt", ""),
        ("/unpair", ""),
        ("/开始", ""),
        ("/不停止", ""),
        ("/停用", ""),
        ("/不批准", ""),
        ("/新闻", ""),
        ("/任务表", "/任务"),
    ],
)
def test_suggestions_are_similar_commands_that_change_nothing(word: str, suggested: str) -> None:
    assert parse_command(word) == UnknownCommand(word)
    assert find_similar(word) == suggested


def test_help_names_every_command_in_its_language() -> None:
    listed = format_help(EN, busy_mode="steer")
    assert all(f"`/{command.name}`" in listed for command in CHAT_COMMANDS)
    assert "`/停止`" in format_help(ZH, busy_mode="queue")
    assert "starts a new one" in format_help(EN, busy_mode="interrupt")


def test_every_command_has_words_and_every_word_a_command() -> None:
    names = [command.name for command in CHAT_COMMANDS]
    assert len(names) == len({*names})
    assert {*names} == {*command_words("chat").values()}
    assert [name for name in names if is_pairing(f"/{name} x")] == ["pair"]
