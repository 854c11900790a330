"""Questions as messages of a conversation."""

from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.plans import Plan, PlanStep
from internal.agent.domain.questions import (
    ApprovalItem,
    Question,
    QuestionRecord,
    approval_question,
    plan_question,
)
from internal.channels.web.completions.asked_questions import (
    MAX_LINES,
    phrases_for,
    question_text,
)

ID = QuestionId("question-abcdef-1")


def record(question: Question) -> QuestionRecord:
    ids = (RunId("run-1"), TaskId("task-1"), SessionId("session-1"))
    return QuestionRecord(question, *ids, "local", "", "operators", "", "")


def text(*questions: Question, language: str = "") -> str:
    return question_text([record(each) for each in questions], phrases_for(language))


def call(what: str, reason: str = "", diff: str = "") -> ApprovalItem:
    return ApprovalItem(what, "shell", what, "exec", reason, "hash", diff=diff)


def test_an_approval_shows_each_call_as_it_is() -> None:
    items = (call("echo ```", reason="It writes."), call("b", diff="-a\n+b"))
    assert text(approval_question(ID, items, {})) == (
        "The task waits for an answer.\n\n"
        "**Use 2 other tools?**\n\n"
        "1. shell\n````\necho ```\n````\nIt writes.\n\n"
        "2. shell\n```\n-a\n+b\n```\n\n"
        "Reply yes to allow all 2 calls, or no. It can also be answered on the page or with:"
        " larkspur answer question-abcdef-1"
    )


def test_a_long_change_is_cut_and_says_so() -> None:
    shown = text(approval_question(ID, (call("\n".join("x" * (MAX_LINES + 2))),), {}))
    assert shown.count("x\n") == MAX_LINES
    assert "… 2 more lines: they are on the web page" in shown


def test_a_plan_shows_its_goal_and_steps() -> None:
    plan = Plan(1, "Make tea.", "complex", (PlanStep("1", "boil"), PlanStep("2", "pour")))
    shown = text(plan_question(ID, plan, "call-1"))
    assert "**Make tea.**\n\n1. boil\n2. pour\n\nReply yes to carry out" in shown


def test_other_questions_say_how_they_are_answered() -> None:
    several = Question(ID, "clarify", "Which?", "The colours.", ("red", "blue"), multiple=True)
    assert "The colours.\n\n1. red\n2. blue\n\nReply with one or more numbers" in text(several)
    asked = Question(ID, "clarify", "Where?", "Where?", asked_by="task 1 · digger")
    assert "**task 1 · digger asks: Where?**\n\nReply in your own words." in text(asked)
    failed = Question(ID, "recovery", "The model is busy.", reason_code="model_busy")
    assert "Reply yes to try again, no to give up" in text(failed)


def test_several_questions_have_codes_in_the_language_of_the_task() -> None:
    other = Question(QuestionId("question-ghijkl-2"), "clarify", "在哪里")
    shown = text(Question(ID, "clarify", "什么"), other, language="挖一个洞")
    assert "请在回复末尾写上 cdef-1。" in shown
    assert "请在回复末尾写上 ijkl-2。" in shown
