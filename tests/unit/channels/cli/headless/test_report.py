"""The report of a one-shot run, from real envelopes."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from internal.agent.domain.artifacts import ManifestEntry
from internal.agent.domain.delegation.reports import REPORT_INSTRUCTION
from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.events.control import Connected, ControlFrame, Heartbeat
from internal.agent.domain.events.envelope import RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import (
    ArtifactManifest,
    DiagnosticError,
    Event,
    InputReceived,
    LifecycleUpdated,
    ModelRetry,
    Notice,
    OutputDelta,
    OutputSummary,
    QuestionAnswered,
    QuestionAsked,
    ResultCancelled,
    ResultFinal,
    TaskDispatched,
    ToolCompleted,
)
from internal.agent.domain.ids import ArtifactId, RunId, SessionId, TaskId
from internal.agent.domain.plans import Plan, number_steps
from internal.agent.domain.questions import ApprovalItem, QuestionKind
from internal.agent.domain.tasks import Status, StopReason
from internal.agent.domain.usage import Usage
from internal.channels.cli.headless.report import REPORT_TASK, RunReport
from internal.channels.cli.task_request import Format, Ids
from internal.channels.web.sse import render_control
from internal.i18n.runs import RunMessages

OURS = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))
OTHERS = RunIds(SessionId("session-1"), TaskId("task-2"), RunId("run-2"))
CHILD = RunIds(
    OURS.session_id, OURS.task_id, RunId("run-3"), OURS.run_id, correlation_id=OURS.run_id
)
IDS = Ids("session-1", "task-1", "run-1")


def enveloped(event: Event, run: RunIds = OURS, seq: int | None = 1) -> bytes:
    return encode_envelope(wrap_event(run, event, "2026-01-31T08:00:00.000Z", seq))


def final(reason: StopReason = "final_answer", text: str = "done", **more: Any) -> ResultFinal:
    return ResultFinal(
        final_answer=text,
        stop_reason=reason,
        total_iterations=1,
        usage=Usage(3, 4),
        duration_ms=5,
        **more,
    )


def told(output: Format, *events: Event, signalled: int | None = None) -> tuple[int, str]:
    report = RunReport(output, IDS)
    report.begin({})
    for seq, event in enumerate(events, 1):
        report.add_event(f"abc-{seq}", enveloped(event, seq=seq))
    assert report.has_ended
    code, last = report.result(signalled)
    return code, (report.take_lines() + last).decode()


DENIED = ToolCompleted(
    call_id="c1",
    tool_name="shell",
    duration_ms=0,
    error="shell needs a person.",
    metadata={"denied": True, "rules": ["shell(echo 'a')"]},
)
CANCELLED = ResultCancelled(reason="stopped", requested_by="local", requested_via="cli")


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("final_answer", 0),
        ("max_iterations", 5),
        ("max_output", 5),
        ("timeout", 5),
        ("budget_exceeded", 5),
        ("interrupted", 1),
        ("error", 1),
    ],
)
def test_exit_code_follows_the_stop_reason(reason: StopReason, code: int) -> None:
    assert told("text", final(reason)) == (code, "done\n")


def test_wait_for_the_model_is_a_message_at_once() -> None:
    report = RunReport("text", IDS)
    retry = ModelRetry(node_id="iter:1:say", reason="overloaded", seconds=8, attempt=3)
    report.add_event("abc-1", enveloped(retry))
    expected = ["The model is overloaded, retrying in 8 s (attempt 3)"]
    assert [report.take_notices(), report.take_notices()] == [expected, []]


def test_a_command_that_ended_with_an_error_is_a_message_at_once() -> None:
    report = RunReport("text", IDS)
    for seq, code in enumerate((0, 3), 1):
        ended = ToolCompleted(
            call_id=f"c{code}", tool_name="shell", duration_ms=1, metadata={"exit_code": code}
        )
        report.add_event(f"abc-{seq}", enveloped(ended, seq=seq))
    assert report.take_notices() == ["shell failed: exit 3"]


def test_another_model_than_the_chosen_one_is_named() -> None:
    report = RunReport("text", IDS)
    ended = final(model="second", instead_of="first")
    report.add_event("abc-1", enveloped(ended))
    assert report.take_notices() == [RunMessages("en").answered_by("second", "first")]


def test_thoughts_are_told_for_a_person_who_watches() -> None:
    report = RunReport("text", IDS)
    summary = OutputSummary(
        node_id="iter:1:say", iteration=1, content="done", tool_call_count=0, llm_duration_ms=1,
        llm_request_id="", llm_model="m", usage=Usage(), thinking="hm", thinking_ms=12_300,
    )  # fmt: skip
    report.add_event("abc-1", enveloped(summary))
    assert [report.take_asides(), report.take_asides()] == [["Thought for 12s"], []]
    assert report.take_notices() == []
    report.add_event("abc-2", enveloped(final(), seq=2))
    assert report.result() == (0, b"done\n")


def test_where_the_files_of_a_session_are_is_a_message_at_once() -> None:
    report = RunReport("text", IDS)
    report.add_event("abc-1", enveloped(DiagnosticError(phase="queue", error="inner"), seq=1))
    report.add_event("abc-2", enveloped(Notice(about="host", text="about the host"), seq=2))
    assert report.take_notices() == ["about the host"]


def test_text_is_only_the_answer() -> None:
    events = [InputReceived(task="hi", channel="cli", sender="local"), final(text="zwölf 点\n")]
    assert told("text", *events) == (0, "zwölf 点\n")
    assert told("text", final(text="")) == (0, "")


def test_lone_surrogate_is_replaced() -> None:
    report = RunReport("text", IDS)
    report.add_event("abc-1", enveloped(final(text="a?b")).replace(b"a?b", rb"a\udc00b"))
    assert report.result() == (0, "a\ufffdb\n".encode())


def test_completed_run_with_a_denied_call_exits_with_4() -> None:
    code, text = told("json", DENIED, final())
    assert code == 4
    denied = {"call_id": "c1", "tool_name": "shell", "rules": ["shell(echo 'a')"]}
    assert json.loads(text)["denied"] == [{**denied, "error": "shell needs a person."}]


def test_calls_that_were_not_run_are_named_and_change_no_exit_code() -> None:
    metadata = {"not_run": "plan", "what": "write_file\npath: a.txt"}
    missed = msgspec.structs.replace(DENIED, tool_name="write_file", metadata=metadata)
    last = msgspec.structs.replace(final(), calls_not_run=1)
    code, text = told("json", missed, last)
    call = {"call_id": "c1", "tool": "write_file", "what": metadata["what"], "reason": "plan"}
    assert (code, json.loads(text)["not_run"]) == (0, [call])
    report = RunReport("text", IDS)
    for number, event in enumerate((missed, last)):
        report.add_event(f"abc-{number}", enveloped(event))
    assert report.messages() == [
        "Not run: write_file. The agent had not made a plan.",
        "The run is completed, 1 call was not run.",
    ]


def test_rule_of_a_denied_call_is_quoted_for_a_shell() -> None:
    report = RunReport("text", IDS)
    report.add_event("abc-1", enveloped(DENIED))
    assert report.messages() == [
        "Denied: shell needs a person.\n  to allow it: --allow 'shell(echo '\\''a'\\'')'"
    ]


def test_all_rules_of_a_denied_call_are_named() -> None:
    report = RunReport("text", IDS)
    rules = {"denied": True, "rules": ["a(b)", "c(d)"]}
    report.add_event("abc-1", enveloped(msgspec.structs.replace(DENIED, metadata=rules)))
    (remark,) = report.messages()
    assert remark.endswith("  to allow it: --allow 'a(b)' --allow 'c(d)'")


def test_rejected_model_key_exits_with_3() -> None:
    report = RunReport("text", IDS)
    coded = b'"error_code":"model_key_refused","final_answer"'
    envelope = enveloped(final("error", "", error="No."))
    report.add_event("abc-1", envelope.replace(b'"final_answer"', coded))
    assert report.result() == (3, b"")
    sentence, hint = RunMessages("en").ended("error", "model_key_refused"), "larkspur models key"
    assert report.messages() == [sentence, "  No.", f"To enter another key: {hint}"]


def test_cancelled_run_never_exits_with_0() -> None:
    stopped = LifecycleUpdated(status="cancelled", phase="stop", stop_reason="user_stop")
    rejected = LifecycleUpdated(status="cancelled", phase="stop", stop_reason="rejected")
    assert told("text", stopped, CANCELLED)[0] == 1
    assert told("text", CANCELLED)[0] == 1
    assert told("text", rejected, CANCELLED)[0] == 4
    assert told("text", stopped, CANCELLED, signalled=130) == (130, "")


def asks(kind: QuestionKind, **more: Any) -> QuestionAsked:
    facts = {"title": "Which?", "body": "", "options": (), "expires_at": "2026-02-01T08:00:00.000Z"}
    return QuestionAsked(question_id="question-1", kind=kind, **{**facts, **more})


WAITING = LifecycleUpdated(status="waiting", phase="execute", stop_reason="await_user_input")


def remarks_of(asked: QuestionAsked) -> list[str]:
    report = RunReport("text", IDS)
    report.add_event("abc-1", enveloped(asked))
    assert not report.has_ended
    report.add_event("abc-2", enveloped(WAITING, seq=2))
    assert report.result() == (6, b"")
    first, question = report.messages()
    assert first == "Task 1 is waiting for an answer."
    return question.splitlines()


def test_waiting_run_exits_with_6_and_names_the_answer_command() -> None:
    assert remarks_of(asks("clarify", body="of these", options=("red", "green"))) == [
        "? Which?",
        "  of these",
        "  1. red",
        "  2. green",
        "  larkspur answer 1 1",
        '  instead of 1: "your answer"',
    ]
    assert remarks_of(asks("clarify", options=("a", "b"), multiple=True))[-2:] == [
        "  larkspur answer 1 1,2",
        '  instead of 1,2: "your answer"',
    ]
    # without options the only answer is a text, quoted as a shell needs it
    assert remarks_of(asks("clarify"))[-1] == '  larkspur answer 1 "your answer"'


def test_waiting_plan_is_shown_with_its_steps() -> None:
    plan = Plan(1, "report", "complex", number_steps(["collect", "write"]))
    assert remarks_of(asks("plan", title="Go?", plan=plan)) == [
        "? Go?",
        "  report",
        "  1. collect",
        "  2. write",
        "  larkspur answer 1 yes",
        '  instead of yes: no · "what should change" · edit --steps FILE',
    ]


def test_calls_that_need_approval_are_shown() -> None:
    long = "\n".join(f"line {n}" for n in range(50))
    calls = (
        ApprovalItem("c1", "shell", "rm -r x", "exec", "no rule", "h", ("shell(rm -r x)",)),
        ApprovalItem("c2", "write_file", "write_file {}", "write", "", "h", (), diff=long),
    )
    first, one, command, two, *change, more, how, others = remarks_of(
        asks("approval", title="Allow 2 calls?", calls=calls)
    )
    assert (first, one, command) == (
        "? Allow 2 calls?",
        "  1. shell (exec): no rule",
        "    rm -r x",
    )
    assert (two, len(change), more) == ("  2. write_file (write)", 40, "    … 10 more lines")
    # a rule may not allow the second, so it is not offered for both
    assert how == "  larkspur answer 1 yes"
    assert others == '  instead of yes: no · "no because …" · no --item 1=yes'
    assert ": session · rule · " in remarks_of(asks("approval", calls=calls[:1]))[-1]


def test_json_has_the_open_questions() -> None:
    asked = asks("clarify", options=("red",))
    code, text = told("json", asked, WAITING)
    named = {"question_id": "question-1", "kind": "clarify", "title": "Which?", "options": ["red"]}
    assert (code, json.loads(text)["questions"]) == (6, [named])
    answered = QuestionAnswered(
        question_id="question-1", decision="text", answered_by="local", answered_via="web"
    )
    code, text = told("json", asked, answered, final())
    assert (code, json.loads(text)["questions"]) == (0, [])


def test_json_is_one_object() -> None:
    code, text = told("json", final("error", "", cost=0.5, error="The model is gone."))
    assert text.count("\n") == 1
    assert json.loads(text) == {
        "status": "failed",
        "stop_reason": "error",
        "text": "",
        "usage": {
            "input_tokens": 3,
            "output_tokens": 4,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
        },
        "cost": 0.5,
        "duration_ms": 5,
        "error": "The model is gone.",
        "session_id": "session-1",
        "task_id": "task-1",
        "run_id": "run-1",
        "denied": [],
        "not_run": [],
        "questions": [],
        "files": [],
        "exit_code": 1,
    }
    assert code == 1


def test_stream_json_has_the_bytes_of_the_envelopes() -> None:
    report = RunReport("stream-json", IDS)
    report.begin({"model": "m"})
    delta = enveloped(OutputDelta(node_id="iter:1:say", k=1, n=1, text="d"), seq=None)
    last = enveloped(final(), seq=2)
    report.add_event("", delta)
    report.add_event("abc-7", last)
    first, *rows = report.take_lines().splitlines()
    assert json.loads(first) == {"type": "init", **IDS._asdict(), "model": "m"}
    assert rows == [b'{"event":' + delta + b"}", b'{"id":"abc-7","event":' + last + b"}"]
    assert json.loads(report.result()[1])["type"] == "result"


def test_events_of_other_runs_are_skipped_except_subagents() -> None:
    report = RunReport("stream-json", IDS)
    report.add_event("abc-1", enveloped(final(), OTHERS))
    shown = enveloped(final(), CHILD)
    report.add_event("abc-2", shown)
    assert not report.has_ended
    assert report.take_lines() == b'{"id":"abc-2","event":' + shown + b"}\n"


@pytest.mark.parametrize(
    "control",
    [
        Heartbeat(t="2026-01-31T08:00:00.000Z", head="abc-1"),
        Connected(
            session_id="session-1",
            head="abc-1",
            earliest="abc-1",
            active_run_id="run-1",
            server_version="1",
        ),
    ],
)
def test_stream_control_is_skipped(control: ControlFrame) -> None:
    report = RunReport("stream-json", IDS)
    report.add_event("", render_control(control).partition(b"data: ")[2])
    assert report.take_lines() == b""


def test_truncated_answer_is_replaced() -> None:
    report = RunReport("text", IDS)
    report.add_event("abc-1", enveloped(final(text="x" * 10_001)))
    assert report.is_truncated
    report.set_answer("whole")
    assert report.result() == (0, b"whole\n")


def test_detached_task_prints_its_id() -> None:
    assert RunReport("text", IDS).format_queued() == b"task-1\n"
    told = json.loads(RunReport("json", IDS).format_queued())
    assert (told["status"], told["task_id"]) == ("queued", "task-1")


def manifest(*versions: int, omitted: int = 0) -> ArtifactManifest:
    files = [
        ManifestEntry(
            ArtifactId(f"artifact-{version}"),
            "report.md",
            version,
            "text",
            "text/markdown",
            "ab",
            2_048,
            "attachment:ab",
        )
        for version in versions
    ]
    return ArtifactManifest(
        artifacts=tuple(files), call_id="c1", source_tool="shell", omitted=omitted
    )


def test_produced_files_are_listed_with_their_newest_version() -> None:
    _, out = told("json", manifest(1), manifest(2), final())
    [file] = json.loads(out)["files"]
    assert (file["artifact_id"], file["size"], file["path"]) == ("artifact-2", 2_048, None)


def test_produced_files_are_named_with_their_place() -> None:
    report = RunReport("text", IDS, lambda *about: "/".join(map(str, about)))
    report.add_event("abc-1", enveloped(manifest(1, omitted=3)))
    assert report.messages()[:2] == [
        "File: report.md (2.0 KB)  session-1/report.md/2048",
        "3 more new files were not kept.",
    ]
    elsewhere = RunReport("text", IDS)
    elsewhere.add_event("abc-1", enveloped(manifest(1)))
    assert elsewhere.messages()[0].endswith("  larkspur files get artifact-1")


def test_the_task_of_a_report_is_recognized() -> None:
    assert REPORT_TASK == REPORT_INSTRUCTION


def status(of: Status, reason: StopReason | UnsetType = UNSET) -> LifecycleUpdated:
    return LifecycleUpdated(status=of, phase="execute", stop_reason=reason)


def test_a_queued_subtask_that_depends_on_a_waiting_one_does_not_go_on() -> None:
    report = RunReport("text", IDS)
    first, second = subtask_ids(1), subtask_ids(2)
    steps: list[tuple[Event, RunIds]] = [
        (status("running"), OURS),
        (status("queued"), second),
        (dispatched(first), OURS),
        (status("running"), first),
        (status("waiting", "await_tasks"), OURS),
        (asks("clarify"), first),
        (status("waiting", "await_user_input"), first),
    ]
    for number, (event, ids) in enumerate(steps):
        report.add_event(f"{number}", enveloped(event, ids))
    assert not report.is_waiting
    report.add_event("9", enveloped(dispatched(second, first.task_id)))
    assert (report.is_waiting, report.has_ended) == (True, True)
    assert not report.resume({"question-1"})
    assert report.resume(())
    assert not report.has_ended


def subtask_ids(number: int) -> RunIds:
    place = Subtask(OURS.task_id, OURS.run_id, "call-1", number, 2, "reader", "read")
    return RunIds(
        OURS.session_id,
        TaskId(f"task-s{number}"),
        RunId(f"run-s{number}"),
        OURS.run_id,
        subtask=place,
        correlation_id=OURS.run_id,
    )


def dispatched(ids: RunIds, *depends_on: TaskId) -> TaskDispatched:
    return TaskDispatched(
        task_id=ids.task_id,
        call_id="call-1",
        number=1,
        total=2,
        instruction="read",
        profile="",
        role="reader",
        depends_on=depends_on,
    )
