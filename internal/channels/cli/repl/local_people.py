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
from internal.agent.store.questions import QuestionRecord, QuestionStatus
from internal.channels.cli.client import (
    Code,
    DeedRow,
    HostError,
    PersonRow,
    QuestionRow,
    Role,
    RuleRow,
)
from internal.channels.cli.repl.local_services import Desk
from internal.channels.cli.repl.question_json import view_of


class LocalPeople:
    """The part of this process as the host that is about people."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def questions(
        self, status: str | None = "open", session_id: str | None = None, limit: int = 50
    ) -> list[QuestionRow]:
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

    async def question(self, question_id: str) -> QuestionRow:
        """Return a question."""
        with sentences():
            found = await self.desk.gateway.queries.question(QuestionId(question_id), LOCAL_OWNER)
            return await self._row(found)

    async def answer(self, question_id: str, given: Mapping[str, Any]) -> QuestionRow:
        """Answer a question; the first answer counts."""
        with sentences():
            answered = await self.desk.gateway.answer(
                QuestionId(question_id),
                msgspec.convert(dict(given), AnswerInput),
                Actor(LOCAL_OWNER, "cli"),
            )
            return await self._row(answered)

    async def pair(self, role: Role) -> Code:
        """Make a code that gives a right, once."""
        with sentences():
            offered = await self.desk.gateway.access.offer(role, LOCAL_OWNER, "cli")
        return Code(offered.code, offered.expires)

    async def people(self) -> list[PersonRow]:
        """Return who was given rights, oldest first."""
        with sentences():
            found = await self.desk.gateway.queries.people(LOCAL_OWNER)
        return [PersonRow(*one) for one in found]

    async def unpair(self, principal: str) -> None:
        """Take a person's right away."""
        with sentences():
            await self.desk.gateway.access.remove(principal, LOCAL_OWNER, "cli")

    async def rules(self) -> list[RuleRow]:
        """Return the rules that people wrote, newest first."""
        with sentences():
            found = await self.desk.gateway.queries.rules(LOCAL_OWNER)
        return [RuleRow(*one) for one in found]

    async def remove_rule(self, number: int) -> None:
        """Delete a rule."""
        with sentences():
            await self.desk.gateway.remove_rule(number, LOCAL_OWNER, "cli")

    async def deeds(self, limit: int = 50) -> list[DeedRow]:
        """Return who did what, newest first."""
        with sentences():
            found = await self.desk.gateway.queries.deeds(LOCAL_OWNER, limit=limit)
        return [DeedRow(*one) for one in found]

    async def _row(self, found: QuestionRecord) -> QuestionRow:
        task = await self.desk.gateway.queries.task(found.task_id, LOCAL_OWNER)
        view = view_of(found, task)
        return QuestionRow._make([*(view[name] for name in QuestionRow._fields[:-1]), view])


@contextmanager
def sentences() -> Generator[None]:
    """Turn the house's errors into the host's."""
    try:
        yield
    except LarkspurError as error:
        raise HostError(str(error)) from error
    except msgspec.ValidationError as error:
        raise HostError(f"{error}.") from error
