"""The state of a run as a chat shows it."""

import re
from typing import Any

from internal.agent.domain.events.envelope import RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import (
    Event,
    LifecycleUpdated,
    ModelRetry,
    OutputSummary,
    PlanUpdated,
    ResultFinal,
    ToolCompleted,
    ToolProgress,
    ToolStarted,
)
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.plans import PlanStep, number_steps
from internal.agent.domain.usage import Usage
from internal.channels.chat.displays.run_state import RunProgress
from internal.i18n.chat import ChatPhrases
from tests.support.chat_texts import TOOL_TITLES

EN, ZH = ChatPhrases("en", TOOL_TITLES), ChatPhrases("zh")


def test_a_tool_of_a_server_shows_what_it_reports_while_it_runs() -> None:
    state = RunProgress()

    def output(call: str, text: str) -> bool:
        event = ToolProgress(node_id=call, k=1, n=1, text=text)
        return state.apply_output(envelope_of(event))

    for call, name in (("c1", "mcp__wiki__search"), ("c2", "shell")):
        apply(
            state,
            ToolStarted(call_id=call, tool_name=name, arguments={}, iteration=1, risk="read"),
        )
    assert output("c1", "begun (1 of 3)\nha\u202elf (2 of 3)\n")
    assert not output("c1", "\n")
    assert not output("c2", "secret\n")
    assert not output("c3", "unknown\n")
    assert state.lines(EN)[0].endswith(" · ha\\u202elf (2 of 3)")
    apply(state, ToolCompleted(call_id="c1", tool_name="mcp__wiki__search", duration_ms=1))
    assert not output("c1", "late\n")
    assert "of 3" not in "".join(state.lines(EN))


def test_the_state_follows_the_events() -> None:
    state = RunProgress()
    assert not state.has_details
    apply(state, LifecycleUpdated(status="running", phase="prepare"))
    assert state.title(EN) == "Working"
    steps = number_steps(["read *all* of it", "tell"])
    apply(state, PlanUpdated(version=1, goal="g", complexity="simple", steps=steps))
    for number in range(20):
        apply(
            state,
            ToolStarted(
                call_id=f"c{number}",
                tool_name="read_file",
                arguments={"path": "secret"},
                iteration=1,
                risk="read",
            ),
        )
    apply(state, ToolCompleted(call_id="c19", tool_name="read_file", duration_ms=2500, error="no"))
    lines = state.lines(EN)
    assert lines[0] == "☐ read *all* of it"
    assert "earlier steps" in "".join(lines)
    assert lines[-1] == "✗ Read a file · 2 s"
    assert "secret" not in "".join(lines)
    changed = ToolCompleted(
        call_id="c19",
        tool_name="shell",
        duration_ms=1,
        metadata={"configuration": ["AGENTS.md", ".git/hooks/pre-commit"]},
    )
    apply(state, changed)
    assert state.lines(EN)[-1].endswith("⚠ created or changed: AGENTS.md, .git/hooks/pre-commit")
    over = [state.is_over]
    apply(state, LifecycleUpdated(status="completed", phase="persist"))
    final = ResultFinal(
        final_answer="x",
        stop_reason="final_answer",
        total_iterations=1,
        usage=Usage(),
        duration_ms=1,
    )
    apply(state, final)
    assert [*over, state.is_over] == [False, True]
    assert state.title(ZH) == "已完成"
    assert EN.tool("never_heard_of") == "Use the tool “never heard of”"
    assert EN.tool("mcp__github__add-issue") == "Use the tool “add issue (github)”"


def test_an_ended_run_shows_what_was_not_run_and_not_reported() -> None:
    state = RunProgress()
    steps = (PlanStep("1", "Look", "in_progress", "seen", "larkspur"),)
    plan = PlanUpdated(version=1, goal="g", complexity="simple", steps=steps, made_by="larkspur")
    apply(state, plan)
    missed = {"not_run": "plan", "what": "write_file"}
    apply(
        state,
        ToolCompleted(
            call_id="c", tool_name="write_file", duration_ms=0, error="no", metadata=missed
        ),
    )
    assert state.lines(EN) == [
        "▣ made by Larkspur from the task, because the agent made no plan",
        "▶ Look · opened by Larkspur · done when: seen",
        "",
        "⊘ Write a file · not run: The agent had not made a plan.",
    ]
    apply(state, LifecycleUpdated(status="completed", phase="persist"))
    apply(
        state,
        ResultFinal(
            final_answer="ok",
            stop_reason="final_answer",
            total_iterations=1,
            usage=Usage(),
            duration_ms=1,
            calls_not_run=1,
        ),
    )
    assert state.phase == "incomplete"
    assert state.title(EN) == "Completed, 1 call was not run"
    assert state.title(ZH) == "已完成\uff0c1 个调用未执行"
    assert state.lines(EN)[1].startswith("? Look · not reported · ")


