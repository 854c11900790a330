"""Replies and progress are rendered in formats that Lark accepts."""

import json
import re
from typing import Any

import pytest

from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.events.envelope import RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import PlanUpdated, SubflowProgress, ToolCompleted
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.plans import number_steps
from internal.agent.domain.text import truncate_line
from internal.channels.chat.displays.run_state import RunProgress
from internal.channels.chat.displays.subtask_states import SubtaskStates
from internal.channels.chat.transport import FileContent, RunContent, RunPhase, Thoughts
from internal.channels.lark.message_format import (
    MAX_FILE_BYTES,
    MAX_PICTURE_BYTES,
    MAX_RICH_BYTES,
    PROGRESS_MARK,
    AnswerExtras,
    byte_length,
    file_type,
    progress_card,
    progress_text,
    render_answer,
    render_file,
    send_uuid,
    split_bytes,
    truncate_bytes,
)
from internal.channels.lark.replies import is_auxiliary
from internal.i18n.chat import ChatPhrases
from internal.simulators.lark.cards.card_json import check_card
from tests.support.lark_markdown import as_shown, block_codes, codes, shown_tags
from tests.support.store_records import a_run

EN, ZH = ChatPhrases("en"), ChatPhrases("zh")


TAGS = (
    "<at id=all></at>", '<AT user_id="all"> </at>', "<person id=ou_1></person>",
    "<font color='red'>x</font>", "<text_tag color='red'>x</text_tag>", "<a href='http://e'>x</a>",
    "<button>Allow once</button>", "<local_datetime></local_datetime>", "<link url='http://e'>x</link>",
    "<number_tag>1</number_tag>", "<audio file_key='f'></audio>", "<record>", "<img src=x>", "<hr>",
    "<br/>", "<highlight>", "<raw>", "<div>\n\n", "<!-- x -->", "<?x?>", "<https://e.example>",
)  # fmt: skip


@pytest.mark.parametrize("tag", TAGS)
def test_tags_of_a_model_are_shown_as_text(tag: str) -> None:
    answer = f"Before {tag} after\n\n{tag}\n\n- {tag}\n\n| a |\n|---|\n| {tag.strip()} |\n"
    for name, parts in render_answer(answer, EN)[:-1]:  # the last one is a file
        content = json.loads(parts[0].content)
        for text in texts_of(content):
            if not name.endswith("card"):
                assert not re.search("<[a-z/!?]", text, re.IGNORECASE), name
            else:
                assert shown_tags(text) == [], name
                assert tag.split(maxsplit=1)[0].rstrip(">") in as_shown(text), name


def texts_of(content: Any) -> list[str]:
    """Return the texts of a message in which Lark finds markup, without its code blocks."""
    if isinstance(content, dict):
        own = [content[key] for key in ("content", "text") if isinstance(content.get(key), str)]
        is_code = content.get("tag") == "code_block"
        inner = [each for key, each in content.items() if key != "summary"]
        return [] if is_code else own + [t for each in inner for t in texts_of(each)]
    return [t for each in content for t in texts_of(each)] if isinstance(content, list) else []


def test_a_link_names_its_host_if_its_text_names_another_or_nothing() -> None:
    answer = (
        "[https://bank.example](https://evil.example) [](https://evil.example/x) [ok](http://a.b)"
    )
    shown = (
        "[https://bank.example](https://evil.example) (evil.example)"
        " [evil.example](https://evil.example/x) [ok](http://a.b)"
    )
    card = dict(render_answer(answer, EN))["card"][0]
    assert texts_of(json.loads(card.content))[0] == shown


def test_code_blocks_of_an_answer_are_sent_exactly() -> None:
    code = "echo '![x](y)' <at id=all></at> # [a](b)"
    answer = f"Run `{code}` or:\n\n1. this\n\n   ```sh\n   {code}\n   ```\n\n2. done"
    found = dict(render_answer(answer, EN))
    assert codes(texts_of(json.loads(found["card"][0].content))[0]) == [code, f"{code}\n"]
    post = json.loads(found["post"][0].content)["zh_cn"]["content"]
    assert {"tag": "code_block", "text": code} in [element for row in post for element in row]


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


