"""What the agent keeps. Every method is a piece of work for `Database.write` or `.read`."""

from dataclasses import dataclass

from internal.storage.stores.chats import ChatStore
from internal.storage.stores.costs import CostStore
from internal.storage.stores.inbox import InboxStore
from internal.storage.stores.log import LogStore
from internal.storage.stores.outbox import OutboxStore
from internal.storage.stores.people import AuditStore, GrantStore, PeopleStore
from internal.storage.stores.questions import QuestionStore
from internal.storage.stores.runs import RunStore
from internal.storage.stores.sessions import SessionStore
from internal.storage.stores.showings import ShowingStore
from internal.storage.stores.tasks import TaskStore


@dataclass(frozen=True, slots=True)
class Stores:
    """All stores of one database."""

    log: LogStore
    runs: RunStore
    tasks: TaskStore
    sessions: SessionStore
    inbox: InboxStore
    questions: QuestionStore
    costs: CostStore
    outbox: OutboxStore
    showings: ShowingStore
    grants: GrantStore
    people: PeopleStore
    audit: AuditStore
    chats: ChatStore


def make_stores() -> Stores:
    """Return all stores. They keep nothing themselves and fit every database."""
    return Stores(
        log=LogStore(),
        runs=RunStore(),
        tasks=TaskStore(),
        sessions=SessionStore(),
        inbox=InboxStore(),
        questions=QuestionStore(),
        costs=CostStore(),
        outbox=OutboxStore(),
        showings=ShowingStore(),
        grants=GrantStore(),
        people=PeopleStore(),
        audit=AuditStore(),
        chats=ChatStore(),
    )
