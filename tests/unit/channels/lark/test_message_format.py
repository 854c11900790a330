"""What the Lark room decides without I/O: words, commands, gates, forms, progress."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
import pytest

from internal.agent.domain.chats import OutgoingMessage
from internal.agent.domain.events.envelope import RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.event import Event
from internal.agent.domain.events.types import (
    LifecycleUpdated,
    PlanUpdated,
    ResultFinal,
    ToolCompleted,
    ToolStarted,
)
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.plans import number_steps
from internal.agent.domain.tasks import STATUS_BY_STOP_REASON, StopReason
from internal.agent.domain.text import truncate_line
from internal.agent.domain.usage import Usage
from internal.channels.chat.command_parser import (
    Command,
    Name,
    Unknown,
    gives_code,
    help_text,
    read_command,
)
from internal.channels.chat.inbox_worker import scope_of
from internal.channels.chat.policy import (
    ChatRules,
    GroupRules,
    Hearing,
    Ignore,
    Note,
    Pass,
    in_question,
    judge,
)
from internal.channels.chat.run_state import Work
from internal.channels.lark.events import LarkMessage, LarkRecall, Mention, message_text, read_event
from internal.channels.lark.message_format import (
    MAX_RICH_BYTES,
    byte_length,
    render_answer,
    send_uuid,
    split_bytes,
    tables_as_code,
    truncate_bytes,
)
from internal.channels.lark.replies import is_aside, result_text
from internal.i18n.chat import (
    ChatPhrases,
)

BOT = "ou_bot"
NOW = datetime(2026, 1, 31, 8, 0, tzinfo=UTC)
EN, ZH = ChatPhrases("en"), ChatPhrases("zh")


def message(content: object, kind: str = "text", *mentions: Mention, **more: Any) -> LarkMessage:
    body = content if isinstance(content, str) else json.dumps(content)
    made = LarkMessage("om_1", "oc_1", True, kind, body, "ou_1", True, None, mentions)
    return made._replace(**more)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"text": "hello"}, "hello"),
        ({"text": "@_user_1 hi @_user_10 and @_user_2"}, "hi @Ten and @Two"),
        ({"text": "@_all hear"}, "@all hear"),
        ({"text": "@_user_77 who"}, "@_user_77 who"),
        ({"text": "  "}, ""),
        ({"text": None}, ""),
        ({"other": 1}, ""),
        ([1], ""),
        ("{", ""),
        ("", ""),
    ],
)
def test_a_text_is_read_with_its_mentions(content: object, said: str) -> None:
    mentions = (
        Mention("@_user_1", BOT, "Larkspur"),
        Mention("@_user_2", "ou_2", "Two"),
        Mention("@_user_10", "ou_10", "@_user_2"),
    )
    named = [each._replace(name="Ten") if each.key == "@_user_10" else each for each in mentions]
    assert message_text(message(content, "text", *named), BOT) == said


def test_a_name_that_looks_like_a_key_stays_a_name() -> None:
    mentions = (Mention("@_user_1", "ou_1", "_user_2\n#"), Mention("@_user_2", "ou_2", "Two"))
    said = message_text(message({"text": "@_user_1 @_user_2"}, "text", *mentions), BOT)
    assert said == "@_user_2 # @Two"


def test_a_post_becomes_markdown() -> None:
    content = {
        "title": "Plan",
        "content": [
            [
                {"tag": "text", "text": "bold ", "style": ["bold"]},
                {"tag": "a", "text": "here", "href": "https://a.example"},
                {"tag": "at", "user_id": "@_user_1", "user_name": "Larkspur"},
                {"tag": "at", "user_id": "@_user_2", "user_name": "Two"},
                {"tag": "at", "user_id": "all"},
            ],
            [{"tag": "img", "image_key": "k"}, {"tag": "emotion", "emoji_type": "SMILE"}],
            [{"tag": "code_block", "language": "PYTHON", "text": "x = 1"}],
            [{"tag": "hr"}, {"tag": "media"}, {"tag": "new", "text": "?"}, 7],
            "no row",
        ],
    }
    mentions = (Mention("@_user_1", BOT, "L"), Mention("@_user_2", "ou_2", "Two"))
    said = message_text(message(content, "post", *mentions), BOT)
    assert said is not None
    assert said.startswith("# Plan\n\n**bold **[here](https://a.example)@Two@all")
    assert "[image]:SMILE:" in said
    assert "```python\nx = 1\n```" in said
    assert "---" in said
    assert message_text(message({"zh_cn": content}, "post", *mentions), BOT) == said
    assert message_text(message({"content": "x", "title": 3}, "post"), BOT) == ""


def test_another_kind_has_no_words() -> None:
    assert message_text(message({}, "location"), BOT) is None


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"7", b'{"header": 1}', b"\xff"])
def test_what_is_no_event_is_refused(payload: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_event(payload)


def test_a_recall_names_the_message_and_not_its_event() -> None:
    event = {"message_id": "om_1", "chat_id": "oc_1", "recall_time": "1"}
    header = {"event_type": "im.message.recalled_v1", "event_id": "e1"}
    told = read_event(json.dumps({"header": header, "event": event}))
    assert told == LarkRecall("om_1", "oc_1")
    assert told.name == "recall:om_1"
    for broken in ({"message_id": "om_1"}, {"chat_id": "oc_1"}, {"message_id": 7}):
        with pytest.raises(msgspec.ValidationError):
            read_event(json.dumps({"header": header, "event": broken}))


def test_an_event_of_another_kind_is_none_whatever_it_holds() -> None:
    assert read_event(b'{"header": {"event_type": "x"}, "event": {"message": 7}}') is None


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/new", Command("new")),
        ("/NEW", Command("new")),
        ("/stop task-1", Command("stop", "task-1")),
        ("\uff0f帮助", Command("help")),
        ("/新会话", Command("new")),
        ("/状态", Command("status")),
        ("/taskfoo", Unknown("/taskfoo", "/tasks")),
        ("/xyzzy", Unknown("/xyzzy")),
        ("/approve 7Qa2-1", Command("approve", "7Qa2-1")),
        ("/同意", Command("approve")),
        ("/拒绝 不需要", Command("reject", "不需要")),
        ("/plan on", Command("plan", "on")),
        ("/配对 ABCD-2345", Command("pair", "ABCD-2345")),
        ("/newx", Unknown("/newx", "/new")),
        ("/etc/passwd is what?", None),
        ("/ new", None),
        ("new", None),
        ("say /new", None),
        ("/" + "x" * 40, None),
        ("", None),
    ],
)
def test_commands(text: str, command: object) -> None:
    assert read_command(text) == command


def test_help_names_every_command_in_its_language() -> None:
    assert all(f"`/{name}`" in help_text(EN, busy_mode="steer") for name in get_args(Name))
    assert "`/停止`" in help_text(ZH, busy_mode="queue")
    assert "takes its place" in help_text(EN, busy_mode="interrupt")


RULES = ChatRules(language="en")
HEARING = Hearing(bot=BOT, ours=False, received=NOW)


@pytest.mark.parametrize(
    ("changed", "rules", "verdict"),
    [
        ({}, RULES, Pass),
        ({"by_person": False}, RULES, Ignore),
        ({"open_id": BOT}, RULES, Ignore),
        ({"open_id": ""}, RULES, Ignore),
        ({}, replace(RULES, allow_direct=False), Ignore),
        ({"direct": False}, RULES, Ignore),
        ({"direct": False}, replace(RULES, group_policy="open"), Pass),
        ({"direct": False}, replace(RULES, group_policy="open", allow_groups=False), Ignore),
        ({"direct": False, "mentions": (Mention("@_user_1", BOT, "L"),)}, RULES, Pass),
        ({"direct": False, "mentions": (Mention("@_user_1", "ou_9", "N"),)}, RULES, Ignore),
        ({"content": "{}"}, RULES, Ignore),
        ({"kind": "sticker"}, RULES, Note),
        ({}, replace(RULES, talk=()), Note),
        ({}, replace(RULES, talk=("ou_1",)), Pass),
        ({}, replace(RULES, talk=("oc_1",)), Pass),
        ({"created": 0}, RULES, Note),
        ({"created": int(NOW.timestamp() * 1000) - 60 * 60_000}, RULES, Pass),
        ({"created": int(NOW.timestamp() * 1000) + 999_000}, RULES, Pass),
        ({"content": json.dumps({"text": "x" * 200_001})}, RULES, Note),
    ],
)
def test_gates(changed: dict[str, Any], rules: ChatRules, verdict: type) -> None:
    judged = judge(message({"text": "hi"})._replace(**changed), rules, "cli_1", HEARING)
    assert type(judged) is verdict


IN_THREAD: dict[str, Any] = {"direct": False, "thread_id": "omt_1"}
TO_US: dict[str, Any] = {"direct": False, "mentions": (Mention("@_user_1", BOT, "L"),)}


@pytest.mark.parametrize(
    ("changed", "group", "ours", "verdict"),
    [
        (IN_THREAD, GroupRules("thread"), True, Pass),
        (IN_THREAD, GroupRules("thread"), False, Ignore),
        (IN_THREAD, GroupRules("mention"), True, Ignore),
        (TO_US, GroupRules("thread"), False, Pass),
        (TO_US, GroupRules("off"), True, Ignore),
        ({"direct": False}, GroupRules("open"), False, Pass),
        (TO_US, GroupRules(talk=("ou_9",)), False, Note),
        (TO_US, GroupRules(talk=("oc_1",)), False, Pass),
    ],
)
def test_a_group_has_rules_of_its_own(
    changed: dict[str, Any], group: GroupRules, ours: bool, verdict: type
) -> None:
    rules = replace(RULES, groups={"oc_1": group})
    heard = message({"text": "hi"})._replace(**changed)
    assert type(judge(heard, rules, "cli_1", HEARING._replace(ours=ours))) is verdict
    elsewhere = heard._replace(chat_id="oc_2", **TO_US)
    assert type(judge(elsewhere, rules, "cli_1", HEARING)) is Pass


@pytest.mark.parametrize(
    ("changed", "matters"),
    [
        (IN_THREAD, True),
        ({"direct": False}, False),
        ({**IN_THREAD, "direct": True}, False),
        ({**IN_THREAD, **TO_US}, False),
        ({**IN_THREAD, "chat_id": "oc_2"}, False),
    ],
)
def test_a_thread_is_looked_at_where_it_matters(changed: dict[str, Any], matters: bool) -> None:
    rules = replace(RULES, groups={"oc_1": GroupRules("thread")})
    assert in_question(message({"text": "hi"})._replace(**changed), rules, BOT) is matters


def test_a_group_has_lists_of_its_own() -> None:
    groups = {"oc_1": GroupRules(operate=("ou_2",)), "oc_2": GroupRules(talk=())}
    rules = replace(RULES, operate=("ou_1",), groups=groups)
    assert rules.rights("ou_1", "oc_1") == {"talk"}
    assert rules.rights("ou_2", "oc_1") == {"talk", "operate"}
    assert rules.rights("ou_1", "oc_2") == {"operate"}
    assert rules.rights("ou_1", "oc_3") == {"talk", "operate"}
    assert replace(rules, operate=("oc_4",)).rights("ou_9", "oc_4") == {"talk", "operate"}


def test_who_may_not_talk_may_still_give_a_code() -> None:
    rules = replace(RULES, talk=())
    for text, verdict in (("/pair ABCD", Pass), ("/help", Note), ("pair", Note)):
        assert gives_code(text) is (verdict is Pass)
        assert type(judge(message({"text": text}), rules, "cli_1", HEARING)) is verdict
    given = HEARING._replace(given=frozenset({"talk"}))
    assert type(judge(message({"text": "hi"}), rules, "cli_1", given)) is Pass


def test_a_person_of_lark_has_the_rights_of_the_lists() -> None:
    judged = judge(message({"text": "hi"}), replace(RULES, operate=("ou_1",)), "cli_1", HEARING)
    assert isinstance(judged, Pass)
    assert judged.principal.id == "lark:cli_1:ou_1"
    assert judged.principal.may("operate")
    assert not judged.principal.may("owner")


def test_the_scope_of_a_chat_is_29_characters() -> None:
    assert scope_of("oc_1") == scope_of("oc_1") != scope_of("oc_2")
    assert len(scope_of("oc_1")) == 29
    assert scope_of("oc_1").startswith("lark-")


def test_nobody_is_called_and_nothing_fetched_by_what_a_model_writes() -> None:
    answer = '<at id=all></at> <AT user_id="all"> </at> ![x](https://evil.example/a.png) <b>'
    for name, parts in render_answer(answer, EN):
        content = json.loads(parts[0].content)
        text = json.dumps(content, ensure_ascii=False)
        assert "<at" not in text.lower(), name
        assert "![" not in text
        assert "https://evil.example/a.png" in text


def test_forms_fall_from_card_to_text() -> None:
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


def test_uuids_are_short_and_differ() -> None:
    names = {send_uuid("run-1:answer", form, n) for form in ("card", "post") for n in (0, 1)}
    assert len(names) == 4
    assert {len(name) for name in names} == {40}


def test_text_is_cut_at_sentences_and_never_inside_a_character() -> None:
    assert truncate_bytes("短句。" * 10, 20) == "短句。短句。"
    assert truncate_bytes("no end here", 5) == "no en"
    assert truncate_bytes("\U0001f600" * 3, 5) == "\U0001f600"
    assert "".join(split_bytes("a b. " * 100, 64)).replace(" ", "") == "ab." * 100
    assert split_bytes("  ", 10) == []
    assert truncate_line("a  b\nc", 4) == "a b…"


@pytest.mark.parametrize("reason", get_args(StopReason))
@pytest.mark.parametrize("said", [EN, ZH], ids=["en", "zh"])
def test_every_end_reads_like_a_person_wrote_it(reason: StopReason, said: ChatPhrases) -> None:
    for body in ("", "an answer"):
        outgoing = OutgoingMessage("k", "lark", "a", "c", "m", body, "run-1", reason, "RAW ERROR")
        text = result_text(outgoing, said, "model_busy")
        assert text
        assert body in text
        assert "RAW" not in text
        if STATUS_BY_STOP_REASON[reason] in {"failed", "cancelled"} or reason == "max_iterations":
            assert "run-1" in text


def test_an_unknown_failure_still_has_a_sentence() -> None:
    assert "run-1" in EN.failure("never_heard_of", "run-1") == EN.failure("", "run-1")


@pytest.mark.parametrize(
    ("kind", "content", "progress"),
    [
        ("interactive", '{"header": {"title": {}}, "body": {}}', True),
        ("interactive", '{"title": "Working", "elements": []}', True),
        ("interactive", '{"body": {}}', False),
        ("text", '{"text": "⏳\u200b Working"}', True),
        ("text", '{"text": "Working"}', False),
        ("text", "no json", False),
        ("post", "[]", False),
    ],
)
def test_progress_is_told_from_answers(kind: str, content: str, progress: bool) -> None:
    assert is_aside(kind, content) is progress


def test_work_is_folded_from_events() -> None:
    work = Work()
    assert not work.worth_showing
    take(work, LifecycleUpdated(status="running", phase="prepare"))
    assert work.title(EN) == "Working"
    steps = number_steps(["read *all* of it", "tell"])
    take(work, PlanUpdated(version=1, goal="g", complexity="simple", steps=steps))
    for number in range(20):
        take(
            work,
            ToolStarted(
                call_id=f"c{number}",
                tool_name="read_file",
                arguments={"path": "secret"},
                iteration=1,
                risk="read",
            ),
        )
    take(work, ToolCompleted(call_id="c19", tool_name="read_file", duration_ms=1, error="no"))
    lines = work.lines(EN)
    assert lines[0] == "☐ read \\*all\\* of it"
    assert "… and" in "".join(lines)
    assert lines[-1] == "✗ Reads a file"
    assert "secret" not in "".join(lines)
    over = [work.over]
    take(work, LifecycleUpdated(status="completed", phase="persist"))
    final = ResultFinal(
        final_answer="x",
        stop_reason="final_answer",
        total_iterations=1,
        usage=Usage(),
        duration_ms=1,
    )
    take(work, final)
    assert [*over, work.over] == [False, True]
    assert work.title(ZH) == "已完成"
    assert EN.tool("never_heard_of") == "Uses never_heard_of"


def take(work: Work, event: Event) -> None:
    ids = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))
    work.take(event.name, encode_envelope(wrap_event(ids, event, "2026-01-31T08:00:00.000Z", 1)))
