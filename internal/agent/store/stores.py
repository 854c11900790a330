"""What the agent keeps. Every method is a piece of work for `Database.write` or `.read`."""

from dataclasses import dataclass

from internal.agent.store.access import AuditStore, PermissionRuleStore, RoleStore
from internal.agent.store.chats import ChatStore
from internal.agent.store.events import EventStore
from internal.agent.store.inbox import InboxStore
from internal.agent.store.outbox import OutboxStore
from internal.agent.store.questions import QuestionStore
from internal.agent.store.run_displays import RunDisplayStore
from internal.agent.store.runs import RunStore
from internal.agent.store.sessions import SessionStore
from internal.agent.store.tasks import TaskStore
from internal.agent.store.usage import UsageStore


@dataclass(frozen=True, slots=True)
class Stores:
    """All stores of one database."""

    log: EventStore
    runs: RunStore
    tasks: TaskStore
    sessions: SessionStore
    inbox: InboxStore
    questions: QuestionStore
    costs: UsageStore
    outbox: OutboxStore
    showings: RunDisplayStore
    grants: PermissionRuleStore
    people: RoleStore
    audit: AuditStore
    chats: ChatStore


def make_stores() -> Stores:
    """Return all stores. They keep nothing themselves and fit every database."""
    return Stores(
        log=EventStore(),
        runs=RunStore(),
        tasks=TaskStore(),
        sessions=SessionStore(),
        inbox=InboxStore(),
        questions=QuestionStore(),
        costs=UsageStore(),
        outbox=OutboxStore(),
        showings=RunDisplayStore(),
        grants=PermissionRuleStore(),
        people=RoleStore(),
        audit=AuditStore(),
        chats=ChatStore(),
    )
