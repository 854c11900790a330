"""Queries: read operations with the rights of a principal."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, NoReturn

import msgspec

from internal.agent.app.events.subscription import Cursor, check_cursor
from internal.agent.app.runs.questions import Actor, can_answer, can_view
from internal.agent.domain.answers import answer_schema
from internal.agent.domain.artifacts import Artifact, ArtifactFilter
from internal.agent.domain.errors import NotFound
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.events.types import InputReceived
from internal.agent.domain.ids import ArtifactId, QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.permissions.rules import PermissionRule
from internal.agent.domain.plans import Plan, PlanEdit
from internal.agent.domain.principals import AuditEntry, Principal, RoleAssignment
from internal.agent.domain.questions import (
    Answer,
    ApprovalItem,
    Audience,
    Decision,
    Grant,
    QuestionKind,
    QuestionRecord,
    QuestionStatus,
)
from internal.agent.domain.react.history import StoredMessage
from internal.agent.domain.tasks import (
    Channel,
    Run,
    Session,
    SessionList,
    SessionListFilter,
    Status,
    Task,
    TaskFilter,
    TaskSummary,
)
from internal.agent.domain.usage import Spending, UsageKey, UsageSum
from internal.agent.store.database import Database, Read
from internal.agent.store.events import LogBounds
from internal.agent.store.stores import Stores
from internal.agent.store.tasks import list_calls_not_run

EVERY_SESSION = SessionListFilter()


class EventPage(NamedTuple):
    """Events of a session and the bounds of the log at the same moment.

    `reset_reason` says why the cursor cannot be resumed, "" if it can; see `check_cursor`.
    """

    bounds: LogBounds
    events: list[EventRecord]
    reset_reason: str = ""


class SubtaskItem(NamedTuple):
    """A subtask and its run, whose `subtask` is its place."""

    task: Task
    run: Run


class TaskListItem(NamedTuple):
    """A task in a list, with the spending of its newest run and all subtasks below it."""

    task: Task
    summary: TaskSummary
    spending: Spending


class TaskTree(NamedTuple):
    """A task, its newest run, and all subtasks below it, oldest first.

    The usage of each run includes all subtasks below it. `artifacts` are the newest versions of
    their files, oldest first. `calls_not_run` counts the last calls of its newest run if they were
    not run.
    """

    task: Task
    run: Run
    subtasks: list[SubtaskItem]
    artifacts: list[Artifact]
    calls_not_run: int = 0


class Queries:
    """Reads for channels, limited to the data of a principal. The owner may read everything.

    Data of another person is reported as not found. Each method reads one snapshot of the database,
    so that its result was true at one moment.
    """

    def __init__(self, database: Database, stores: Stores) -> None:
        self._database = database
        self._stores = stores

    async def task(self, task_id: TaskId, principal: Principal) -> Task:
        """Return a task.

        Raises:
            NotFound: the task does not exist or belongs to another person.
        """
        return await self._database.read(partial(self._get_task, task_id, principal))

    async def task_with_run(self, task_id: TaskId, principal: Principal) -> tuple[Task, Run]:
        """Return a task and its newest run at the same moment.

        The usage of the run includes all subtasks below it.

        Raises:
            NotFound: the task does not exist or belongs to another person.
        """

        def work() -> Read[tuple[Task, Run]]:
            task = yield from self._get_task(task_id, principal)
            run = yield from self._stores.runs.get_by_task(task_id)
            if run is None:
                _missing("task", task_id)
            return task, (yield from self._with_total(run))

        return await self._database.read(work)

    async def run_with_task(self, run_id: RunId, principal: Principal) -> tuple[Task, Run]:
        """Return a run and its task at the same moment.

        The usage of the run includes all subtasks below it.

        Raises:
            NotFound: the run does not exist or belongs to another person.
        """

        def work() -> Read[tuple[Task, Run]]:
            run = yield from self._stores.runs.get(run_id)
            if run is None:
                _missing("run", run_id)
            task = yield from self._stores.tasks.get(run.task_id)
            if task is None or not _may_read(principal, task.origin.principal):
                _missing("run", run_id)
            return task, (yield from self._with_total(run))

        return await self._database.read(work)

    async def cursor_before_run(self, run_id: RunId) -> Cursor:
        """Return the cursor before the first event of a run, or the start of a pruned log.

        Rights are not checked here: call `task_with_run` first.
        """

        def work() -> Read[Cursor]:
            bounds = yield from self._stores.events.get_bounds()
            kind = InputReceived.name
            events = yield from self._stores.events.list_by_run(run_id, kind)
            return Cursor(bounds.epoch, events[0].position - 1 if events else 0)

        return await self._database.read(work)

    async def task_tree(self, task_id: TaskId, principal: Principal) -> TaskTree:
        """Return a task with its newest run and all subtasks below it at the same moment.

        Raises:
            NotFound: the task does not exist or belongs to another person.
        """

        def work() -> Read[TaskTree]:
            task = yield from self._get_task(task_id, principal)
            run = yield from self._stores.runs.get_by_task(task_id)
            if run is None:
                _missing("task", task_id)
            root = task_id if run.subtask is None else run.subtask.root_task_id
            found: list[SubtaskItem] = []
            above = {task_id}
            runs = {
                each.task_id: each for each in (yield from self._stores.subtasks.list_tree(root))
            }
            for subtask in (yield from self._stores.tasks.list_by_id(runs)):
                if subtask.parent_task_id in above:
                    above.add(subtask.id)
                    found.append(SubtaskItem(subtask, runs[subtask.id]))
            spent = yield from self._stores.usage.list_of_trees(
                [run.id, *(item.run.id for item in found)]
            )
            run = _spent(run, spent[run.id])
            found = [SubtaskItem(each, _spent(own, spent[own.id])) for each, own in found]
            made = yield from self._stores.artifacts.list_of_tree(root)
            newest = {each.name: each for each in made if each.task_id in above}
            missed = yield from list_calls_not_run([task_id])
            return TaskTree(task, run, found, list(newest.values()), missed.get(task_id, 0))

        return await self._database.read(work)

    async def latest_run(self, task_id: TaskId, principal: Principal) -> Run:
        """Return the newest run of a task.

        Raises:
            NotFound: the task does not exist or belongs to another person.
        """
        return (await self.task_with_run(task_id, principal))[1]

    async def tasks(
        self,
        principal: Principal,
        *,
        session_id: SessionId | None = None,
        status: Status | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Task]:
        """Return tasks and subtasks, newest first, starting after the task id `before`.

        Raises:
            NotFound: the task `before` does not exist or belongs to another person.
        """
        who = _owner_filter(principal)
        wanted = TaskFilter(session_id=session_id, status=status, subtasks=True)

        def work() -> Read[list[Task]]:
            if before is not None:
                yield from _as_cursor(before, self._get_task(TaskId(before), principal))
            return (
                yield from self._stores.tasks.list_page(who, wanted, before=before, limit=limit)
            )

        return await self._database.read(work)

    async def task_list(
        self,
        principal: Principal,
        wanted: TaskFilter,
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> list[TaskListItem]:
        """Return tasks as a list shows them, newest first, starting after the task id `before`.

        Raises:
            NotFound: the task `before` or the parent does not exist or belongs to another person.
        """
        who = _owner_filter(principal)

        def work() -> Read[list[TaskListItem]]:
            if wanted.parent is not None:
                yield from self._get_task(wanted.parent, principal)
            if before is not None:
                yield from _as_cursor(before, self._get_task(TaskId(before), principal))
            tasks = yield from self._stores.tasks.list_page(who, wanted, before=before, limit=limit)
            summaries = yield from self._stores.tasks.list_summaries(task.id for task in tasks)
            runs = [summary.run_id for summary in summaries.values()]
            spent = yield from self._stores.usage.list_of_trees(runs)
            known = [(task, summaries.get(task.id, TaskSummary())) for task in tasks]
            return [
                TaskListItem(task, summary, spent.get(summary.run_id, Spending()))
                for task, summary in known
            ]

        return await self._database.read(work)

    async def session(self, session_id: SessionId, principal: Principal) -> Session:
        """Return a session.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """
        return await self._database.read(partial(self._get_session, session_id, principal))

    async def check_sessions(self, session_ids: Iterable[SessionId], principal: Principal) -> None:
        """Check that the principal may read sessions.

        Raises:
            NotFound: one of the sessions does not exist or belongs to another person.
        """

        def work() -> Read[None]:
            for session_id in session_ids:
                yield from self._get_session(session_id, principal)

        await self._database.read(work)

    async def sessions(
        self,
        principal: Principal,
        wanted: SessionListFilter = EVERY_SESSION,
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> SessionList:
        """Return sessions, pinned ones first, then last active first, after the id `before`.

        Raises:
            NotFound: the session `before` does not exist or belongs to another person.
        """
        who = _owner_filter(principal)

        def work() -> Read[SessionList]:
            if before is not None:
                yield from _as_cursor(before, self._get_session(SessionId(before), principal))
            return (yield from self._stores.sessions.list_page(who, wanted, before, limit))

        return await self._database.read(work)

    async def newest_session(self, principal: Principal, channel: Channel) -> Session | None:
        """Return the principal's most recently active session of a channel."""
        return await self._database.read(
            partial(self._stores.sessions.get_newest, principal.id, channel)
        )

    async def messages(
        self,
        session_id: SessionId,
        principal: Principal,
        *,
        before: int | None = None,
        limit: int = 50,
    ) -> list[StoredMessage]:
        """Return a session's messages before a position, newest first.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """

        def work() -> Read[list[StoredMessage]]:
            yield from self._get_session(session_id, principal)
            sessions = self._stores.sessions
            return (yield from sessions.list_messages(session_id, before, limit, as_written=True))

        return await self._database.read(work)

    async def events(
        self,
        session_id: SessionId,
        principal: Principal,
        *,
        after: Cursor | None = None,
        limit: int = 500,
    ) -> EventPage:
        """Return a session's events after a cursor or from the first one, oldest first.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """

        def read(_: LogBounds) -> Read[list[EventRecord]]:
            start = 0 if after is None else after.position
            return self._stores.events.list_after(start, [session_id], limit)

        return await self._event_page(session_id, principal, after, read)

    async def events_before(
        self, session_id: SessionId, principal: Principal, before: Cursor | None, *, limit: int
    ) -> EventPage:
        """Return a session's events before a cursor, or the newest ones, oldest first.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """

        def read(bounds: LogBounds) -> Read[list[EventRecord]]:
            end = bounds.head + 1 if before is None else before.position
            return self._stores.events.list_before(end, session_id, limit)

        return await self._event_page(session_id, principal, before, read)

    async def _event_page(
        self,
        session_id: SessionId,
        principal: Principal,
        cursor: Cursor | None,
        read: Callable[[LogBounds], Read[list[EventRecord]]],
    ) -> EventPage:
        def work() -> Read[EventPage]:
            yield from self._get_session(session_id, principal)
            bounds, reason = yield from check_cursor(self._stores.events, cursor)
            return EventPage(bounds, [] if reason else (yield from read(bounds)), reason)

        return await self._database.read(work)

    async def artifact(self, artifact_id: ArtifactId, principal: Principal) -> Artifact:
        """Return an artifact.

        Raises:
            NotFound: the artifact does not exist or belongs to another person.
        """
        return await self._database.read(partial(self._get_artifact, artifact_id, principal))

    async def artifacts(
        self,
        principal: Principal,
        wanted: ArtifactFilter,
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Artifact]:
        """Return artifacts, newest first, starting after the artifact id `before`.

        Raises:
            NotFound: the artifact `before` does not exist or belongs to another person.
        """
        who = _owner_filter(principal)

        def work() -> Read[list[Artifact]]:
            if before is not None:
                cursor = self._get_artifact(ArtifactId(before), principal)
                yield from _as_cursor(before, cursor)
            artifacts = self._stores.artifacts
            return (yield from artifacts.list_page(wanted, who, before=before, limit=limit))

        return await self._database.read(work)

    async def session_artifacts(
        self, session_id: SessionId, principal: Principal
    ) -> tuple[Session, list[Artifact]]:
        """Return a session and the newest version of each of its artifacts, oldest first.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """

        def work() -> Read[tuple[Session, list[Artifact]]]:
            session = yield from self._get_session(session_id, principal)
            newest = yield from self._stores.artifacts.list_newest(session_id)
            return session, [each.artifact for each in newest]

        return await self._database.read(work)

    async def usage(
        self,
        principal: Principal,
        by: UsageKey,
        *,
        session_id: SessionId | None = None,
        limit: int = 50,
    ) -> list[UsageSum]:
        """Return the usage by day, session or model, newest first.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """
        who = _owner_filter(principal)

        def work() -> Read[list[UsageSum]]:
            if session_id is not None:
                yield from self._get_session(session_id, principal)
            return (yield from self._stores.usage.sum_by(by, session_id, who, limit=limit))

        return await self._database.read(work)

    async def question(
        self, question_id: QuestionId, principal: Principal, chat: str = ""
    ) -> QuestionRecord:
        """Return a question. `chat` is the chat that the request came from, "" without a chat.

        Raises:
            NotFound: the question does not exist or the principal must not see it.
        """
        return await self._database.read(partial(self._get_question, question_id, principal, chat))

    async def question_with_task(
        self, question_id: QuestionId, principal: Principal
    ) -> tuple[QuestionRecord, Task]:
        """Return a question and its task at the same moment.

        Raises:
            NotFound: the question does not exist or the principal must not see it.
        """

        def work() -> Read[tuple[QuestionRecord, Task]]:
            found = yield from self._get_question(question_id, principal)
            return found, (yield from self._get_task(found.task_id, principal))

        return await self._database.read(work)

    async def questions(
        self,
        principal: Principal,
        *,
        status: QuestionStatus | None = "open",
        session_id: SessionId | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[tuple[QuestionRecord, Task]]:
        """Return questions of the principal's tasks, newest first, after the id `before`.

        Raises:
            NotFound: the question `before` does not exist or must not be seen.
        """
        who = _owner_filter(principal)

        def work() -> Read[list[tuple[QuestionRecord, Task]]]:
            if before is not None:
                yield from _as_cursor(before, self._get_question(QuestionId(before), principal))
            records = yield from self._stores.questions.list_page(
                who, session_id, status, before=before, limit=limit
            )
            ids = {record.task_id for record in records}
            tasks = {task.id: task for task in (yield from self._stores.tasks.list_by_id(ids))}
            return [(record, tasks[record.task_id]) for record in records]

        return await self._database.read(work)

    async def open_questions(self, chat: str) -> list[QuestionRecord]:
        """Return the open questions of a chat, oldest first."""
        return await self._database.read(partial(self._stores.questions.list_open_in_chat, chat))

    async def open_questions_everywhere(self, *, limit: int = 500) -> list[QuestionRecord]:
        """Return the newest open questions of all chats, oldest first.

        Which of them a person may see is up to the caller.
        """
        work = partial(
            self._stores.questions.list_page, None, None, "open", before=None, limit=limit
        )
        return (await self._database.read(work))[::-1]

    async def rules(self, principal: Principal, *, limit: int = 200) -> list[PermissionRule]:
        """Return the permission rules that people granted, newest first.

        Raises:
            Forbidden: the principal is not the owner.
        """
        principal.require_owner("read this")
        return await self._database.read(partial(self._stores.permission_rules.list_page, limit))

    async def people(self, principal: Principal) -> list[RoleAssignment]:
        """Return the roles that were granted by pairing codes, oldest first.

        Raises:
            Forbidden: the principal is not the owner.
        """
        principal.require_owner("read this")
        return await self._database.read(self._stores.roles.list_all)

    async def audit_entries(self, principal: Principal, *, limit: int = 100) -> list[AuditEntry]:
        """Return the audit log, newest first.

        Raises:
            Forbidden: the principal is not the owner.
        """
        principal.require_owner("read this")
        return await self._database.read(partial(self._stores.audit.list_page, limit))

    async def bounds(self) -> LogBounds:
        """Return the log's ends."""
        return await self._database.read(self._stores.events.get_bounds)

    def _get_task(self, task_id: TaskId, principal: Principal) -> Read[Task]:
        task = yield from self._stores.tasks.get(task_id)
        if task is None or not _may_read(principal, task.origin.principal):
            _missing("task", task_id)
        return task

    def _with_total(self, run: Run) -> Read[Run]:
        return _spent(run, (yield from self._stores.usage.get_of_tree(run.id)))

    def _get_artifact(self, artifact_id: ArtifactId, principal: Principal) -> Read[Artifact]:
        found = yield from self._stores.artifacts.get(artifact_id)
        if found is None or not _may_read(principal, found.principal):
            _missing("artifact", artifact_id)
        return found.artifact

    def _get_session(self, session_id: SessionId, principal: Principal) -> Read[Session]:
        session = yield from self._stores.sessions.get(session_id)
        if session is None or not _may_read(principal, session.owner):
            _missing("session", session_id)
        return session

    def _get_question(
        self, question_id: QuestionId, principal: Principal, chat: str = ""
    ) -> Read[QuestionRecord]:
        found = yield from self._stores.questions.get(question_id)
        if found is None or not can_view(found, Actor(principal, "cli", chat)):
            _missing("question", question_id)
        return found


def _spent(run: Run, spending: Spending) -> Run:
    """Return a run with the spending of it and all subtasks below it."""
    return msgspec.structs.replace(run, usage=spending.usage, cost=spending.cost)


def _as_cursor(name: str, known: Read[object]) -> Read[None]:
    """Read the item after which a page starts.

    Raises:
        NotFound: there is no such item.
    """
    try:
        yield from known
    except NotFound as error:
        raise NotFound(
            f"The cursor {name[:80]} does not exist.", reason_code="no_cursor", name=name[:80]
        ) from error


def _owner_filter(principal: Principal) -> str | None:
    """Return the owner whose data a list contains; None if it contains everybody's."""
    return None if principal.may("owner") else principal.id


def _may_read(principal: Principal, owner: str) -> bool:
    return principal.may("owner") or principal.id == owner


def _missing(kind: str, name: str) -> NoReturn:
    raise NotFound(
        f"There is no {kind} {name[:80]}.", reason_code="none_of_kind", kind=kind, name=name[:80]
    )


MAX_TASK_CHARACTERS = 200
"""Characters of the task that are shown with its question."""


class AnswerView(msgspec.Struct, frozen=True):
    """The accepted answer. `by` is a principal and `via` a channel."""

    decision: Decision
    text: str
    by: str
    name: str
    via: str
    at: str
    edit: PlanEdit | None
    choices: tuple[int, ...]
    items: dict[str, bool]
    grant: Grant
    rules: tuple[str, ...]


class QuestionView(msgspec.Struct, frozen=True):
    """A question as the API returns it.

    `task` is the beginning of the instruction. `may_answer` is True if the question is open and
    the caller may answer it; `answer_schema` is the JSON schema of an answer. `reason_code` says
    why a run cannot continue by itself, "" for other questions. `asked_by` is the place of the
    subtask that asks, such as `task 2 · analyst`, "" for the task itself; `asker_number` and
    `asker_role` are its parts.
    """

    question_id: QuestionId
    run_id: RunId
    task_id: TaskId
    session_id: SessionId
    channel: Channel
    task: str
    kind: QuestionKind
    title: str
    body: str
    options: tuple[str, ...]
    multiple: bool
    calls: tuple[ApprovalItem, ...]
    plan: Plan | None
    who: Audience
    status: QuestionStatus
    asked: str
    expires: str
    may_answer: bool
    answer: AnswerView | None
    answer_schema: dict[str, Any]
    reason_code: str
    asked_by: str
    asker_number: int
    asker_role: str


def question_view(record: QuestionRecord, task: Task, actor: Actor) -> QuestionView:
    """Return the view of a question for an actor."""
    question = record.question
    return QuestionView(
        question_id=question.id,
        run_id=record.run_id,
        task_id=record.task_id,
        session_id=record.session_id,
        channel=task.origin.channel,
        task=task.instruction[:MAX_TASK_CHARACTERS],
        kind=question.kind,
        title=question.title,
        body=question.body,
        options=question.options,
        multiple=question.multiple,
        calls=question.calls,
        plan=question.plan,
        who=record.audience,
        status=record.status,
        asked=record.asked,
        expires=record.expires,
        may_answer=record.status == "open" and can_answer(record, actor),
        answer=None if record.answer is None else _view_of_answer(record.answer),
        answer_schema=answer_schema(question),
        reason_code=question.reason_code,
        asked_by=question.asked_by,
        asker_number=question.asker_number,
        asker_role=question.asker_role,
    )


def _view_of_answer(answer: Answer) -> AnswerView:
    fields = {name: getattr(answer, name) for name in AnswerView.__struct_fields__}
    return AnswerView(**fields)
