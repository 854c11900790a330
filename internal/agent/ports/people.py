"""What the agent asks of the stores of people: questions, rules they wrote, rights, deeds."""

from typing import Literal, NamedTuple, Protocol

from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.plans import Plan
from internal.agent.domain.principals import Right
from internal.agent.domain.questions import Answer, Audience, Question
from internal.agent.domain.tasks import grants_place
from internal.agent.ports.database import Read, Write

QuestionStatus = Literal["open", "answered", "expired", "closed"]
"""Open, then answered by a person, expired, or closed because its run ended."""


class Asked(NamedTuple):
    """What is stored of a question when it is asked.

    `principal` gave the task, `chat` is where it was given ("" for none), `who` may answer.
    Instants are RFC 3339.
    """

    question: Question
    run_id: RunId
    task_id: TaskId
    session_id: SessionId
    principal: str
    chat: str
    who: Audience
    asked: str
    expires: str

    @property
    def place(self) -> str:
        """The name under which rules are kept that hold for all tasks of where it was asked."""
        return grants_place(self.chat, self.principal)


class AskedQuestion(NamedTuple):
    """A stored question and its state."""

    asked: Asked
    status: QuestionStatus
    answer: Answer | None

    @property
    def question(self) -> Question:
        """The question."""
        return self.asked.question


class Questions(Protocol):
    """Questions and plans: what persons are asked and what they were shown."""

    def ask(self, asked: Asked, /) -> Write[None]:
        """Store an open question. A replayed Turn asks again: what is stored stays as it is."""
        ...

    def get(self, question_id: QuestionId, /) -> Read[AskedQuestion | None]:
        """Return a question."""
        ...

    def page(
        self,
        principal: str | None,
        session_id: SessionId | None,
        status: QuestionStatus | None,
        before: str | None,
        limit: int,
    ) -> Read[list[AskedQuestion]]:
        """Return questions, newest first, behind the question `before`; None: everybody's, all."""
        ...

    def open_in(self, chat: str, /) -> Read[list[AskedQuestion]]:
        """Return the open questions of a chat, oldest first."""
        ...

    def open_of(self, run_id: RunId, /) -> Read[AskedQuestion | None]:
        """Return the open question of a run."""
        ...

    def expired(self, now: str, /) -> Read[list[AskedQuestion]]:
        """Return the open questions whose time is over."""
        ...

    def close(self, answer: Answer, now: str, /) -> Write[bool]:
        """Store the answer if the question is open: the first one wins. False for later ones."""
        ...

    def close_run(self, run_id: RunId, now: str, /) -> Write[None]:
        """Close the open questions of a run that ends."""
        ...

    def add_plan(
        self, run_id: RunId, session_id: SessionId, plan: Plan, now: str, /
    ) -> Write[None]:
        """Store a version of a run's plan, or its new state."""
        ...


class WrittenRule(NamedTuple):
    """A rule that a person wrote by answering: for a session, a chat or a principal's tasks."""

    number: int
    place: str
    rule: str
    principal: str
    via: str
    question_id: str
    created: str


class Grants(Protocol):
    """Rules that people wrote by their answers."""

    def add(self, rule: WrittenRule, /) -> Write[None]:
        """Store a rule for its place (its number is given here); one that is there stays."""
        ...

    def of(self, session_place: str, own_place: str, /) -> Read[list[str]]:
        """Return the rules that hold in either of these places."""
        ...

    def page(self, limit: int, /) -> Read[list[WrittenRule]]:
        """Return rules, newest first."""
        ...

    def remove(self, number: int, /) -> Write[WrittenRule | None]:
        """Delete a rule and return it; None when there is none of that number."""
        ...


class KnownPerson(NamedTuple):
    """A person of a channel who was given a right: `role` talk, operate or owner."""

    principal: str
    name: str
    role: Right
    via: str
    created: str


class People(Protocol):
    """Who was given rights besides those of the settings, and the codes that give them."""

    def add_code(self, code_hash: str, role: Right, now: str, expires: str, /) -> Write[None]:
        """Store a code that gives a right once; what has expired is deleted."""
        ...

    def take_code(self, code_hash: str, now: str, /) -> Write[Right | None]:
        """Use a code up; None when it was never made, was used, or has expired."""
        ...

    def add(self, person: KnownPerson, /) -> Write[None]:
        """Store a person's right in place of an older one."""
        ...

    def get(self, principal: str, /) -> Read[KnownPerson | None]:
        """Return what a person was given."""
        ...

    def all(self) -> Read[list[KnownPerson]]:
        """Return everybody, oldest first."""
        ...

    def remove(self, principal: str, /) -> Write[bool]:
        """Take a person's right away; False when there was none."""
        ...


AuditAction = Literal[
    "question.asked",
    "question.answered",
    "question.refused",
    "task.stopped",
    "rule.written",
    "rule.removed",
    "pairing.offered",
    "pairing.taken",
    "pairing.refused",
    "person.removed",
    "session.deleted",
]


class Deed(NamedTuple):
    """Who did what to which thing, through what; `at` is RFC 3339."""

    at: str
    principal: str
    via: str
    action: AuditAction
    target: str
    detail: str = ""


class Audit(Protocol):
    """Who did what. Nothing is ever changed or deleted here."""

    def add(self, deed: Deed, /) -> Write[None]:
        """Note a deed."""
        ...

    def count(self, principal: str | None, action: AuditAction, since: str, /) -> Read[int]:
        """Return how many such deeds there were since an instant; None: of anybody."""
        ...

    def page(self, limit: int, /) -> Read[list[Deed]]:
        """Return deeds, newest first."""
        ...
