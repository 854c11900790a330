"""The MCP servers as people see them, and their decisions about them."""

from collections.abc import Iterable
from functools import partial

import msgspec

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.lessons import Lesson
from internal.agent.domain.permissions.targets import mcp_server
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.tasks import Channel
from internal.agent.ports.mcp import (
    LOGIN_URL_SECONDS,
    LoginAnswer,
    LoginUrl,
    McpReviewReport,
    McpReviews,
    McpServerSummary,
)
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores


class McpAdministration:
    """Lists, tests and reviews MCP servers. Every decision is added to the audit log."""

    def __init__(
        self, database: Database, stores: Stores, clock: Clock, reviews: McpReviews
    ) -> None:
        self._database, self._stores, self._clock = database, stores, clock
        self._reviews = reviews

    async def list_all(self, principal: Principal) -> list[McpServerSummary]:
        """Return all servers. Commands, addresses and problems are for the owner only.

        The tools that the server of a model does not accept are warnings.
        """
        found = await self._reviews.list_all()
        if principal.may("owner"):
            lessons = await self._database.read(self._stores.lessons.list_all)
            return [_with_refused_tools(each, lessons) for each in found]
        hidden = {"target": "", "problem": "", "warnings": []}
        return [msgspec.structs.replace(each, **hidden) for each in found if each.name]

    async def review(
        self, name: str, principal: Principal, *, start: bool = False
    ) -> McpReviewReport:
        """Return the review of a server for a person; with `start` it lists its tools now.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: there is no such server.
            Conflict: it is not usable, or cannot be started.
        """
        principal.require_owner("review MCP servers")
        return await self._reviews.review(name, start=start)

    async def decide(
        self, name: str, sha256: str, principal: Principal, via: Channel, *, accept: bool
    ) -> McpServerSummary:
        """Accept the definition and tools of a server with this hash, or withdraw that.

        It counts from the next call of a run on. Returns the server.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: there is no such server.
            Conflict: it has another hash, is not usable, or its tools are not known.
            FilesUnavailable: the decision cannot be stored.
        """
        principal.require_owner("review MCP servers")
        decided = await self._reviews.decide(name, sha256, accept=accept)
        entry = AuditEntry(
            rfc3339(self._clock.now()),
            principal.id,
            via,
            "mcp.accepted" if accept else "mcp.rejected",
            decided.name,
            sha256,
        )
        await self._database.write(partial(self._stores.audit.add, entry))
        return decided

    async def start_login(self, name: str, principal: Principal, redirect_uri: str) -> LoginUrl:
        """Start the login of a person, whose browser comes back to `redirect_uri`.

        Raises:
            NotFound: there is no such server.
            Conflict: it is not usable, or accepts no login.
            Forbidden: the login is for all people, and the principal is not the owner.
        """
        url = await self._reviews.start_login(
            name, principal.id, redirect_uri, may_share=principal.may("owner")
        )
        return LoginUrl(url, int(LOGIN_URL_SECONDS))

    async def finish_login(self, answer: LoginAnswer) -> str:
        """Finish a login with the answer of a browser. Only its `state` says whose it is.

        Returns the name of the server.

        Raises:
            NotFound: no login waits for this answer.
            Conflict: it failed.
        """
        return await self._reviews.finish_login(answer)


def _with_refused_tools(server: McpServerSummary, lessons: Iterable[Lesson]) -> McpServerSummary:
    refused = [
        f"{each.model} does not accept the tool {each.name}, so it is left out: {each.words}"
        for each in lessons
        if each.kind.startswith("tool_") and server.name and mcp_server(each.name) == server.name
    ]
    if not refused:
        return server
    return msgspec.structs.replace(server, warnings=[*server.warnings, *refused])
