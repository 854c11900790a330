"""The vocabulary of the chat channels, and which language a chat gets."""

from internal.i18n.chat import (
    ChatPhrases,
    ChatTexts,
    approval_words,
    find_switch,
    has_chinese,
    is_without_words,
)

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


def test_a_tool_is_named_by_its_title_or_else_by_its_name() -> None:
    texts = ChatTexts("auto", {"move_file": {"en": "Move a file", "zh": "移动文件"}})
    titles = [texts.phrases_for(text).tool("move_file") for text in ("hello", "你好")]
    assert titles == ["Move a file", "移动文件"]
    assert EN.tool("move_file") == "Use the tool “move file”"


def test_auto_follows_the_language_of_the_text() -> None:
    assert ChatTexts().phrases_for("你好").language == "zh"
    assert ChatTexts().phrases_for("hello").language == "en"
    assert ChatTexts("zh").phrases_for("hello").language == "zh"
    assert has_chinese("a 中")
    assert not has_chinese("abc")


def test_phrases_are_built_once_for_each_language() -> None:
    texts = ChatTexts()
    assert texts.phrases_for("hello") is texts.phrases_for("hi") is texts.phrases_in("en")
    assert texts.phrases_for("你好") is texts.phrases_in("zh")


def test_statuses_and_commands_have_texts() -> None:
    assert EN.status("completed") == "Done"
    assert EN.status("unheard_of") == "unheard_of"
    assert ZH.command("new") == "/新会话"


def test_what_stands_for_missing_words_is_recognised() -> None:
    for phrases in (EN, ZH):
        assert is_without_words(phrases("only_files", names="a.ogg, b.ogg"))
    assert is_without_words(" \n")
    assert not is_without_words("(no words")
    assert not is_without_words("what is said in a.ogg?")
