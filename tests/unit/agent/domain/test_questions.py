"""Questions: their titles, the previews of calls and which calls an answer lets run."""

import msgspec
import pytest

from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.permissions.targets import CommandTarget
from internal.agent.domain.plans import Plan, number_steps
from internal.agent.domain.questions import (
    NOBODY,
    Answer,
    ApprovalItem,
    Preview,
    Question,
    QuestionRecord,
    approval_question,
    plan_question,
    refusal_reason,
)
from internal.agent.domain.tasks import Attachment

ID = QuestionId("question-1")
LS = ApprovalItem("c1", "shell", "ls", "exec", "", "hash-1", ("shell(ls)",))
RM = ApprovalItem("c2", "shell", "rm x", "exec", "", "hash-2")
TARGETS = {"shell": (CommandTarget("command"),)}


def approve(**items: bool) -> Answer:
    return Answer(ID, "approve", "local", "cli", items=items)


def test_the_title_of_an_approval_names_one_call_or_counts_them() -> None:
    assert approval_question(ID, (LS,), TARGETS).title == "Allow shell?"
    assert approval_question(ID, (LS, RM), TARGETS).title == "Use 2 other tools?"
    run, write = (msgspec.structs.replace(LS, action=action) for action in ("run", "create"))
    assert approval_question(ID, (run, write, run), TARGETS).title == (
        "Run 2 commands and create 1 file?"
    )


def test_an_approval_question_keeps_the_targets_of_the_tools() -> None:
    question = approval_question(ID, (LS,), TARGETS)
    assert msgspec.json.decode(msgspec.json.encode(question), type=Question).targets == TARGETS


def test_the_title_of_a_plan_question_is_its_title_or_its_truncated_goal() -> None:
    plan = Plan(1, "x" * 5000, "simple", number_steps(["Look"]), title="Herons")
    assert plan_question(ID, plan, "c1").title == "Herons"
    untitled = plan_question(ID, msgspec.structs.replace(plan, title=""), "c1")
    assert len(untitled.title) <= 200
    assert untitled.call_id == "c1"


def test_previews_are_added_by_call_id() -> None:
    whole = Attachment("call.txt", "text/plain", "blob://1", "0" * 64, 9)
    question = approval_question(ID, (LS, RM), TARGETS)
    one, two = question.with_previews({"c2": Preview("-x", whole)}).calls
    assert one == LS
    assert (two.diff, two.whole, two.what) == ("-x", whole, "rm x")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (approve(), None),
        (Answer(ID, "reject", "ou_1", "lark", name="Ada"), "Not run: Ada said no."),
        (Answer(ID, "reject", "ou_1", "lark", "too risky"), "Not run: ou_1 said no: too risky."),
        (approve(c1=False), "Not run: the owner said no."),
        (Answer(ID, "reject", "local", "cli", items={"c1": True}), None),
        (
            Answer(ID, "expired", NOBODY, "the clock", items={"c1": True}),
            "Not run: nobody answered in time, so the answer is no.",
        ),
    ],
)
def test_a_call_runs_only_if_the_answer_approves_it(answer: Answer, reason: str | None) -> None:
    assert refusal_reason(LS, answer, "hash-1") == reason


def test_an_approved_call_that_changed_is_not_run() -> None:
    assert refusal_reason(LS, approve(), "hash-2") == (
        "Not run: this is not the call that a person agreed to."
    )


def test_the_answerer_is_shown_by_name_then_principal() -> None:
    names = [
        Answer(ID, "reject", by, "web", name=name).who
        for by, name in (("ou_1", "Ada"), ("ou_1", ""), ("", ""))
    ]
    assert names == ["Ada", "ou_1", "nobody"]


def test_the_rule_scope_of_a_question_is_the_chat_or_else_the_person() -> None:
    record = QuestionRecord(
        Question(ID, "clarify", "Which?"),
        RunId("run-1"),
        TaskId("task-1"),
        SessionId("session-1"),
        "local",
        "lark:cli_a1:oc_1",
        "asker",
        "2026-01-31T08:00:00.000Z",
        "2026-02-01T08:00:00.000Z",
    )
    assert record.rule_scope == "lark:cli_a1:oc_1"
    assert record._replace(chat="").rule_scope == "principal:local"
