"""What the agent keeps. Every method is a piece of work for `Database.write` or `.read`."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from internal.agent.domain.budgets import Usage
from internal.agent.domain.ids import QuestionId, RunId, SessionId
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import Answer, Question
from internal.agent.ports.conversations import Inbox, Sessions, Tasks
from internal.agent.ports.database import Read, Write
from internal.agent.ports.delivery import Outbox, Showings
from internal.agent.ports.log import EventLog
from internal.agent.ports.runs import Runs


class OpenQuestion(NamedTuple):
    """A stored question and its state."""

    question: Question
    run_id: RunId
    session_id: SessionId
    status: str
    expires: str
    answer: Answer | None


class Questions(Protocol):
    """Questions and plans: what persons are asked and what they were shown."""

    def ask(
        self, question: Question, run_id: RunId, session_id: SessionId, now: str, expires: str, /
    ) -> Write[None]:
        """Store an open question."""
        ...

    def get(self, question_id: QuestionId, /) -> Read[OpenQuestion | None]:
        """Return a question."""
        ...

    def open_for(self, session_id: SessionId, /) -> Read[list[OpenQuestion]]:
        """Return a session's open questions, oldest first."""
        ...

    def expired(self, now: str, /) -> Read[list[OpenQuestion]]:
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


CostKey = Literal["day", "session", "model"]


class CostSum(NamedTuple):
    """What was used under a key. `cost` in US dollars, of what has a known price; None: nothing."""

    key: str
    usage: Usage
    cost: float | None


class Costs(Protocol):
    """What models were used and what they cost."""

    def sums(
        self, by: CostKey, session_id: SessionId | None, owner: str | None, limit: int, /
    ) -> Read[list[CostSum]]:
        """Return what was used, the newest key first; None: of all sessions, of everybody."""
        ...

    def add(
        self,
        session_id: SessionId,
        run_id: RunId,
        model: str,
        usage: Usage,
        cost: float | None,
        now: str,
    ) -> Write[None]:
        """Add what a run used of one model."""
        ...


@dataclass(frozen=True, slots=True)
class Stores:
    """All stores of one database."""

    log: EventLog
    runs: Runs
    tasks: Tasks
    sessions: Sessions
    inbox: Inbox
    questions: Questions
    costs: Costs
    outbox: Outbox
    showings: Showings
