"""All stores of one database."""

from pathlib import Path

from internal.agent.store.access import AuditStore, PermissionRuleStore, RoleStore
from internal.agent.store.artifacts import ArtifactStore
from internal.agent.store.call_outputs import CallOutputs
from internal.agent.store.call_repairs import CallRepairStore
from internal.agent.store.chats import (
    ChatStore,
    ContactStore,
    InboxStore,
    OutboxStore,
    RunDisplayStore,
)
from internal.agent.store.conversations import ConversationStore
from internal.agent.store.events import EventStore
from internal.agent.store.files import MAX_SESSION_BYTES, FileStore, HostStore
from internal.agent.store.lessons import LessonStore
from internal.agent.store.questions import QuestionStore
from internal.agent.store.retention.expired_rows import RetentionStore
from internal.agent.store.runs import LeadershipStore, ProcessStore, RunStore
from internal.agent.store.sessions import SessionStore
from internal.agent.store.tasks import ResultStore, SubtaskStore, TaskStore
from internal.agent.store.usage import UsageStore


class Stores:
    """One instance of every store.

    Stores have no state and know no database: each method returns a generator of statements for
    `Database.write` or `Database.read`. Only the output of running calls is in files of this host.

    Args:
        max_session_bytes: the size of the files of a session together.
        outputs: the folder of the output of running calls; None to keep none.
    """

    def __init__(
        self, *, max_session_bytes: int = MAX_SESSION_BYTES, outputs: Path | None = None
    ) -> None:
        self.sessions = SessionStore()
        self.tasks = TaskStore()
        self.subtasks = SubtaskStore()
        self.results = ResultStore()
        self.runs = RunStore()
        self.processes = ProcessStore()
        self.leaderships = LeadershipStore()
        self.events = EventStore()
        self.inbox = InboxStore()
        self.outbox = OutboxStore()
        self.questions = QuestionStore()
        self.permission_rules = PermissionRuleStore()
        self.roles = RoleStore()
        self.audit = AuditStore()
        self.usage = UsageStore()
        self.files = FileStore(max_session_bytes)
        self.hosts = HostStore()
        self.artifacts = ArtifactStore()
        self.chats = ChatStore()
        self.contacts = ContactStore()
        self.run_displays = RunDisplayStore()
        self.retention = RetentionStore()
        self.lessons = LessonStore()
        self.call_repairs = CallRepairStore()
        self.conversations = ConversationStore()
        self.call_outputs = CallOutputs(outputs)
