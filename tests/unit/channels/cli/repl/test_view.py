"""The events of a session as printed rows and live rows."""

import json
from typing import Any

from internal.channels.cli.render.text import Fragments, cell_width, plain_text
from internal.channels.cli.render.theme import UNICODE
from internal.channels.cli.repl.view import TranscriptView
from internal.i18n.catalog import MessageCatalog
from internal.i18n.runs import RunMessages

WIDTH = 60
RESULT = {
    "final_answer": "",
    "stop_reason": "final_answer",
    "usage": {"input_tokens": 10, "output_tokens": 2},
    "duration_ms": 500,
}
QUESTION = {
    "question_id": "question-1",
    "kind": "approval",
    "title": "?",
    "calls": [
        {"call_id": "call-1", "tool": "shell", "what": "rm x", "risk": "exec", "reason": "r"}
    ],
}


def new_view(*, asks: bool = True) -> TranscriptView:
    return TranscriptView(MessageCatalog("repl", "en"), UNICODE, asks=asks)


def add(view: TranscriptView, name: str, payload: dict[str, Any], **more: Any) -> None:
    event = {
        "event": name,
        "run_id": "run-1",
        "task_id": "task-1",
        "timestamp": "2026-01-02T03:04:05Z",
        "payload": payload,
        **more,
    }
    view.add_event(json.dumps(event).encode())


def start(view: TranscriptView) -> None:
    add(view, "workflow.lifecycle.updated", {"status": "running"})


def stream(view: TranscriptView, text: str, k: int = 1) -> None:
    add(view, "workflow.node.output.delta", {"node_id": "1:say", "text": text, "k": k, "n": 1})


def think(view: TranscriptView, k: int = 1) -> None:
    thought = {"node_id": "1:think", "text": "hm", "k": k, "n": 1, "reasoning": True}
    add(view, "workflow.node.output.delta", thought)


def use_tool(view: TranscriptView, result: str = "out", call_id: str = "call-1") -> None:
    call = {"call_id": call_id, "tool_name": "shell"}
    add(view, "workflow.tool.started", {**call, "arguments": {"command": "ls"}})
    done = {**call, "result": result, "duration_ms": 100, "metadata": {}}
    add(view, "workflow.tool.completed", done)


def shown(rows: list[Fragments]) -> list[str]:
    return [plain_text(row) for row in rows]


def printed(view: TranscriptView) -> list[str]:
    return shown(view.take_rows(WIDTH)[0])


def test_a_reply_is_live_until_its_summary_prints_it_once() -> None:
    view = new_view()
    start(view)
    stream(view, "Hello")
    assert [shown(rows) for rows in view.take_rows(WIDTH)] == [[], ["● Hello"]]
    usage = {"input_tokens": 3, "output_tokens": 2}
    summary = {"node_id": "1:say", "content": "Hello world", "usage": usage}
    add(view, "workflow.node.output.summary", summary)
    assert [shown(rows) for rows in view.take_rows(WIDTH)] == [["● Hello world"], []]
    assert view.current is not None
    assert view.current.tokens == 5
    add(view, "workflow.result.final", {**RESULT, "final_answer": "Hello world"})
    assert printed(view) == ["", "✓ 0.5s · 10 in 2 out"]
    assert view.current is None


def test_an_answer_that_was_not_streamed_is_printed() -> None:
    view = new_view()
    start(view)
    add(view, "workflow.result.final", {**RESULT, "final_answer": "All done."})
    assert printed(view) == ["● All done.", "", "✓ 0.5s · 10 in 2 out"]


def test_rows_that_arrive_during_a_reply_are_printed_after_it() -> None:
    view = new_view()
    start(view)
    stream(view, "Look")
    use_tool(view)
    final, live = view.take_rows(WIDTH)
    assert final == []
    assert shown(live)[0] == "● Look"
    summary = {"node_id": "1:say", "content": "Look", "usage": {}}
    add(view, "workflow.node.output.summary", summary)
    rows = printed(view)
    assert rows[0] == "● Look"
    assert rows[-1].startswith("✓ shell  ls")
    assert view.output == ("shell", "out")


def test_a_restarted_reply_is_announced() -> None:
    view = new_view()
    start(view)
    stream(view, "word " * 200)
    assert printed(view)
    add(view, "partial", {"node_id": "1:say", "text": "", "k": 0})
    assert "The connection to the model broke" in "\n".join(printed(view))


