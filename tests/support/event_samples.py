"""A full sample of each event."""

from internal.agent.domain.artifacts import ManifestEntry
from internal.agent.domain.events.types import (
    ArtifactManifest,
    ChangedFile,
    ContextCompression,
    ContextSnapshot,
    DiagnosticError,
    Event,
    FeedbackGiven,
    FilesChanged,
    FilteredTool,
    InputEdited,
    InputFilesFetched,
    InputReceived,
    InputWaiting,
    LifecycleUpdated,
    ModelRetry,
    NodeCompleted,
    NodeFailed,
    NodeKind,
    NodeStarted,
    OutputDelta,
    OutputSummary,
    Partial,
    PartsLeftOut,
    PeopleMentioned,
    PlanUpdated,
    QuestionAnswered,
    QuestionAsked,
    ResultCancelled,
    ResultFinal,
    SessionTitled,
    SubflowCompleted,
    SubflowProgress,
    TaskCompleted,
    TaskDispatched,
    ToolCompleted,
    ToolFiltering,
    ToolProgress,
    ToolStarted,
)
from internal.agent.domain.ids import ArtifactId, TaskId
from internal.agent.domain.own_commands import OwnCommand
from internal.agent.domain.plans import Plan, PlanStep
from internal.agent.domain.questions import ApprovalItem
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.usage import ContextPart, ContextUse, Usage
from tests.support.struct_examples import ODD_TEXT

NOW = "2026-01-31T08:00:00.000Z"


ODD = ODD_TEXT


FILE = Attachment(ODD, "text/plain", "file:abc", "abc", 3)


ASKED = ApprovalItem("c1", "shell", ODD, "exec", "r", "h", ("shell(ls)",))


USAGE = Usage(1, 2, 3, 4)


