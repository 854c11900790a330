"""Records: what a principal may read. A foreign id is answered like a missing one."""

from functools import partial
from typing import Any, NoReturn

import msgspec

from internal.agent.app.runs.questions import Actor, can_answer, can_view
from internal.agent.domain.answers import answer_schema
from internal.agent.domain.errors import Forbidden, NotFound
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.messages import Message
from internal.agent.domain.plans import Plan, PlanEdit
from internal.agent.domain.principals import Principal
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
from internal.agent.domain.usage import UsageKey
from internal.agent.store.access import AuditEntry, PermissionRule, RoleAssignment
from internal.agent.store.database import Database
from internal.agent.store.events import LogBounds
from internal.agent.store.stores import Stores
from internal.agent.store.usage import UsageSum


class Queries:
    """Reads for the doors, scoped to the person. The owner sees everything."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self._database = database
        self._stores = stores

    async def task(self, task_id: TaskId, principal: Principal) -> Task:
        """Return a task.

        Raises:
            NotFound: it does not exist or belongs to somebody else.
        """
        task = await self._database.read(partial(self._stores.tasks.get, task_id))
        if task is None or not _sees(principal, task.origin.principal):
            _missing("task", task_id)
        return task

    async def latest_run(self, task_id: TaskId, principal: Principal) -> Run:
        """Return the newest run of a task.

        Raises:
            NotFound: the task does not exist or belongs to somebody else.
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
        """Return tasks, newest first, behind the task id `before`."""
        who = None if principal.may("owner") else principal.id
        return await self._database.read(
            partial(
                self._stores.tasks.list_page, who, session_id, status, before=before, limit=limit
            )
        )

    async def session(self, session_id: SessionId, principal: Principal) -> Session:
        """Return a session.

        Raises:
            NotFound: it does not exist or belongs to somebody else.
        """
        session = await self._database.read(partial(self._stores.sessions.get, session_id))
        if session is None or not _sees(principal, session.owner):
            _missing("session", session_id)
        return session

    async def sessions(
        self, principal: Principal, *, before: str | None = None, limit: int = 50
    ) -> list[SessionSummary]:
        """Return sessions, last active first, behind the session id `before`."""
        who = None if principal.may("owner") else principal.id
        return await self._database.read(
            partial(self._stores.sessions.list_page, who, before, limit)
        )

    async def newest_session(self, principal: Principal, channel: Channel) -> Session | None:
        """Return the person's session that was last active in a channel."""
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
            NotFound: the session does not exist or belongs to somebody else.
        """
        await self.session(session_id, principal)
        return await self._database.read(
            partial(self._stores.sessions.list_messages, session_id, before, limit)
        )

    async def events(
        self, session_id: SessionId, principal: Principal, *, after: int = 0, limit: int = 500
    ) -> list[EventRecord]:
        """Return a session's events behind a position, oldest first.

        Raises:
            NotFound: the session does not exist or belongs to somebody else.
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
        """Return what was used, by day, session or model, the newest first.

        Raises:
            NotFound: the session does not exist or belongs to somebody else.
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
        """Return a question; `chat` names the chat that the person looks from.

        Raises:
            NotFound: it does not exist or is somebody else's.
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
        """Return questions about the person's tasks, newest first, behind the id `before`."""
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
        """Return the rules that people wrote, newest first.

        Raises:
            Forbidden: only the owner may see them.
        """
        _owner(principal)
        return await self._database.read(partial(self._stores.permission_rules.list_page, limit))

    async def people(self, principal: Principal) -> list[RoleAssignment]:
        """Return who was given rights besides those of the settings, oldest first.

        Raises:
            Forbidden: only the owner may see them.
        """
        _owner(principal)
        return await self._database.read(self._stores.roles.list_all)

    async def audit_entries(self, principal: Principal, *, limit: int = 100) -> list[AuditEntry]:
        """Return who did what, newest first.

        Raises:
            Forbidden: only the owner may see it.
        """
        _owner(principal)
        return await self._database.read(partial(self._stores.audit.list_page, limit))

    async def bounds(self) -> LogBounds:
        """Return the log's ends."""
        return await self._database.read(self._stores.events.get_bounds)


def _sees(principal: Principal, owner: str) -> bool:
    return principal.may("owner") or principal.id == owner


def _owner(principal: Principal) -> None:
    if not principal.may("owner"):
        raise Forbidden("Only the owner may see this.")


def _missing(kind: str, name: str) -> NoReturn:
    raise NotFound(f"There is no {kind} {name[:80]}.")


MAX_TASK_CHARACTERS = 200
"""Characters of the task that are shown beside its question."""


class AnswerView(msgspec.Struct, frozen=True):
    """The answer that counted: who gave it, through what, when. `by` is a principal."""

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
    """A question: `calls` of an approval, the `plan` of a review, `task` the words that led to it.

    `may_answer`: it is open and whoever asks may answer it; what fits says `answer_schema`.
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


def question_view(found: QuestionRecord, task: Task, answerer: Actor) -> QuestionView:
    """Return a question as this person sees it."""
    question = found.question
    return QuestionView(
        question_id=question.id,
        run_id=found.run_id,
        task_id=found.task_id,
        session_id=found.session_id,
        channel=task.origin.channel,
        task=task.instruction[:MAX_TASK_CHARACTERS],
        kind=question.kind,
        title=question.title,
        body=question.body,
        options=question.options,
        multiple=question.multiple,
        calls=question.calls,
        plan=question.plan,
        who=found.audience,
        status=found.status,
        asked=found.asked,
        expires=found.expires,
        may_answer=found.status == "open" and can_answer(found, answerer),
        answer=None if found.answer is None else _view_of_answer(found.answer),
        answer_schema=answer_schema(question),
    )


def _view_of_answer(answer: Answer) -> AnswerView:
    fields = {name: getattr(answer, name) for name in AnswerView.__struct_fields__}
    return AnswerView(**fields)