def test_refused_calls_keep_their_file_and_their_place() -> None:
    state = RunProgress()
    reply = OutputSummary(
        node_id="iter:1:say", iteration=1, content="", tool_call_count=3, llm_duration_ms=1,
        llm_request_id="", llm_model="m", usage=Usage(), call_ids=("a", "b", "c"),
    )  # fmt: skip
    apply(state, reply)
    for call_id, metadata in (
        ("c", {}),
        ("b", {"denied": True, "what": "rm x", "subject": "rm x", "rules": []}),
        ("a", {"not_run": "plan", "what": "write_file", "subject": "a.txt"}),
    ):
        apply(
            state,
            ToolCompleted(
                call_id=call_id, tool_name="write_file", duration_ms=0, metadata=metadata
            ),
        )
    assert state.lines(EN) == [
        "⊘ Write a file · a.txt · not run: The agent had not made a plan.",
        "⊘ Write a file · rm x · not allowed",
        "✓ Write a file",
    ]


def test_a_run_at_its_limit_is_neither_done_nor_failed() -> None:
    for status, reason, title in (
        ("completed", "max_iterations", "Stopped at its step limit"),
        ("completed", "max_output", "Incomplete: output limit reached"),
        ("failed", "timeout", "Stopped at its time limit"),
    ):
        state = RunProgress()
        apply(state, LifecycleUpdated(status=status, phase="persist", stop_reason=reason))  # type: ignore[arg-type]  # two texts
        assert (state.phase, state.title(EN)) == ("incomplete", title)
        assert state.has_ended


def test_a_wait_for_the_model_is_shown_until_the_reply_is_complete() -> None:
    state = RunProgress()
    apply(state, ModelRetry(node_id="iter:1:say", reason="unreachable", seconds=8, attempt=3))
    assert state.lines(EN) == ["The model can't be reached, retrying in 8 s (attempt 3)"]
    (line,) = state.lines(ZH)
    assert line.startswith("无法连接模型")
    summary = OutputSummary(
        node_id="iter:1:say",
        iteration=1,
        content="",
        tool_call_count=0,
        llm_duration_ms=1,
        llm_request_id="",
        llm_model="claude-x",
        usage=Usage(),
    )
    apply(state, summary)
    assert state.lines(EN) == []


def test_a_command_that_ended_with_an_error_is_marked_with_its_code() -> None:
    state = RunProgress()
    ended = {"exit_code": 3, "timed_out": False}
    apply(state, ToolCompleted(call_id="c", tool_name="shell", duration_ms=1, metadata=ended))
    (line,) = state.lines(EN)
    assert line.startswith("✗ ")
    assert line.endswith(" · exit 3")


def test_a_long_wait_for_the_model_is_shown_with_its_end() -> None:
    state = RunProgress()
    apply(state, ModelRetry(node_id="iter:1:say", reason="loading", seconds=330, attempt=2))
    (line,) = state.lines(EN)
    said = r"The model is still being loaded, retrying in 330 s \(attempt 2\), until \d\d:\d\d:\d\d"
    assert re.match(said, line)


def test_a_run_that_waits_for_its_tasks_is_not_idle() -> None:
    state = RunProgress()
    apply(state, LifecycleUpdated(status="waiting", phase="execute", stop_reason="await_tasks"))
    assert not state.is_idle
    assert state.title(EN) == "Waiting for its tasks"
    asks = LifecycleUpdated(status="waiting", phase="execute", stop_reason="await_user_input")
    apply(state, asks)
    assert state.is_idle


def test_the_lines_of_subtasks_are_between_the_plan_and_the_calls() -> None:
    state = RunProgress()
    steps = number_steps([f"step {number}" for number in range(60)])
    subtasks = [f"● task {number}" for number in range(9)]
    call: dict[str, Any] = {"call_id": "c1", "arguments": {}, "iteration": 1, "risk": "read"}
    apply(state, ToolStarted(tool_name="read_file", **call))
    assert state.lines(EN, subtasks) == [*subtasks, "", "… Read a file"]
    apply(state, PlanUpdated(version=1, goal="g", complexity="complex", steps=steps))
    lines = state.lines(EN, subtasks)
    assert lines[31:43] == ["", *subtasks, "", "… Read a file"]
    assert len(lines) == 43


def envelope_of(event: Event) -> bytes:
    ids = RunIds(SessionId("session-1"), TaskId("task-1"), RunId("run-1"))
    return encode_envelope(wrap_event(ids, event, "2026-01-31T08:00:00.000Z", 1))


def apply(state: RunProgress, event: Event) -> None:
    state.apply(event.name, envelope_of(event))
