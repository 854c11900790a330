"""What the agent keeps. Every method is a piece of work for `Database.write` or `.read`."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from internal.agent.domain.budgets import Usage
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.chats import Chats
from internal.agent.ports.conversations import Inbox, Sessions, Tasks
from internal.agent.ports.database import Read, Write
from internal.agent.ports.delivery import Outbox, Showings
from internal.agent.ports.log import EventLog
from internal.agent.ports.people import Audit, Grants, People, Questions
from internal.agent.ports.runs import Runs

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
    grants: Grants
    people: People
    audit: Audit
    chats: Chats