def test_text_that_this_terminal_sent_is_shown_once() -> None:
    view = new_view()
    view.add_sent("do it")
    received = {"task": "do it", "channel": "cli"}
    add(view, "workflow.input.received", received)
    assert printed(view) == ["> do it"]
    add(view, "workflow.input.received", received)
    assert printed(view) == ["", "> do it"]


def test_text_of_another_channel_names_the_channel() -> None:
    view = new_view()
    add(view, "workflow.input.received", {"task": "do it", "channel": "lark"})
    assert printed(view) == ["> do it  lark"]


def add_of_subtask(
    view: TranscriptView, name: str, payload: dict[str, Any], number: int = 2
) -> None:
    ids = {"run_id": f"run-{number}", "task_id": f"task-{number}", "subtask_index": number}
    add(view, name, payload, is_subtask=True, **ids)


def created(number: int, role: str) -> dict[str, Any]:
    return {"task_id": f"task-{number}", "number": number, "role": role}


def live_rows(view: TranscriptView, width: int = WIDTH) -> list[str]:
    return shown(view.take_rows(width)[1])


def test_a_subtask_has_a_live_row_and_one_at_its_end() -> None:
    view = new_view()
    start(view)
    add(view, "background.task.dispatched", created(2, "analyst"))
    add_of_subtask(view, "workflow.lifecycle.updated", {"status": "running"})
    stream(view, "the answer ")
    add_of_subtask(
        view, "workflow.node.output.delta", {"node_id": "1:say", "text": "x", "k": 1, "n": 1}
    )
    add_of_subtask(view, "workflow.subflow.progress", {"preview": "reads prices"})
    assert live_rows(view)[-1] == "  ├ task 2 · analyst  ◆ reads prices"
    add_of_subtask(view, "workflow.result.final", RESULT | {"duration_ms": 14_000})
    final, tail = (shown(rows) for rows in view.take_rows(WIDTH))
    assert final + tail == ["● the answer", "  ├ task 2 · analyst  ✓ 14s"]


def test_a_subtask_is_named_by_its_role_as_soon_as_that_is_known() -> None:
    view = new_view()
    add_of_subtask(view, "workflow.lifecycle.updated", {"status": "running"})
    assert live_rows(view) == ["  ├ task 2  ◆"]
    add(view, "background.task.dispatched", created(2, "analyst"))
    assert live_rows(view) == ["  ├ task 2 · analyst  ◆"]


def test_subtasks_of_a_subtask_are_indented_below_it() -> None:
    view = new_view()
    for number in (2, 3):
        add(view, "background.task.dispatched", created(number, "lead"))
    for number in (3, 4, 2):
        add_of_subtask(view, "workflow.lifecycle.updated", {"status": "running"}, number)
    add_of_subtask(view, "background.task.dispatched", created(4, "reader"), 2)
    lead, reader, other = live_rows(view)
    assert lead == "  ├ task 2 · lead  ◆"
    assert reader == "    ├ task 4 · reader  ◆"
    assert other == "  ├ task 3 · lead  ◆"
    add_of_subtask(view, "workflow.result.final", RESULT, 4)
    assert printed(view) == ["    ├ task 4 · reader  ✓ 0.5s"]


def test_a_live_row_of_a_subtask_stays_one_row() -> None:
    view = new_view()
    add(view, "background.task.dispatched", created(2, "reader of the yearly reports"))
    add_of_subtask(view, "workflow.subflow.progress", {"preview": "fetch_page 报告 " * 9})
    for width in (20, 40, 80):
        (row,) = live_rows(view, width)
        assert row.startswith("  ├ task 2")
        assert cell_width(row) <= width
    assert "◆ fetch_p" in live_rows(view, 40)[0]


def test_the_row_of_a_failed_subtask_says_why_and_that_of_a_stopped_one_does_not() -> None:
    view = new_view()
    failed = RESULT | {"stop_reason": "blocked", "error": "too long"}
    add_of_subtask(view, "workflow.result.final", failed)
    sentence = RunMessages("en").ended("blocked", "")
    assert " ".join(map(str.strip, printed(view))) == f"├ task 2  ✕ {sentence}"
    add_of_subtask(view, "workflow.result.cancelled", {})
    assert printed(view) == ["  ├ task 2  ■ stopped"]


