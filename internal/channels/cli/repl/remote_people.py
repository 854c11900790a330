"""Questions and people through a gateway: what persons are asked, and what they may."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from internal.channels.cli.client import (
    AuditItem,
    IssuedCode,
    PersonItem,
    QuestionItem,
    Role,
    RuleItem,
)
from internal.channels.cli.repl.request_threads import PatientDoor
from internal.channels.cli.task_request import Ids


class RemotePeople(PatientDoor):
    """The part of a gateway as the client that is about people."""

    async def questions(
        self, status: str | None = "open", session_id: str | None = None, limit: int = 50
    ) -> list[QuestionItem]:
        """Return questions, newest first."""
        named = {"limit": str(limit), "status": status, "session_id": session_id}
        wanted = {name: value for name, value in named.items() if value is not None}
        found = await self.ask(lambda door: door.get(f"/api/questions?{urlencode(wanted)}"))
        return [_question(one) for one in found["questions"]]

    async def question(self, question_id: str) -> QuestionItem:
        """Return a question."""
        path = f"/api/questions/{quote(question_id, safe='')}"
        return _question(await self.ask(lambda door: door.get(path)))

    async def answer(self, question_id: str, given: Mapping[str, Any]) -> QuestionItem:
        """Answer a question. Never sent twice: a second one would be told who was first."""
        path = f"/api/questions/{quote(question_id, safe='')}/answer"
        return _question(await self.ask(lambda door: door.post(path, given), tries=1))

    async def resume(self, task_id: str) -> Ids:
        """Go on where a task ended; never sent twice, whatever becomes of the answer."""
        path = f"/api/tasks/{quote(task_id, safe='')}/resume"
        made = await self.ask(lambda door: door.post(path, {}), tries=1)
        return Ids(made["session_id"], made["task_id"], made["run_id"])

    async def pair(self, role: Role) -> IssuedCode:
        """Make a code that gives a right, once."""
        offered = await self.ask(lambda door: door.post("/api/pairings", {"role": role}))
        return IssuedCode(offered["code"], offered["expires"])

    async def people(self) -> list[PersonItem]:
        """Return who was given rights, oldest first."""
        found = await self.ask(lambda door: door.get("/api/people"))
        return [PersonItem(*picked(one, PersonItem._fields)) for one in found["people"]]

    async def unpair(self, principal: str) -> None:
        """Take a person's right away."""
        path = f"/api/people/{quote(principal, safe='')}"
        await self.ask(lambda door: door.delete(path))

    async def rules(self) -> list[RuleItem]:
        """Return the rules that people wrote, newest first."""
        found = await self.ask(lambda door: door.get("/api/rules"))
        return [RuleItem(*picked(one, RuleItem._fields)) for one in found["rules"]]

    async def remove_rule(self, number: int) -> None:
        """Delete a rule."""
        await self.ask(lambda door: door.delete(f"/api/rules/{number}"))

    async def audit_entries(self, limit: int = 50) -> list[AuditItem]:
        """Return who did what, newest first."""
        found = await self.ask(lambda door: door.get(f"/api/audit?limit={limit}"))
        return [AuditItem(*picked(one, AuditItem._fields)) for one in found["deeds"]]


def picked(found: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    """Return the values of these names, in their order."""
    return [found[name] for name in names]


def _question(view: Mapping[str, Any]) -> QuestionItem:
    return QuestionItem._make([*picked(view, QuestionItem._fields[:-1]), view])
