"""Questions and people in the house of this process: what persons are asked, and what they may."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from internal.agent.app.runs.questions import Actor
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.ids import QuestionId, SessionId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord, QuestionStatus
from internal.channels.cli.client import (
    AuditItem,
    GatewayError,
    IssuedCode,
    PersonItem,
    QuestionItem,
    Role,
    RuleItem,
)
from internal.channels.cli.repl.local_services import Desk
from internal.channels.cli.repl.question_json import view_of


class LocalPeople:
    """The part of this process as the client that is about people."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def questions(
        self, status: str | None = "open", session_id: str | None = None, limit: int = 50
    ) -> list[QuestionItem]:
        """Return questions, newest first."""
        wanted = None if session_id is None else SessionId(session_id)
        with sentences():
            found = await self.desk.gateway.queries.questions(
                LOCAL_OWNER,
                status=msgspec.convert(status, QuestionStatus | None),
                session_id=wanted,
                limit=limit,
            )
            return [await self._row(one) for one in found]

    async def question(self, question_id: str) -> QuestionItem:
        """Return a question."""
        with sentences():
            found = await self.desk.gateway.queries.question(QuestionId(question_id), LOCAL_OWNER)
            return await self._row(found)

    async def answer(self, question_id: str, given: Mapping[str, Any]) -> QuestionItem:
        """Answer a question; the first answer counts."""
        with sentences():
            answered = await self.desk.gateway.answer(
                QuestionId(question_id),
                msgspec.convert(dict(given), AnswerInput),
                Actor(LOCAL_OWNER, "cli"),
            )
            return await self._row(answered)

    async def pair(self, role: Role) -> IssuedCode:
        """Make a code that gives a right, once."""
        with sentences():
            offered = await self.desk.gateway.access.create_code(role, LOCAL_OWNER, "cli")
        return IssuedCode(offered.code, offered.expires)

    async def people(self) -> list[PersonItem]:
        """Return who was given rights, oldest first."""
        with sentences():
            found = await self.desk.gateway.queries.people(LOCAL_OWNER)
        return [PersonItem(*one) for one in found]

    async def unpair(self, principal: str) -> None:
        """Take a person's right away."""
        with sentences():
            await self.desk.gateway.access.remove_role(principal, LOCAL_OWNER, "cli")

    async def rules(self) -> list[RuleItem]:
        """Return the rules that people wrote, newest first."""
        with sentences():
            found = await self.desk.gateway.queries.rules(LOCAL_OWNER)
        return [RuleItem(*one) for one in found]

    async def remove_rule(self, number: int) -> None:
        """Delete a rule."""
        with sentences():
            await self.desk.gateway.remove_rule(number, LOCAL_OWNER, "cli")

    async def audit_entries(self, limit: int = 50) -> list[AuditItem]:
        """Return who did what, newest first."""
        with sentences():
            found = await self.desk.gateway.queries.audit_entries(LOCAL_OWNER, limit=limit)
        return [AuditItem(*one) for one in found]

    async def _row(self, found: QuestionRecord) -> QuestionItem:
        task = await self.desk.gateway.queries.task(found.task_id, LOCAL_OWNER)
        view = view_of(found, task)
        return QuestionItem._make([*(view[name] for name in QuestionItem._fields[:-1]), view])


@contextmanager
def sentences() -> Generator[None]:
    """Turn the house's errors into the client's."""
    try:
        yield
    except LarkspurError as error:
        raise GatewayError(str(error)) from error
    except msgspec.ValidationError as error:
        raise GatewayError(f"{error}.") from error
