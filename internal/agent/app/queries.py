"""Queries: what a principal may read."""

from functools import partial
from typing import Any, NoReturn

import msgspec

from internal.agent.app.runs.questions import Actor, can_answer, can_view
from internal.agent.domain.answers import answer_schema
from internal.agent.domain.errors import Forbidden, NotFound
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.messages import Message
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
from internal.agent.domain.tasks import Channel, Run, Session, SessionSummary, Status, Task
from internal.agent.domain.usage import UsageKey, UsageSum
from internal.agent.store.database import Database
from internal.agent.store.events import LogBounds
from internal.agent.store.stores import Stores


class Queries:
    """Reads for channels, limited to the data of a principal. The owner may read everything.

    Data of another person is reported as not found.
    """

    def __init__(self, database: Database, stores: Stores) -> None:
        self._database = database
        self._stores = stores

    async def task(self, task_id: TaskId, principal: Principal) -> Task:
        """Return a task.

        Raises:
            NotFound: the task does not exist or belongs to another person.
        """
        task = await self._database.read(partial(self._stores.tasks.get, task_id))
        if task is None or not _may_read(principal, task.origin.principal):
            _missing("task", task_id)
        return task

    async def latest_run(self, task_id: TaskId, principal: Principal) -> Run:
        """Return the newest run of a task.

        Raises:
            NotFound: the task does not exist or belongs to another person.
        """
        await self.task(task_id, principal)
        run = await self._database.read(partial(self._stores.runs.get_by_task, task_id))
        if run is None:
            _missing("task", task_id)
        return run

    async def tasks(
        self,
        principal: Principal,
        *,
        session_id: SessionId | None = None,
        status: Status | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Task]:
        """Return tasks, newest first, starting after the task id `before`."""
        who = None if principal.may("owner") else principal.id
        return await self._database.read(
            partial(
                self._stores.tasks.list_page, who, session_id, status, before=before, limit=limit
            )
        )

    async def session(self, session_id: SessionId, principal: Principal) -> Session:
        """Return a session.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """
        session = await self._database.read(partial(self._stores.sessions.get, session_id))
        if session is None or not _may_read(principal, session.owner):
            _missing("session", session_id)
        return session

    async def sessions(
        self, principal: Principal, *, before: str | None = None, limit: int = 50
    ) -> list[SessionSummary]:
        """Return sessions, last active first, starting after the session id `before`."""
        who = None if principal.may("owner") else principal.id
        return await self._database.read(
            partial(self._stores.sessions.list_page, who, before, limit)
        )

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
    ) -> list[tuple[int, RunId, Message, str]]:
        """Return a session's messages before a position, newest first.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """
        await self.session(session_id, principal)
        return await self._database.read(
            partial(self._stores.sessions.list_messages, session_id, before, limit)
        )

    async def events(
        self, session_id: SessionId, principal: Principal, *, after: int = 0, limit: int = 500
    ) -> list[EventRecord]:
        """Return a session's events after a position, oldest first.

        Raises:
            NotFound: the session does not exist or belongs to another person.
        """
        await self.session(session_id, principal)
        return await self._database.read(
            partial(self._stores.events.list_after, after, [session_id], limit)
        )

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
        if session_id is not None:
            await self.session(session_id, principal)
        who = None if principal.may("owner") else principal.id
        return await self._database.read(
            partial(self._stores.usage.sum_by, by, session_id, who, limit=limit)
        )

    async def question(
        self, question_id: QuestionId, principal: Principal, chat: str = ""
    ) -> QuestionRecord:
        """Return a question. `chat` is the chat that the request came from, "" for none.

        Raises:
            NotFound: the question does not exist or the principal must not see it.
        """
        found = await self._database.read(partial(self._stores.questions.get, question_id))
        if found is None or not can_view(found, Actor(principal, "cli", chat)):
            _missing("question", question_id)
        return found

    async def questions(
        self,
        principal: Principal,
        *,
        status: QuestionStatus | None = "open",
        session_id: SessionId | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[QuestionRecord]:
        """Return questions of the principal's tasks, newest first, after the id `before`."""
        who = None if principal.may("owner") else principal.id
        return await self._database.read(
            partial(
                self._stores.questions.list_page,
                who,
                session_id,
                status,
                before=before,
                limit=limit,
            )
        )

    async def open_questions(self, chat: str) -> list[QuestionRecord]:
        """Return the open questions of a chat, oldest first."""
        return await self._database.read(partial(self._stores.questions.list_open_in_chat, chat))

    async def rules(self, principal: Principal, *, limit: int = 200) -> list[PermissionRule]:
        """Return the permission rules that answers added, newest first.

        Raises:
            Forbidden: the principal is not the owner.
        """
        _require_owner(principal)
        return await self._database.read(partial(self._stores.permission_rules.list_page, limit))

    async def people(self, principal: Principal) -> list[RoleAssignment]:
        """Return the roles that were granted by pairing codes, oldest first.

        Raises:
            Forbidden: the principal is not the owner.
        """
        _require_owner(principal)
        return await self._database.read(self._stores.roles.list_all)

    async def audit_entries(self, principal: Principal, *, limit: int = 100) -> list[AuditEntry]:
        """Return the audit log, newest first.

        Raises:
            Forbidden: the principal is not the owner.
        """
        _require_owner(principal)
        return await self._database.read(partial(self._stores.audit.list_page, limit))

    async def bounds(self) -> LogBounds:
        """Return the log's ends."""
        return await self._database.read(self._stores.events.get_bounds)


def _may_read(principal: Principal, owner: str) -> bool:
    return principal.may("owner") or principal.id == owner


def _require_owner(principal: Principal) -> None:
    if not principal.may("owner"):
        raise Forbidden("Only the owner may read this.")


def _missing(kind: str, name: str) -> NoReturn:
    raise NotFound(f"There is no {kind} {name[:80]}.")


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
    the caller may answer it; `answer_schema` is the JSON schema of an answer.
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
    )


def _view_of_answer(answer: Answer) -> AnswerView:
    fields = {name: getattr(answer, name) for name in AnswerView.__struct_fields__}
    return AnswerView(**fields)