def test_renderings_are_ordered_from_card_to_file() -> None:
    assert [name for name, _ in render_answer("hi", EN)] == ["card", "post", "text", "only-file"]
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    names = [name for name, _ in render_answer(table, EN)]
    assert names == ["card", "plain-card", "post", "text", "only-file"]
    long = render_answer("句子。" * 20_000, ZH)
    assert [name for name, _ in long] == ["file", "text"]
    post, file = long[0][1]
    assert byte_length(post.content) < MAX_RICH_BYTES
    assert file.file is not None
    assert file.file[1].decode() == "句子。" * 20_000
    assert all(byte_length(part.content) < 150 * 1024 for part in long[1][1])
    assert "".join(json.loads(part.content)["text"] for part in long[1][1]) == "句子。" * 20_000


def test_tables_over_the_limit_are_in_further_cards() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    for tables, per_card in ((3, [3]), (7, [3, 3, 1]), (14, [3, 3, 3, 3])):
        parts = render_answer(table * tables, EN)[0][1]
        shown = [texts_of(json.loads(part.content))[0] for part in parts]
        codes = 0 if tables < 13 else 2  # four cards are the most
        assert [text.count("| a |") - text.count("```") // 2 for text in shown] == per_card
        assert sum(text.count("```") for text in shown) == 2 * codes
        assert [part.tables for part in parts] == per_card
    heading = f"{table * 3}## Next\n\n{table}"
    first, second = render_answer(heading, EN)[0][1]
    assert "Next" not in first.content
    assert "Next" in second.content


def test_fenced_tables_are_code_in_one_card() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    fenced = "```\n" + table + "```\n"
    assert texts_of(json.loads(render_answer(fenced, EN)[0][1][0].content))[0] == fenced


def test_the_beginning_of_a_long_answer_may_end_inside_of_code() -> None:
    long = dict(render_answer("```\n" + "line\n" * 40_000, EN))["file"][0]
    assert block_codes(texts_of(json.loads(long.content))[0])[0].startswith("line\nline\n")
    [post] = long.alternatives
    *_, code, notice = json.loads(post.content)["zh_cn"]["content"]
    assert code[0]["tag"] == "code_block"
    assert "attached file" in notice[0]["text"]


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
    text_element = {"tag": "plain_text", "content": "☐ read\n✓ look"}
    assert card["body"]["elements"] == [{"tag": "div", "text": text_element}]
    assert is_auxiliary("interactive", text)


def test_a_card_without_lines_shows_that_the_model_works() -> None:
    card = json.loads(progress_card(RunContent("working", "Title", (), PHRASES)))
    assert card["body"]["elements"][0]["text"]["content"] == PHRASES("progress_thinking")


def test_a_card_of_a_run_has_a_button_that_stops_it() -> None:
    content = RunContent("awaiting_tasks", "Title", ("● task 1",), PHRASES, run_id="run-1")
    card = json.loads(progress_card(content))
    check_card(card)
    assert card["header"]["template"] == "blue"
    element = card["body"]["elements"][1]
    assert element["text"]["content"] == "Stop"
    assert element["behaviors"] == [{"type": "callback", "value": {"run": "run-1"}}]


def test_the_largest_card_is_accepted() -> None:
    progress, subtasks, step = RunProgress(), SubtaskStates(RunId("run-0")), '"' * 500
    plan = PlanUpdated(version=1, goal="g", complexity="complex", steps=number_steps([step] * 60))
    ids = RunIds(SessionId("session-1"), TaskId("task-0"), RunId("run-0"))
    progress.apply(plan.name, encode_envelope(wrap_event(ids, plan, "", 1)))
    for number in range(20):
        call = ToolCompleted(
            call_id=f"c{number}", tool_name=step, duration_ms=10_000,
            metadata={"configuration": [step]},
        )  # fmt: skip
        progress.apply(call.name, encode_envelope(wrap_event(ids, call, "", 1)))
    for number in range(1, 65):
        place = Subtask(ids.task_id, ids.run_id, "c", number, 64, step, step)
        run = a_run(f"run-{number}", status="running", subtask=place)
        subtasks.load([run])
        does = SubflowProgress(
            subtask_index=number, total_subtasks=64, completed=0, tokens=1, tool_calls=1,
            preview=step,
        )  # fmt: skip
        subtasks.apply(does.name, encode_envelope(wrap_event(RunIds.of(run), does, "", 1)))
    lines = progress.lines(PHRASES, subtasks.lines(PHRASES))
    content = RunContent("working", "Title", tuple(lines), PHRASES, footer="f", run_id="run-0")
    assert "and 56 more: 56 working" in lines
    assert len(json.dumps(progress_card(content), ensure_ascii=False).encode()) < 30 * 1024


@pytest.mark.parametrize("sign", ["x", '"', "\n", "想"])
def test_thoughts_are_folded_and_shortened_to_what_lark_accepts(sign: str) -> None:
    lines = ("☐ " + '"' * 160,) * 40
    content = RunContent("working", "Title", lines, PHRASES, thoughts=Thoughts(sign * 3_000, 0))
    text = progress_card(content)
    assert len(json.dumps(text, ensure_ascii=False).encode()) < 30 * 1024
    card = json.loads(text)
    check_card(card)
    panel = card["body"]["elements"][1]
    assert (panel["tag"], panel["expanded"]) == ("collapsible_panel", False)
    assert panel["header"]["title"] == {"tag": "plain_text", "content": "Thought for 1 s"}
    assert sign in panel["elements"][0]["text"]["content"]


def test_a_card_ends_with_the_footer_in_small_letters() -> None:
    content = RunContent("working", "Title", ("☐ read",), PHRASES, footer="isolated · no network")
    footer = json.loads(progress_card(content))["body"]["elements"][-1]["text"]
    assert footer["content"] == "isolated · no network"
    assert footer["text_size"] == "notation"


def test_a_text_begins_with_the_mark() -> None:
    text = progress_text(RunContent("working", "Title", ("☐ read",), PHRASES))
    assert text == f"{PROGRESS_MARK} Title\n☐ read"
    assert is_auxiliary("text", json.dumps({"text": text}))


@pytest.mark.parametrize("answer", ["hi", "句子。" * 8_000, "句子。" * 20_000])
def test_mentions_stand_before_the_answer_in_every_form(answer: str) -> None:
    plain = dict(render_answer(answer, EN))
    found = dict(render_answer(answer, EN, AnswerExtras(mentions=("ou_1", "ou_2"))))
    assert found.keys() == plain.keys()
    assert found.pop("only-file", None) == plain.get("only-file")
    for name, (first, *rest) in found.items():
        content = json.loads(first.content)
        assert rest == list(plain[name][1:])
        match first.kind:
            case "interactive":
                start = content["body"]["elements"][0]["content"]
                assert start == "<at id=ou_1></at> <at id=ou_2></at>"
            case "post":
                start = content["zh_cn"]["content"][0]
                assert start == [{"tag": "at", "user_id": each} for each in ("ou_1", "ou_2")]
            case _:
                start = '<at user_id="ou_1"></at> <at user_id="ou_2"></at>\n'
                assert content["text"].startswith(start)
        is_mentioning = ["ou_1" in form.content for form in (first, *first.alternatives)]
        assert is_mentioning == [True, False] * (len(is_mentioning) // 2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.PDF", "pdf"), ("a.xlsx", "xls"), ("a.mp4", "stream"), ("pdf", "stream")],
)
def test_the_type_of_a_file_is_told_by_its_name(name: str, expected: str) -> None:
    assert file_type(name) == expected


@pytest.mark.parametrize(
    ("media_type", "size", "forms"),
    [
        ("image/png", MAX_PICTURE_BYTES, ["picture", "file", "text"]),
        ("image/png", MAX_PICTURE_BYTES + 1, ["file", "text"]),
        ("image/svg+xml", 10, ["file", "text"]),
        ("image/png", MAX_FILE_BYTES + 1, ["text"]),
        ("image/png", 0, ["text"]),
    ],
)
def test_a_file_is_sent_in_the_forms_that_its_size_allows(
    media_type: str, size: int, forms: list[str]
) -> None:
    content = FileContent("chart", media_type, bytes(size), "chart (1 KB)")
    renderings = render_file(content)
    assert [name for name, _ in renderings] == forms
    assert renderings[-1][1][0].content == '{"text":"chart (1 KB)"}'