def test_a_run_that_waits_for_its_tasks_is_the_current_one() -> None:
    view = new_view()
    start(view)
    waits = {"status": "waiting", "stop_reason": "await_tasks"}
    add(view, "workflow.lifecycle.updated", waits)
    assert view.current is not None


def test_a_question_of_a_subtask_is_open_until_its_run_ends() -> None:
    view = new_view()
    add_of_subtask(view, "workflow.question.asked", QUESTION | {"asked_by": "task 2 · analyst"})
    assert [each.asked_by for each in view.questions.values()] == ["task 2 · analyst"]
    add_of_subtask(view, "workflow.result.final", RESULT)
    assert not view.questions


def test_of_a_task_in_the_background_only_the_end_is_shown() -> None:
    view = new_view()
    start(view)
    view.move_to_background("task-1", "long work")
    assert view.current is None
    stream(view, "words")
    use_tool(view)
    assert view.take_rows(WIDTH) == ([], [])
    add(view, "workflow.result.final", RESULT)
    assert printed(view) == ["  ├ background · long work  ✓ 0.5s · larkspur watch 1"]


def test_a_plan_is_printed_when_it_changes_and_not_for_its_progress() -> None:
    view = new_view()
    start(view)
    step = {"description": "build", "status": "pending"}
    plan = {"goal": "ship", "version": 1, "steps": [step]}
    add(view, "workflow.plan.updated", plan)
    add(view, "workflow.plan.updated", {**plan, "steps": [{**step, "status": "completed"}]})
    assert printed(view) == ["▣ plan 1 step  build"]
    add(view, "workflow.plan.updated", {**plan, "version": 2})
    assert printed(view) == ["▣ plan 1 step  build"]


def test_an_open_question_is_left_to_the_prompt_or_printed() -> None:
    prompting, watching = new_view(), new_view(asks=False)
    for view in (prompting, watching):
        add(view, "workflow.question.asked", QUESTION)
        assert [*view.questions] == ["question-1"]
    assert printed(prompting) == []
    assert "rm x" in "\n".join(printed(watching))


def test_a_call_that_was_denied_in_the_terminal_gets_no_second_row() -> None:
    view = new_view()
    start(view)
    add(view, "workflow.question.asked", QUESTION)
    view.close_question("question-1", {"decision": "reject"}, here=True)
    assert view.questions == {}
    assert printed(view)
    use_tool(view, call_id="call-1")
    assert printed(view) == []


def test_questions_of_a_run_that_ended_are_closed() -> None:
    view = new_view()
    start(view)
    add(view, "workflow.question.asked", QUESTION)
    add(
        view,
        "workflow.result.cancelled",
        {"requested_by": "Ann", "requested_via": "web"},
    )
    assert printed(view) == ["■ stopped by Ann via web"]
    assert view.questions == {}


def test_a_stop_by_this_terminal_names_nobody() -> None:
    view = new_view()
    start(view)
    view.stopped.add("task-1")
    add(view, "workflow.result.cancelled", {"requested_by": "Ann", "requested_via": "web"})
    assert printed(view) == ["■ stopped"]


def test_a_failed_run_and_its_files_are_reported() -> None:
    view = new_view()
    start(view)
    failed = {**RESULT, "stop_reason": "error", "error_code": "model_error", "error": "Acme: no."}
    result = {**failed, "attachments": [{"name": "a.txt", "size": 3}]}
    add(view, "workflow.result.final", result)
    rows = printed(view)
    sentence = "✕ The model provider returned an error."
    assert rows[:3] == [sentence, "  Acme: no.", "▤ a.txt · 3 bytes"]
    assert rows[-1].startswith("✕ 0.5s")


def test_an_end_and_a_question_of_a_run_are_in_the_language_of_the_terminal() -> None:
    view = TranscriptView(MessageCatalog("repl", "zh"), UNICODE)
    said = RunMessages("zh")
    start(view)
    recovery = {"kind": "recovery", "title": "Acme is busy", "reason_code": "model_busy"}
    asked = {**recovery, "question_id": "question-2", "body": "", "options": ()}
    add(view, "workflow.question.asked", asked)
    retry = {"node_id": "1:say", "reason": "unreachable", "seconds": 8, "attempt": 3}
    add(view, "workflow.node.retry", retry)
    assert view.current is not None
    assert view.current.notice == said.retry({"reason": "unreachable", "seconds": 8, "attempt": 3})
    refused = {"stop_reason": "error", "error_code": "model_refused", "error": "It declined."}
    add(view, "workflow.result.final", {**RESULT, **refused})
    rows = "\n".join(printed(view))
    assert said.ended("error", "model_busy") in rows
    assert said.ended("error", "model_refused") in rows
    assert "Acme" not in rows
    assert "declined" not in rows


