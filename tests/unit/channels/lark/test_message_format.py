"""Replies and progress are rendered in formats that Lark accepts."""

import json

import pytest

from internal.agent.domain.text import truncate_line
from internal.channels.chat.transport import RunContent, RunPhase
from internal.channels.lark.message_format import (
    MAX_RICH_BYTES,
    PROGRESS_MARK,
    byte_length,
    limit_nesting,
    neutralize_markup,
    progress_card,
    progress_text,
    render_answer,
    send_uuid,
    split_bytes,
    tables_as_code,
    truncate_bytes,
)
from internal.channels.lark.replies import is_auxiliary
from internal.i18n.chat import ChatPhrases

EN, ZH = ChatPhrases("en"), ChatPhrases("zh")


def test_mentions_and_images_of_a_model_are_plain_text() -> None:
    answer = '<at id=all></at> <AT user_id="all"> </at> ![x](https://evil.example/a.png) <b>'
    for name, parts in render_answer(answer, EN):
        content = json.loads(parts[0].content)
        text = json.dumps(content, ensure_ascii=False)
        assert "<at" not in text.lower(), name
        assert "![" not in text
        assert "https://evil.example/a.png" in text


def test_every_image_of_a_line_becomes_a_link() -> None:
    shown = neutralize_markup("![a ![b](x) ![c](y) wow![1] !\n[d](z) ![](w)")
    assert shown == "[a [b](x) [c](y) wow![1] !\n[d](z) [](w)"


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("> " * 2_000 + "deep", "> " * 8 + "deep"),
        (">" * 2_000 + "deep", ">" * 8 + "deep"),
        ("- " * 2_000 + "deep", "- " * 8 + "deep"),
        ("1. " * 2_000 + "deep", "1. " * 8 + "deep"),
        ("> - " * 1_000 + "deep", "> - " * 4 + "deep"),
        (" " * 4_000 + "- deep", " " * 32 + "- deep"),
        ("```\n" + "> " * 2_000 + "deep\n```\n", "```\n" + "> " * 2_000 + "deep\n```\n"),
        ("> - 1. kept\n" + " " * 40 + "kept", "> - 1. kept\n" + " " * 40 + "kept"),
    ],
)
def test_deep_nesting_is_flattened_and_its_text_kept(answer: str, shown: str) -> None:
    assert limit_nesting(answer) == shown


def test_repeated_marks_are_rendered_with_their_text() -> None:
    for mark in ("[", "*", "![", "_", "`", "|", "<at ", "- ", "|-"):
        answer = f"{mark * 10_000}\n{mark * 5_000} deep"
        for name, parts in render_answer(answer, EN):
            sent = [part.file[1].decode() if part.file else part.content for part in parts]
            assert "deep" in "".join(sent), name


def test_a_table_with_many_columns_becomes_code() -> None:
    row = "|a" * 1_000 + "|\n"
    table = f"{row}{'|-' * 1_000}|\n{row}"
    [card, *_] = render_answer(table, EN)
    assert card[0] == "card"
    text = json.loads(card[1][0].content)["body"]["elements"][0]["content"]
    assert text == f"```\n{table.rstrip()}\n```\n"


def test_renderings_are_ordered_from_card_to_text() -> None:
    assert [name for name, _ in render_answer("hi", EN)] == ["card", "post", "text"]
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert [name for name, _ in render_answer(table, EN)] == ["card", "plain-card", "post", "text"]
    long = render_answer("句子。" * 20_000, ZH)
    assert [name for name, _ in long] == ["file", "text"]
    post, file = long[0][1]
    assert byte_length(post.content) < MAX_RICH_BYTES
    assert file.file is not None
    assert file.file[1].decode() == "句子。" * 20_000
    assert all(byte_length(part.content) < 150 * 1024 for part in long[1][1])
    assert "".join(json.loads(part.content)["text"] for part in long[1][1]) == "句子。" * 20_000


def test_tables_over_the_limit_become_code() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    shown = tables_as_code(table * 3, 2)
    assert shown.count("```") == 2
    assert tables_as_code(shown, 2) == shown
    assert tables_as_code("```\n" + table + "```\n", 0) == "```\n" + table + "```\n"


def test_uuids_are_short_and_unique() -> None:
    names = {send_uuid("run-1:answer", form, n) for form in ("card", "post") for n in (0, 1)}
    assert len(names) == 4
    assert {len(name) for name in names} == {40}


def test_text_is_truncated_at_sentences_and_never_inside_a_character() -> None:
    assert truncate_bytes("短句。" * 10, 20) == "短句。短句。"
    assert truncate_bytes("no end here", 5) == "no en"
    assert truncate_bytes("\U0001f600" * 3, 5) == "\U0001f600"
    assert "".join(split_bytes("a b. " * 100, 64)).replace(" ", "") == "ab." * 100
    assert split_bytes("  ", 10) == []
    assert truncate_line("a  b\nc", 4) == "a b…"


PHRASES = ChatPhrases("en")


@pytest.mark.parametrize(
    ("phase", "color"), [("working", "blue"), ("waiting", "orange"), ("failed", "red")]
)
def test_a_card_has_the_title_and_color_of_its_phase(phase: RunPhase, color: str) -> None:
    text = progress_card(RunContent(phase, "Title", ("☐ read", "✓ look"), PHRASES))
    card = json.loads(text)
    assert card["header"] == {
        "title": {"tag": "plain_text", "content": "Title"},
        "template": color,
    }
    assert card["body"]["elements"][0]["content"] == "☐ read\n✓ look"
    assert is_auxiliary("interactive", text)


def test_a_card_without_lines_shows_that_the_model_works() -> None:
    card = json.loads(progress_card(RunContent("working", "Title", (), PHRASES)))
    assert card["body"]["elements"][0]["content"] == PHRASES("progress_thinking")


def test_a_text_begins_with_the_mark() -> None:
    text = progress_text(RunContent("working", "Title", ("☐ read",), PHRASES))
    assert text == f"{PROGRESS_MARK} Title\n☐ read"
    assert is_auxiliary("text", json.dumps({"text": text}))
