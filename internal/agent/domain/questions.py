"""Questions: durable questions to people that pause a run, and their single answer."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId, recovery_question_id
from internal.agent.domain.permissions.matchers import ReasonCode
from internal.agent.domain.permissions.targets import Target, ToolTargets
from internal.agent.domain.plans import Plan, PlanEdit
from internal.agent.domain.principals import LOCAL_OWNER, OWNER_NAME
from internal.agent.domain.tasks import Attachment, rule_scope
from internal.agent.domain.text import truncate

QuestionKind = Literal["plan", "clarify", "approval", "recovery"]
Decision = Literal["approve", "edit", "reject", "text", "expired"]
Grant = Literal["once", "session", "rule"]
"""The scope of an approval of calls: these calls, the session, or permanently."""

Audience = Literal["owner", "operators", "asker"]
"""People who may answer: the owner, operators, or also the person who submitted the task."""

Action = Literal["create", "change", "read", "run", "fetch", "trust", "use"]
"""What a call does: with a file, a command or an address; with `trust` the agent follows something
from then on, such as a skill; `use` for any other tool."""

_TITLES: dict[Action, str] = {
    "create": "Create {}?",
    "change": "Change {}?",
    "read": "Read {}?",
    "run": "Run `{}`?",
    "fetch": "Fetch {}?",
    "trust": "Trust {}?",
    "use": "Allow {}?",
}
_SEVERAL: dict[Action, tuple[str, str]] = {
    "create": ("create 1 file", "create {} files"),
    "change": ("change 1 file", "change {} files"),
    "read": ("read 1 file", "read {} files"),
    "run": ("run 1 command", "run {} commands"),
    "fetch": ("fetch 1 page", "fetch {} pages"),
    "trust": ("trust 1 source", "trust {} sources"),
    "use": ("use 1 other tool", "use {} other tools"),
}
_NEW_FILE = "--- /dev/null\n"
"""The beginning of the diff of a file that does not exist."""

NOBODY, CLOCK = "nobody", "the clock"
"""The principal and the channel of an answer that expired."""


class ApprovalItem(msgspec.Struct, frozen=True):
    """One call of an approval question: exactly what would run.

    `what` is the command or the call, `diff` the change to a file; invisible characters are escaped
    in both. `reason` is an additional reason, "" for none. `rules` together would allow the call,
    () if no rule may. `whole` is the full call if `what` is truncated. `action` and `subject` say
    in short what it does, such as to change `report.md`, for the title of the question.
    `reason_code` says the reason to channels in other languages, with `reason_about` as its
    variable part. `title` is what people read in place of the name of a tool of an MCP server.
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
    action: Action = "use"
    subject: str = ""
    reason_code: ReasonCode = ""
    reason_about: str = ""
    title: str = ""

    def with_preview(self, preview: "Preview") -> "ApprovalItem":
        """Return the item with a preview; a change to a file that does not exist creates it."""
        is_new = self.action == "change" and preview.diff.startswith(_NEW_FILE)
        return msgspec.structs.replace(
            self,
            diff=preview.diff,
            whole=preview.whole,
            action="create" if is_new else self.action,
        )


class Preview(NamedTuple):
    """A preview of a call: the change to a file, and the full call if it is long."""

    diff: str = ""
    whole: Attachment | None = None


