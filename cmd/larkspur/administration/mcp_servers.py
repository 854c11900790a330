"""The MCP servers of the owner, for `larkspur mcp`."""

import asyncio
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from internal.agent.domain.errors import FilesUnavailable
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import escape_hidden
from internal.agent.ports.mcp import McpReviewReport, McpServerSummary
from internal.channels.cli.application import ImportedServer, McpItem, McpNeeds, McpReport
from internal.config.loader import Loaded
from internal.mcp.definitions import ServerDefinition
from internal.mcp.foreign_files import read_servers
from internal.mcp.launch.requirements import Requirements
from internal.mcp.server_reviews import ServerReviews
from internal.mcp.servers import home_session
from larkspur.extensions import open_mcp_servers
from larkspur.file_storage import open_workspaces
from larkspur.services import open_sandbox_in


class McpAdmin:
    """Implements `internal.channels.cli.application.McpAdmin`.

    Servers are added to `mcp.json` of the home folder.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._homes = open_workspaces(loaded).homes
        self._servers = open_mcp_servers(loaded)
        self._reviews = ServerReviews(self._servers)

    def servers(self) -> list[McpItem]:
        """Return all servers, also those that are not usable."""
        return [_item(each) for each in asyncio.run(self._reviews.list_all())]

    def needs(self, name: str, entry: Mapping[str, Any]) -> McpNeeds | None:
        """Return what the command of an entry lacks to start in the sandbox of the settings."""
        definition = self._servers.files.parse(name, entry)
        lacking = asyncio.run(self._requirements(definition)) if definition.command else None
        if lacking is None:
            return None
        is_hopeless = lacking.missing or lacking.needs_hosts
        flags = "" if is_hopeless else lacking.flags
        return McpNeeds(lacking.problem, flags, lacking.complete(entry), lacking.install)

    def add(self, name: str, entry: Mapping[str, Any]) -> McpItem:
        """Add a server, which needs a review."""
        try:
            self._servers.files.add(name, entry)
            self._servers.pins.forget(name)  # what was accepted under this name before is gone
        except OSError as error:
            raise _unavailable(error) from error
        return next(each for each in self.servers() if each.name == name)

    def remove(self, name: str) -> None:
        """Remove a server that was added, what was accepted of it, and all logins."""
        try:
            self._servers.files.remove(name)
            self._servers.pins.forget(name)
            asyncio.run(self._homes.remove(home_session(name)))
            self._servers.logins.remove(name)
        except OSError as error:
            raise _unavailable(error) from error

    def read_file(self, path: str) -> list[ImportedServer]:
        """Return the servers in a file, such as a `.mcp.json`."""
        return [
            ImportedServer(each.name, each.entry, _shown(each.entry), each.notes, each.problem)
            for each in read_servers(Path(path))
        ]

    def show(self, name: str) -> McpReport:
        """Return what is known of a server without starting it."""
        return _report(asyncio.run(self._reviews.review(name, start=False)))

    def test(self, name: str) -> McpReport:
        """Start a server, list its tools, and stop it."""
        report = asyncio.run(self._test(name))
        if report.is_isolated or report.host:
            return _report(report)
        return _report(report, ("isolation", "none: it reads and reaches what Larkspur can"))

    def accept(self, report: McpReport) -> None:
        """Accept the definition and tools as they were shown."""
        decision = self._reviews.decide(report.item.name, report.item.sha256, accept=True)
        asyncio.run(decision)

    def sign_in(self, name: str, show: Callable[[str], None]) -> None:
        """Sign in to a server, and wait for it; `show` gets the URL to open in a browser."""
        asyncio.run(self._reviews.sign_in(name, show))

    def sign_out(self, name: str) -> bool:
        """Remove the login to a server. Return False if there was none."""
        return self._servers.sign_out(name, LOCAL_OWNER.id)

    async def _requirements(self, definition: ServerDefinition) -> Requirements | None:
        async with (
            open_sandbox_in(self._loaded, self._homes) as sandbox,
            self._servers.running(sandbox, self._homes.create),
        ):
            return await asyncio.to_thread(self._servers.requirements, definition)

    async def _test(self, name: str) -> McpReviewReport:
        async with (
            open_sandbox_in(self._loaded, self._homes) as sandbox,
            self._servers.running(sandbox, self._homes.create),
        ):
            return await self._reviews.review(name, start=True)


def _item(summary: McpServerSummary) -> McpItem:
    return McpItem(
        name=summary.name,
        state=summary.state,
        tools=summary.tools,
        target=summary.target,
        sha256=summary.sha256,
        problems=(summary.problem,) if summary.problem else tuple(summary.warnings),
    )


def _report(report: McpReviewReport, *further: tuple[str, str]) -> McpReport:
    facts = (
        ("host", report.host),
        ("variables", ", ".join(report.variables)),
        ("headers", ", ".join(report.headers)),
        ("login", report.login),
        ("folder", report.folder),
        ("reads", ", ".join(report.read_only)),
        ("writes", ", ".join(report.writable)),
        ("network", ", ".join(report.network)),
        *further,
    )
    return McpReport(
        item=_item(report.server),
        facts=[(name, text) for name, text in facts if text],
        is_listed=report.is_listed,
        tools=[(each.name, each.risk, each.state, each.description) for each in report.tools],
        problems=report.problems,
        changes=report.changes,
    )


def _shown(entry: Any) -> str:
    """Return the command line or address of an entry that is not checked yet."""
    if not isinstance(entry, Mapping):
        return ""
    arguments = entry.get("args")
    parts = [entry.get("command", ""), *(arguments if isinstance(arguments, list) else ())]
    return escape_hidden(str(entry.get("url") or shlex.join(map(str, parts))))


def _unavailable(error: OSError) -> FilesUnavailable:
    return FilesUnavailable(f"This cannot be stored: {describe_system_error(error)}")
