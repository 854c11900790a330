"""Reviews of servers by people of any channel."""

import asyncio
import hashlib
from collections.abc import Callable

from internal.agent.domain.errors import (
    Conflict,
    FilesUnavailable,
    Forbidden,
    LarkspurError,
    NotFound,
)
from internal.agent.domain.secrets import mask_secrets
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import escape_hidden, truncate_line
from internal.agent.ports.mcp import (
    LoginAnswer,
    McpReviewReport,
    McpServerSummary,
    McpToolState,
    McpToolSummary,
)
from internal.mcp.definitions import ServerDefinition
from internal.mcp.limits import ServerFailure
from internal.mcp.login.token_file import LoginsUnreadable
from internal.mcp.manifest import Manifest, ManifestTool, describe_changes
from internal.mcp.pins import McpPinsUnreadable
from internal.mcp.servers import McpServers, ServerStatus

MAX_LINE_CHARS = 4_000


class ServerReviews:
    """Implements `McpReviews`."""

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers
        self._lock = asyncio.Lock()

    async def list_all(self) -> list[McpServerSummary]:
        """Return all servers; see the port."""
        return await asyncio.to_thread(self._list_all)

    async def review(self, name: str, *, start: bool) -> McpReviewReport:
        """Return the review of a server; see the port."""
        definition = await asyncio.to_thread(self._find, name)
        if start:
            try:
                await self._servers.list_tools(definition)
            except ServerFailure as error:
                raise Conflict(
                    f"The MCP server {name} cannot be used: {error}.",
                    reason_code="mcp_server_fails",
                    server=name,
                    detail=str(error),
                ) from error
        return await asyncio.to_thread(self._report, definition)

    async def decide(self, name: str, sha256: str, *, accept: bool) -> McpServerSummary:
        """Accept the server state with this hash, or withdraw an acceptance; see the port."""
        async with self._lock:
            return await asyncio.to_thread(self._decide, name, sha256, accept=accept)

    async def sign_in(self, name: str, show: Callable[[str], None]) -> None:
        """Let the owner sign in at this machine; `show` gets the URL to open in a browser.

        Raises:
            NotFound: there is no such server.
            Conflict: it is not usable, or the login failed.
            LoginsUnreadable: the login cannot be stored.
        """
        definition = await asyncio.to_thread(self._find, name)
        try:
            await self._servers.sign_in(definition, show)
        except ServerFailure as error:
            raise Conflict(
                f"No login at the MCP server {name}: {error}.",
                reason_code="mcp_login_failed",
                server=name,
                detail=str(error),
            ) from error

    async def start_login(
        self, name: str, principal: str, redirect_uri: str, *, may_share: bool
    ) -> str:
        """Return the URL at which a person signs in; see the port."""
        definition = await asyncio.to_thread(self._find, name)
        if definition.login != "personal" and not may_share:
            raise Forbidden(
                "Only the owner may sign in to this MCP server.", reason_code="mcp_login_by_owner"
            )
        try:
            return await self._servers.start_login(definition, principal, redirect_uri)
        except (ServerFailure, LoginsUnreadable) as error:
            raise Conflict(
                f"No login at the MCP server {name}: {_without_end(error)}.",
                reason_code="mcp_login_failed",
                server=name,
                detail=_without_end(error),
            ) from error

    async def finish_login(self, answer: LoginAnswer) -> str:
        """Finish the login that waits for an answer; see the port."""
        try:
            return await self._servers.finish_login(answer)
        except (ServerFailure, LoginsUnreadable) as error:
            raise Conflict(
                f"The sign-in failed: {_without_end(error)}.",
                reason_code="mcp_sign_in_failed",
                detail=_without_end(error),
            ) from error

    def _list_all(self) -> list[McpServerSummary]:
        definitions = self._servers.files.read()
        found = [_summary(self._servers.status(one)) for one in definitions.servers.values()]
        problems = [
            McpServerSummary(_line(name), "not usable", "", 0, "", _line(problem))
            for name, problem in definitions.problems.items()
            if name not in definitions.servers
        ]
        also = " ".join(
            problem for name, problem in definitions.problems.items() if name in definitions.servers
        )
        if also:
            problems.append(McpServerSummary("", "not usable", "", 0, "", _line(also)))
        return [*found, *problems]

    def _find(self, name: str) -> ServerDefinition:
        definitions = self._servers.files.read()
        if (found := definitions.servers.get(name)) is not None:
            return found
        if problem := definitions.problems.get(name):
            raise Conflict(problem, reason_code="mcp_definition", detail=problem)
        raise NotFound(
            f"There is no MCP server {truncate_line(escape_hidden(name), 80)}.",
            reason_code="no_mcp_server",
            server=truncate_line(escape_hidden(name), 80),
        )

    def _report(self, definition: ServerDefinition) -> McpReviewReport:
        status = self._servers.status(definition)
        found = _current(status)
        accepted = status.known.accepted
        return McpReviewReport(
            server=_summary(status),
            host=definition.host,
            variables=sorted(definition.env),
            headers=sorted(definition.headers),
            login=definition.login or "",
            folder=_place(definition, definition.cwd),
            read_only=[_place(definition, path) for path in definition.read_only],
            writable=[_place(definition, path) for path in definition.writable],
            network=_network(definition),
            is_isolated=self._servers.is_isolated,
            is_listed=found is not None,
            package=_line(definition.package),
            tools=[
                McpToolSummary(
                    tool.offered_name,
                    "\n".join(filter(None, (tool.title, tool.description))),
                    definition.risk_of(tool.name),
                    _tool_state(status, tool),
                )
                for tool in (found.tools if found else ())
            ],
            problems=list(found.problems if found else ()),
            changes=list(describe_changes(accepted, found.tools)) if accepted and found else [],
        )

    def _decide(self, name: str, sha256: str, *, accept: bool) -> McpServerSummary:
        definition = self._find(name)
        status = self._servers.status(definition)
        found = _current(status)
        if _hash(status) != sha256:
            raise Conflict(
                f"The MCP server {name} has changed since it was shown. Review it again.",
                reason_code="mcp_server_changed",
                server=name,
            )
        if accept and found is None:
            raise Conflict(
                f"The tools of the MCP server {name} are not known; test it first.",
                reason_code="mcp_tools_unknown",
                server=name,
            )
        try:
            if accept and found is not None:
                self._servers.pins.accept(name, found)
            else:
                self._servers.pins.withdraw(name)
        except McpPinsUnreadable as error:
            raise Conflict(
                str(error), reason_code="reviews_unreadable", detail=str(error)
            ) from error
        except OSError as error:
            reason = describe_system_error(error)
            raise FilesUnavailable(f"The decision cannot be stored: {reason}") from error
        return _summary(self._servers.status(definition))