def test_another_session_starts_without_runs_and_live_rows() -> None:
    view = new_view()
    start(view)
    stream(view, "Hello")
    view.reset()
    assert view.current is None
    assert view.take_rows(WIDTH) == ([], [])


def test_a_wait_for_the_model_is_the_activity_until_the_reply_goes_on() -> None:
    view = new_view()
    start(view)
    retry = {"node_id": "1:say", "reason": "overloaded", "seconds": 8, "attempt": 3}
    add(view, "workflow.node.retry", retry)
    notices = [view.runs.runs["run-1"].notice]
    stream(view, "well")
    notices.append(view.runs.runs["run-1"].notice)
    assert notices == ["The model is overloaded, retrying in 8 s (attempt 3)", ""]


def test_where_the_files_of_a_session_are_is_a_row() -> None:
    view = new_view()
    add(
        view, "workflow.diagnostic.error", {"phase": "queue", "error": "inner", "recoverable": True}
    )
    add(view, "workflow.notice", {"about": "host", "text": "about queue"})
    assert [row.strip() for row in printed(view) if row.strip()] == ["· about queue"]


def test_an_answer_that_was_cut_has_a_note() -> None:
    view = new_view()
    start(view)
    add(view, "workflow.result.final", {**RESULT, "stop_reason": "max_output"})
    assert "output limit, so the answer is incomplete" in " ".join(map(str.strip, printed(view)))


def test_each_produced_file_has_a_row() -> None:
    view = new_view()
    start(view)
    files = [
        {"artifact_id": f"artifact-{n}", "name": f"{n}\x1b.md", "size": n * 1_000} for n in (1, 2)
    ]
    manifest = {"artifacts": files, "omitted": 4}
    add(view, "workflow.artifact.manifest", manifest, session_id="session-1")
    rows = shown(view.take_rows(WIDTH)[0])
    assert rows[0].startswith("▤ 1")
    assert "\x1b" not in rows[0]
    assert rows[0].endswith(".md  1000 bytes · larkspur files get artifact-1")
    assert "2.0 KB" in rows[1]
    assert rows[2] == "· 4 more new files were not kept."


def test_a_question_of_a_subtask_names_it_first() -> None:
    view = new_view(asks=False)
    add_of_subtask(view, "workflow.question.asked", QUESTION | {"asked_by": "task 2 · analyst"})
    assert printed(view)[0] == "├ task 2 · analyst"


def test_thoughts_are_one_row_before_their_reply() -> None:
    view = new_view()
    start(view)
    think(view)
    assert printed(view) == []
    stream(view, "Hello")
    assert [shown(rows) for rows in view.take_rows(WIDTH)] == [["· Thought for 0.1s"], ["● Hello"]]
    thinking = {"thinking": "hm", "thinking_ms": 12_300}
    summary = {"node_id": "1:say", "content": "Hello", "usage": {}, **thinking}
    add(view, "workflow.node.output.summary", summary)
    assert printed(view) == ["● Hello"]
    assert view.thoughts == "hm"
    for number, more in enumerate((thinking, {}), 2):  # a reply without text, and without thoughts
        summary = {"node_id": f"{number}:say", "content": "", "usage": {}, **more}
        add(view, "workflow.node.output.summary", summary)
    assert printed(view) == ["· Thought for 12s"]
    assert view.thoughts == ""


def test_thoughts_of_a_reply_that_is_joined_halfway_come_first_while_they_can() -> None:
    for lines, place in ((1, 0), (40, -1)):
        view = new_view()
        start(view)
        text = "\n".join(f"- line {number}" for number in range(lines))
        add(view, "partial", {"node_id": "1:say", "text": text, "k": 3})
        rows = printed(view)
        thinking = {"thinking": "hm", "thinking_ms": 12_300}
        summary = {"node_id": "1:say", "content": text, "usage": {}, **thinking}
        add(view, "workflow.node.output.summary", summary)
        rows += printed(view)
        assert rows[place] == "· Thought for 12s"
        assert len(rows) == lines + 1