class Question(msgspec.Struct, frozen=True):
    """A question to a person.

    The Turn of the run asks it, except a `recovery` question: the run cannot continue by itself,
    and a person decides whether it is tried again. `options` are answers to choose from, several if
    `multiple`. `call_id` is the call that the answer to a plan or clarify question completes.
    `calls` are the calls of an approval question, `plan` is the plan of a plan question. `targets`
    are the permission targets of the tools of the run: the rules in an answer are parsed with them.
    `reason_code` is the reason why a run cannot continue, for other languages: an `error_code`, or
    `crashed`. `asked_by` is the place of the subtask that asks, such as `task 2 · analyst`, "" for
    the task itself; `asker_number` and `asker_role` are its parts. `is_for_others`: when it was
    asked, nobody in the chat of the task was allowed to answer it. Then `recipients`, users of the
    chat service, get a copy in their direct chats.
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
    reason_code: str = ""
    asked_by: str = ""
    asker_number: int = 0
    asker_role: str = ""
    is_for_others: bool = False
    recipients: tuple[str, ...] = ()

    def audience(self, *, direct: bool) -> Audience:
        """Return who may answer; `direct`: the task was submitted in a direct chat."""
        if any(call.reason_code == "owner" for call in self.calls):
            return "owner"
        grants_nothing = self.kind in {"clarify", "recovery"}
        return "asker" if grants_nothing and direct else "operators"

    def with_previews(self, previews: Mapping[str, Preview]) -> "Question":
        """Return the question with previews of its calls, by call_id."""
        calls = tuple(
            call.with_preview(previews.get(call.call_id, Preview())) for call in self.calls
        )
        return msgspec.structs.replace(self, calls=calls, title=_approval_title(calls))


class Answer(msgspec.Struct, frozen=True):
    """The single accepted answer to a question.

    `by` is the principal, `name` their display name or "", `via` the channel, `at` RFC 3339.
    `items` approves or rejects single calls by call_id; `decision` applies to the others. `choices`
    are option numbers, from 1. `rules` are added by an approval with the grant `session` or `rule`.
    `withdrawn`: the message of the task was recalled, which rejects the question.
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
    withdrawn: bool = False

    @property
    def who(self) -> str:
        """The display name of the person who answered, else the principal."""
        if self.by == LOCAL_OWNER.id and self.name in {"", LOCAL_OWNER.name}:
            return OWNER_NAME
        return self.name or self.by or NOBODY


def plan_question(question_id: QuestionId, plan: Plan, call_id: str) -> Question:
    """Return the review question for a plan; `call_id` is the `plan` call."""
    title = plan.title or truncate(plan.goal, 200)
    return Question(question_id, "plan", title, call_id=call_id, plan=plan)


def approval_question(
    question_id: QuestionId, items: tuple[ApprovalItem, ...], targets: ToolTargets
) -> Question:
    """Return one question about all calls that need approval."""
    title = _approval_title(items)
    return Question(question_id, "approval", title, calls=items, targets=dict(targets))


def _approval_title(items: tuple[ApprovalItem, ...]) -> str:
    if len(items) == 1:
        return _TITLES[items[0].action].format(items[0].subject or items[0].tool)
    parts = [_SEVERAL[action][count > 1].format(count) for action, count in count_actions(items)]
    text = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"{text[:1].upper()}{text[1:]}?"


def count_actions(items: Iterable[ApprovalItem]) -> list[tuple[Action, int]]:
    """Return the number of calls with each action, in the order of the first of each."""
    return list(Counter(item.action for item in items).items())


def recovery_question(run_id: RunId, fence: int, reason: str, code: str) -> Question:
    """Return the question about a run that cannot continue; `reason` is a sentence."""
    question_id = recovery_question_id(run_id, fence)
    return Question(question_id, "recovery", reason, reason_code=code)


Refusal = Literal["person", "nobody", "changed"]
"""Reason why an answer does not allow a call: it is no, too late, or for another call."""


def refusal_of(item: ApprovalItem, answer: Answer, call_hash: str) -> Refusal | None:
    """Return why a call is not run, None if exactly this call was approved."""
    if answer.decision == "expired":
        return "nobody"
    if not answer.items.get(item.call_id, answer.decision == "approve"):
        return "person"
    return "changed" if call_hash != item.call_hash else None


def refusal_reason(item: ApprovalItem, answer: Answer, call_hash: str) -> str | None:
    """Return why a call is not run as a sentence for the model, None if it was approved.

    `call_hash` is the hash of the current call.
    """
    match refusal_of(item, answer, call_hash):
        case "nobody":
            return "Not run: nobody answered in time, so the answer is no."
        case "person":
            reason = f": {answer.text}" if answer.text.strip() else ""
            return f"Not run: {answer.who} said no{reason}."
        case "changed":
            return "Not run: this is not the call that a person agreed to."
        case None:
            return None


QuestionStatus = Literal["open", "answered", "expired", "closed"]


class QuestionRecord(NamedTuple):
    """A stored question and its state.

    `principal` submitted the task, `chat` names the chat it was submitted in ("" without a chat)
    and `audience` determines who may answer. Instants are RFC 3339.
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
        return rule_scope(self.chat, self.principal)