FULL: list[tuple[Event, tuple[str, NodeKind] | None]] = [
    (
        InputReceived(
            task=ODD,
            channel="cli",
            sender="local",
            attachments=(FILE,),
            steer=True,
            resumed=True,
            commands=(OwnCommand("ls", "a.txt", 0),),
        ),
        None,
    ),
    (InputWaiting(number=7, state="given_back", task=ODD), None),
    (InputEdited(task=ODD, attachments=(FILE,)), None),
    (InputFilesFetched(attachments=(FILE,)), None),
    (PeopleMentioned(people=("lark:cli_a:ou_1",), names=(ODD,)), None),
    (LifecycleUpdated(status="failed", phase="persist", stop_reason="error"), None),
    (
        NodeStarted(
            node_id="iter:3", kind="iteration", step_index=1, step_description=ODD, iteration=3
        ),
        ("iter:3", "iteration"),
    ),
    (
        NodeCompleted(node_id="step:1", kind="step", duration_ms=5, tokens_used=6, tools_run=7),
        ("step:1", "step"),
    ),
    (
        NodeFailed(node_id="execute", kind="step", phase="execute", error=ODD, recoverable=True),
        ("execute", "step"),
    ),
    (
        ModelRetry(node_id="iter:3:say", reason="overloaded", seconds=8, attempt=3),
        ("iter:3:say", "generation"),
    ),
    (
        PartsLeftOut(node_id="iter:3:say", what="pictures", count=2),
        ("iter:3:say", "generation"),
    ),
    (
        OutputDelta(node_id="iter:3:say", k=9, n=2, text=ODD, reasoning=True),
        ("iter:3:say", "generation"),
    ),
    (Partial(node_id="iter:3:say", k=0, text=""), ("iter:3:say", "generation")),
    (
        OutputSummary(
            node_id="iter:3:say",
            iteration=3,
            content=ODD,
            tool_call_count=1,
            llm_duration_ms=2,
            llm_request_id="req",
            llm_model="claude-x",
            usage=USAGE,
            context=ContextUse(200_000, 25_000, (ContextPart("folder", 12, "AGENTS.md"),)),
            call_ids=("c1", "c2"),
        ),
        ("iter:3:say", "generation"),
    ),
    (
        ToolStarted(
            call_id="c1",
            tool_name="shell",
            arguments={"command": ODD, "deep": [{"x": None}]},
            iteration=3,
            risk="exec",
            title="Add issue (github)",
        ),
        ("c1", "tool"),
    ),
    (ToolProgress(node_id="c1", k=2, n=1, text=ODD), ("c1", "tool")),
    (
        ToolCompleted(
            call_id="c1",
            tool_name="shell",
            duration_ms=3,
            result=ODD,
            error=ODD,
            attachments=(FILE,),
            metadata={"denied": True},
        ),
        ("c1", "tool"),
    ),
    (
        ArtifactManifest(
            artifacts=(
                ManifestEntry(
                    ArtifactId("artifact-1"),
                    ODD,
                    2,
                    "image",
                    "image/png",
                    "abc",
                    3,
                    "file:abc",
                    ODD,
                ),
            ),
            call_id="c1",
            source_tool="shell",
            omitted=4,
        ),
        ("artifacts:c1", "artifact"),
    ),
    (
        FilesChanged(
            files=(ChangedFile(ODD, "changed", 2, 1), ChangedFile("gone.bin", "deleted")),
            total=3,
            is_complete=False,
        ),
        None,
    ),
    (
        TaskDispatched(
            task_id=TaskId("task-2"),
            call_id="c1",
            number=2,
            total=3,
            instruction=ODD,
            profile="default",
            role=ODD,
            depends_on=(TaskId("task-3"),),
        ),
        ("task-2", "subflow"),
    ),
    (
        TaskCompleted(
            task_id=TaskId("task-2"),
            number=2,
            status="failed",
            stop_reason="blocked",
            preview=ODD,
        ),
        ("task-2", "subflow"),
    ),
    (
        SubflowProgress(
            subtask_index=2,
            total_subtasks=3,
            completed=1,
            tokens=10,
            tool_calls=4,
            preview=ODD,
        ),
        ("subtask:2", "subflow"),
    ),
    (SubflowCompleted(call_id="c1", success=2, failed=1), ("c1", "subflow")),
    (
        PlanUpdated(
            version=2,
            goal=ODD,
            complexity="complex",
            steps=(PlanStep("1", ODD, "skipped"),),
            title=ODD,
        ),
        ("plan:2", "plan"),
    ),
    (
        QuestionAsked(
            question_id="question-1-1",
            kind="approval",
            title=ODD,
            body=ODD,
            options=(ODD,),
            expires_at=NOW,
            calls=(ASKED,),
            multiple=True,
            plan=Plan(2, ODD, "complex", (PlanStep("1", ODD),), ODD),
            who="asker",
        ),
        ("question-1-1", "question"),
    ),
    (
        QuestionAnswered(
            question_id="question-1-1",
            decision="approve",
            answered_by="local",
            answered_via="cli",
            answered_name=ODD,
            text=ODD,
            items={"c1": False},
            grant="rule",
            rules=("shell(ls)",),
        ),
        ("question-1-1", "question"),
    ),
    (
        ResultFinal(
            final_answer=ODD,
            stop_reason="final_answer",
            total_iterations=3,
            usage=USAGE,
            duration_ms=4,
            cost=0.5,
            error=ODD,
            error_code="model_busy",
            attachments=(FILE,),
            model=ODD,
            instead_of=ODD,
            calls_not_run=1,
        ),
        ("result", "result"),
    ),
    (
        ResultCancelled(reason=ODD, requested_by="local", requested_via="cli"),
        ("result", "result"),
    ),
    (SessionTitled(title=ODD), None),
    (FeedbackGiven(rating="up", comment=ODD, by="local"), None),
    (
        DiagnosticError(phase="gate", error=ODD, recoverable=False, call_id="c1"),
        ("gate", "diagnostic"),
    ),
    (
        ToolFiltering(count=1, filtered=(FilteredTool("mcp__git", "not reviewed"),)),
        ("prepare", "diagnostic"),
    ),
    (
        ContextCompression(
            messages_before=9,
            messages_after=3,
            tokens_before=900,
            tokens_after=300,
            budget_tokens=500,
            reason="provider_refused",
        ),
        ("context", "diagnostic"),
    ),
    (
        ContextSnapshot(messages=1, tools=2, estimated_tokens=3, sha256="abc"),
        ("context", "diagnostic"),
    ),
]
