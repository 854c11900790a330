"""The vocabulary of the chat channels, and which language a chat gets."""

from internal.i18n.chat import (
    ChatPhrases,
    approval_words,
    find_switch,
    has_chinese,
    phrases_for,
)
from internal.tools.registry import TOOLS

EN, ZH = ChatPhrases("en"), ChatPhrases("zh")


def test_approval_words_are_exact_and_unambiguous() -> None:
    yes, no = approval_words()
    assert not yes & no
    assert all(word == word.strip().lower() for word in yes | no)


def test_switches_are_understood_in_both_languages() -> None:
    assert [find_switch(text) for text in (" ON ", "关", "全部", "default", "x")] == [
        "on",
        "off",
        "all",
        "default",
        "",
    ]


def test_every_tool_has_a_description() -> None:
    for tool in TOOLS:
        for phrases in (EN, ZH):
            assert tool.spec.name not in phrases.tool(tool.spec.name)
    assert EN.tool("move_file") == "Uses move_file"


def test_auto_follows_the_language_of_the_text() -> None:
    assert phrases_for("auto", "你好").language == "zh"
    assert phrases_for("auto", "hello").language == "en"
    assert phrases_for("zh", "hello").language == "zh"
    assert has_chinese("a 中")
    assert not has_chinese("abc")


def test_statuses_commands_and_failures_have_texts() -> None:
    assert EN.status("completed") == "Done"
    assert EN.status("unheard_of") == "unheard_of"
    assert ZH.command("new") == "/新会话"
    assert EN.failure("no_such_code", "run-1") == EN("failed_error", run="run-1")
