"""The subtasks of a run as a chat shows them."""

from typing import Any

from internal.agent.domain.delegation.subtask import Subtask
from internal.agent.domain.events.envelope import RunIds, encode_envelope, wrap_event
from internal.agent.domain.events.types import (
    Event,
    LifecycleUpdated,
    ResultFinal,
    SubflowProgress,
    ToolStarted,
)
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.tasks import Run, Status, StopReason
from internal.agent.domain.usage import Usage
from internal.channels.chat.displays.subtask_states import SubtaskStates
from internal.i18n.chat import ChatPhrases
from tests.support.chat_texts import TOOL_TITLES
from tests.support.store_records import a_run

EN, ZH = ChatPhrases("en", TOOL_TITLES), ChatPhrases("zh", TOOL_TITLES)
ROOT = RunId("run-root")


def place(number: int, role: str = "analyst", root: RunId = ROOT) -> Subtask:
    return Subtask(TaskId("task-root"), root, "call-1", number, 3, role, "read")


def ids(number: int, root: RunId = ROOT) -> RunIds:
    run = a_run(
        f"run-{number}", lane=f"task-{number}", parent_run_id=root, subtask=place(number, root=root)
    )
    return RunIds.of(run)


class Chat:
    """The states of the subtasks of the root run, fed with events."""

    def __init__(self) -> None:
        self.states = SubtaskStates(ROOT)

    def send(self, number: int, event: Event, second: int = 0, root: RunId = ROOT) -> bool:
        return self._apply(ids(number, root), event, second)

    def dispatch(self, number: int, role: str = "analyst") -> None:
        """Create a subtask: handle its first event, then load its stored run."""
        self.status(number, "queued")
        self.load(a_run(f"run-{number}", subtask=place(number, role)))

    def load(self, *runs: Run) -> None:
        self.states.load(runs)

    def status(
        self, number: int, status: Status, second: int = 0, reason: StopReason | None = None
    ) -> None:
        more: dict[str, Any] = {} if reason is None else {"stop_reason": reason}
        self.send(number, LifecycleUpdated(status=status, phase="execute", **more), second)

    def end(self, number: int, reason: StopReason, code: str = "") -> None:
        final = ResultFinal(
            final_answer="", stop_reason=reason, total_iterations=1, usage=Usage(), duration_ms=1,
            error_code=code,
        )  # fmt: skip
        self.send(number, final)

    def do(self, number: int, preview: str) -> bool:
        progress = SubflowProgress(
            subtask_index=number, total_subtasks=3, completed=0, tokens=1, tool_calls=1,
            preview=preview,
        )  # fmt: skip
        return self.send(number, progress)

    def _apply(self, run: RunIds, event: Event, second: int) -> bool:
        at = f"2026-01-31T08:00:{second:02}.000Z"
        return self.states.apply(event.name, encode_envelope(wrap_event(run, event, at, 1)))


def test_each_subtask_has_a_line_with_its_state() -> None:
    chat = Chat()
    assert not chat.states
    for number in range(1, 8):
        chat.dispatch(number, "" if number == 7 else "analyst")
    assert chat.states.lines(EN)[0] == "○ task 1 · analyst: queued"
    for number in range(1, 7):
        chat.status(number, "running", 1)
    assert chat.states.lines(EN)[1] == "● task 2 · analyst: working"
    chat.status(1, "completed", 15)
    chat.do(2, "web_fetch example.com/pricing")
    chat.status(3, "waiting", reason="await_user_input")
    chat.status(4, "failed")
    chat.end(4, "timeout")
    chat.status(5, "waiting", reason="await_tasks")
    chat.status(6, "cancelled")
    chat.status(7, "failed")
    chat.end(7, "blocked")
    assert chat.states.lines(EN) == [
        "✓ task 1 · analyst  14 s",
        "● task 2 · analyst: Fetch a web page · example.com/pricing",
        "? task 3 · analyst: waits for you",
        "⚠ task 4 · analyst: stopped at its time limit",
        "● task 5 · analyst: waits for its tasks",
        "- task 6 · analyst: stopped",
        "✗ task 7: a task it depends on failed",
    ]
    chinese = chat.states.lines(ZH)
    assert chinese[0] == "✓ 任务 1 · analyst  14 秒"
    assert chinese[2] == "? 任务 3 · analyst\uff1a等待你答复"
    assert chinese[3] == "⚠ 任务 4 · analyst\uff1a达到时间上限"
    assert chat.states.is_asking
    chat.status(3, "running")
    assert not chat.states.is_asking