def _without_end(error: LarkspurError) -> str:
    return str(error).removesuffix(".")


def _current(status: ServerStatus) -> Manifest | None:
    """Return the tools that the server listed with its present definition."""
    found = status.known.found
    return found if found is not None and found.definition == status.definition.sha256 else None


def _line(text: str) -> str:
    """Return a text of a definition on one line, with escapes for hidden characters."""
    return truncate_line(escape_hidden(text), MAX_LINE_CHARS)


def _place(definition: ServerDefinition, path: str) -> str:
    """Return a path of a definition, with the place to which its symbolic links lead."""
    place = definition.links.get(path)
    return _line(path if place is None else f"{path} (a link to {place})")


def _network(definition: ServerDefinition) -> list[str]:
    """Return the hosts that a command reaches, and whether they may be of a private network."""
    if not (definition.command and definition.network and definition.allow_private_networks):
        return list(definition.network)
    return [*definition.network, "also with private addresses"]


def _summary(status: ServerStatus) -> McpServerSummary:
    definition = status.definition
    return McpServerSummary(
        name=definition.name,
        state=status.state,
        target=_line(mask_secrets(definition.shown)),
        tools=len(status.offered),
        sha256=_hash(status),
        warnings=[*map(_line, definition.warnings)],
    )


def _hash(status: ServerStatus) -> str:
    """Return the identity of the subject of a decision: the definition and the listed tools."""
    found = _current(status)
    tools = [tool.sha256 for tool in found.tools] if found else []
    return hashlib.sha256("\n".join([status.definition.sha256, *tools]).encode()).hexdigest()


def _tool_state(status: ServerStatus, tool: ManifestTool) -> McpToolState:
    if tool in status.offered:
        return "offered"
    known = {each.name for each in status.known.accepted}
    return "changed since its review" if tool.name in known else "not reviewed"
