"""Questions: a durable question to a person that pauses a run, and its single Answer."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.permissions.targets import Target, ToolTargets
from internal.agent.domain.plans import Plan, PlanEdit
from internal.agent.domain.tasks import Attachment, grant_scope
from internal.agent.domain.text import truncate

QuestionKind = Literal["plan", "clarify", "approval"]
Decision = Literal["approve", "edit", "reject", "text", "expired"]
Grant = Literal["once", "session", "rule"]
"""How far a yes to calls goes: these very calls, this session from now on, or for good."""

Audience = Literal["operators", "asker"]
"""Who may answer: operators of the place, or besides them whoever gave the task."""

NOBODY, CLOCK = "nobody", "the clock"
"""Who answers when nobody did, and through what."""


class ApprovalItem(msgspec.Struct, frozen=True):
    """One call of an approval question: exactly what would be run.

    `what` is the command or the call, `diff` what it would change in a file; what a person cannot
    see stands escaped in both. `reason` is what else is to be known, "" for nothing. `rules`
    together would allow the call; () when none may. `whole` is the call as it is, when `what`
    cannot show all of it.
    """

    call_id: str
    tool: str
    what: str
    risk: str
    reason: str
    call_hash: str
    rules: tuple[str, ...] = ()
    diff: str = ""
    whole: Attachment | None = None


class Preview(NamedTuple):
    """What is seen of a call besides its text: the change it would make, the call in full."""

    diff: str = ""
    whole: Attachment | None = None


class Question(msgspec.Struct, frozen=True):
    """What a person is asked.

    `options` are answers to choose from, several when `multiple`. `call_id` is the call that an
    answer of kind `clarify` or `plan` completes. `calls` lists every call that an approval covers,
    `plan` is what a question of kind `plan` is about. `targets` are the permission targets of the
    tools of the run: the rules in an answer are parsed with them.
    """

    id: QuestionId
    kind: QuestionKind
    title: str
    body: str = ""
    options: tuple[str, ...] = ()
    call_id: str = ""
    calls: tuple[ApprovalItem, ...] = ()
    multiple: bool = False
    plan: Plan | None = None
    targets: dict[str, tuple[Target, ...]] = {}

    def previewed(self, previews: Mapping[str, Preview]) -> "Question":
        """Return the question with what is seen of its calls besides, by call_id."""
        calls = tuple(
            msgspec.structs.replace(call, diff=preview.diff, whole=preview.whole)
            for call in self.calls
            for preview in (previews.get(call.call_id, Preview()),)
        )
        return msgspec.structs.replace(self, calls=calls)


class Answer(msgspec.Struct, frozen=True):
    """The single accepted reply to a Question: who, through which channel, when, what.

    `by` is a principal, `name` what people call them, "" when nobody knows. `at` is RFC 3339.
    `items` maps a call_id of an approval question to yes or no; a call that is missing there
    follows `decision`. `choices` are numbers of options, from 1. `rules` are those that a yes with
    the grant `rule` or `session` allows from now on.
    """

    question_id: QuestionId
    decision: Decision
    by: str
    via: str
    text: str = ""
    items: dict[str, bool] = {}
    name: str = ""
    at: str = ""
    edit: PlanEdit | None = None
    choices: tuple[int, ...] = ()
    grant: Grant = "once"
    rules: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """The name of whoever answered, else the principal."""
        return self.name or self.by or NOBODY


def plan_question(question_id: QuestionId, plan: Plan, call_id: str) -> Question:
    """Return the question whether a plan is to be done; `call_id` is the call that made it."""
    title = plan.title or truncate(plan.goal, 200)
    return Question(question_id, "plan", title, call_id=call_id, plan=plan)


def approval_question(
    question_id: QuestionId, asked: tuple[ApprovalItem, ...], targets: ToolTargets
) -> Question:
    """Return the one question about all calls that need a person's agreement."""
    title = f"Allow {asked[0].tool}?" if len(asked) == 1 else f"Allow {len(asked)} calls?"
    return Question(question_id, "approval", title, calls=asked, targets=dict(targets))


def refusal_reason(asking: ApprovalItem, answer: Answer, call_hash: str) -> str | None:
    """Return why a call is not run after all, None when a person agreed to this very call.

    `call_hash` is that of the call as it is now.
    """
    if answer.decision == "expired":
        return "Not run: nobody answered in time, so the answer is no."
    if not answer.items.get(asking.call_id, answer.decision == "approve"):
        reason = f": {answer.text}" if answer.text.strip() else ""
        return f"Not run: {answer.who} said no{reason}."
    if call_hash != asking.call_hash:
        return "Not run: this is not the call that a person agreed to."
    return None


QuestionStatus = Literal["open", "answered", "expired", "closed"]


class QuestionRecord(NamedTuple):
    """A stored question and its state.

    `principal` submitted the task, `chat` names the chat it was submitted in ("" for none) and
    `audience` says who may answer. Instants are RFC 3339.
    """

    question: Question
    run_id: RunId
    task_id: TaskId
    session_id: SessionId
    principal: str
    chat: str
    audience: Audience
    asked: str
    expires: str
    status: QuestionStatus = "open"
    answer: Answer | None = None

    @property
    def rule_scope(self) -> str:
        """The scope of permission rules that hold for all tasks submitted from the same place."""
        return grant_scope(self.chat, self.principal)