def test_the_line_names_the_newest_call() -> None:
    chat = Chat()
    chat.dispatch(1)
    chat.status(1, "running")
    call: dict[str, Any] = {"call_id": "c1", "arguments": {}, "iteration": 1, "risk": "read"}
    assert chat.do(1, "read_file notes.md")
    assert not chat.send(1, ToolStarted(tool_name="read_file", **call))
    assert chat.states.lines(EN) == ["● task 1 · analyst: Read a file · notes.md"]
    assert chat.send(1, ToolStarted(tool_name="list_dir", **call))
    assert chat.states.lines(EN) == ["● task 1 · analyst: List a folder"]
    chat.do(1, "reading the pricing page")
    assert chat.states.lines(EN) == ["● task 1 · analyst: reading the pricing page"]
    chat.status(1, "failed")
    chat.end(1, "error", "model_busy")
    assert "overloaded" in chat.states.lines(EN)[0]


def test_events_of_other_runs_of_the_session_are_not_shown() -> None:
    chat = Chat()
    running = LifecycleUpdated(status="running", phase="execute")
    assert not chat.send(1, running, root=RunId("run-earlier"))
    assert not chat.states
    assert chat.send(2, running)
    assert chat.states.lines(EN) == ["● task 2: working"]
    has_unnamed = [chat.states.has_unnamed]
    chat.load(a_run("run-2", status="completed", subtask=place(2, "writer")))
    assert [*has_unnamed, chat.states.has_unnamed] == [True, False]
    assert chat.states.lines(EN) == ["● task 2 · writer: working"]


def test_of_many_subtasks_the_ended_ones_are_counted() -> None:
    chat = Chat()
    for number in range(1, 65):
        chat.dispatch(number)
        chat.status(number, "running")
        if number <= 40:
            chat.status(number, "completed")
    chat.status(50, "waiting", reason="await_user_input")
    chat.status(60, "failed")
    lines = chat.states.lines(EN)
    assert len(lines) == 9
    assert lines[-1] == "and 56 more: 40 done, 1 failed, 15 working"
    assert "? task 50 · analyst: waits for you" in lines
    numbers = [int(line.split()[2]) for line in lines[:-1]]
    assert numbers == sorted(numbers)
    assert lines[0] == "● task 41 · analyst: working"


def test_the_stored_states_are_those_after_a_restart() -> None:
    chat = Chat()
    chat.dispatch(1)
    chat.load(
        a_run(
            "run-2", status="completed", subtask=place(2), started="2026-01-31T08:00:01.000Z",
            ended="2026-01-31T08:01:06.400Z",
        ),
        a_run("run-3", status="waiting", stop_reason="await_user_input", subtask=place(3, "")),
        a_run("run-4", status="failed", stop_reason="budget_exceeded", subtask=place(4)),
        a_run("run-5", status="running", subtask=place(5, root=RunId("run-earlier"))),
    )  # fmt: skip
    assert chat.states.lines(EN) == [
        "○ task 1 · analyst: queued",
        "✓ task 2 · analyst  65 s",
        "? task 3: waits for you",
        "⚠ task 4 · analyst: stopped at its cost limit",
    ]


def test_long_names_and_previews_are_cut() -> None:
    chat = Chat()
    chat.dispatch(1, "名" * 500)
    chat.status(1, "running")
    chat.do(1, f"line one\nline two {'x' * 500}")
    [line] = chat.states.lines(EN)
    assert len(line) < 160
    assert "\n" not in line
