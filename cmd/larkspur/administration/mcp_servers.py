"""The MCP servers of the owner, for `larkspur mcp`."""

import asyncio
import logging
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from internal.agent.domain.errors import Conflict, FilesUnavailable
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import escape_hidden
from internal.agent.ports.mcp import McpReviewReport, McpServerSummary
from internal.channels.cli.application import (
    ImportedServer,
    McpInstalled,
    McpItem,
    McpNeeds,
    McpReport,
)
from internal.config.loader import Loaded
from internal.mcp.definitions import ServerDefinition
from internal.mcp.foreign_files import read_servers
from internal.mcp.launch.downloaders import hosts_of, parse_package_command
from internal.mcp.launch.granted_paths import check_paths
from internal.mcp.launch.requirements import Requirements
from internal.mcp.limits import ServerFailure
from internal.mcp.packages.installation import remove_installation
from internal.mcp.server_reviews import ServerReviews
from internal.mcp.servers import home_session
from larkspur.extensions import open_mcp_servers
from larkspur.file_storage import open_workspaces
from larkspur.services import open_sandbox_in

_KEPT = ("risks", "start_timeout_seconds", "call_timeout_seconds", "idle_seconds", "description")
"""Keys of an entry that `larkspur mcp add` has no options for, and does not lose."""


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
        """Return all servers, unusable ones included."""
        return [_item(each) for each in asyncio.run(self._reviews.list_all())]

    def needs(self, name: str, entry: Mapping[str, Any]) -> McpNeeds | None:
        """Return the needs of an entry's command that the configured sandbox does not meet."""
        definition = self._servers.files.parse(name, entry)
        self._check_addition(name)
        check_paths(definition)
        lacking = asyncio.run(self._requirements(definition)) if definition.command else None
        if lacking is None:
            return None
        download = lacking.download
        hosts: tuple[str, ...] = ()
        if download is not None:
            sources = hosts_of(download.packages, download.ecosystem)
            hosts = (*self._servers.indexes(download).hosts, *sources)
        return McpNeeds(
            lacking.problem,
            is_hopeless=lacking.is_hopeless,
            entry=entry if download else lacking.complete(entry),
            reads=lacking.read_only,
            network=lacking.network,
            download=download.shown if download else "",
            hosts=tuple(dict.fromkeys(hosts)),
            install=lacking.install,
        )

    def install(
        self, name: str, entry: Mapping[str, Any], on_progress: Callable[[int], None]
    ) -> McpInstalled:
        """Install the packages that a command downloads, and return an entry that starts them."""
        definition = self._servers.files.parse(name, entry)
        try:
            return asyncio.run(self._install(definition, entry, on_progress))
        except ServerFailure as error:
            raise Conflict(f"The MCP server {name} cannot be installed: {error}.") from error

    def limits(self, name: str, entry: Mapping[str, Any]) -> list[str]:
        """Return sentences about hosts that the command of an entry cannot reach as written."""
        definition = self._servers.files.parse(name, entry)
        if not (definition.command and definition.network):
            return []
        return asyncio.run(self._limits(definition))

    def add(self, name: str, entry: Mapping[str, Any]) -> McpItem:
        """Add a server, which needs a review. One that was never accepted is replaced."""
        try:
            replace = self._servers.is_replaceable(name)
            known = self._servers.files.entry(name) or {}
            kept = {key: known[key] for key in _KEPT if key in known}
            self._servers.files.add(name, {**kept, **entry}, replace=replace)
            self._servers.pins.forget(name)  # what was accepted under this name before is gone
        except OSError as error:
            raise _unavailable(error) from error
        return next(each for each in self.servers() if each.name == name)

    def remove(self, name: str) -> None:
        """Remove an added server, its acceptance, its installation, and all logins."""
        try:
            self._servers.files.remove(name)
            self._servers.pins.forget(name)
            remove_installation(self._servers.packages_of(name))
            asyncio.run(self._homes.remove(home_session(name)))
            self._servers.logins.remove(name)
        except OSError as error:
            raise _unavailable(error) from error

    def read_file(self, path: str) -> list[ImportedServer]:
        """Return the servers in a file, such as a `.mcp.json`."""
        return [
            ImportedServer(
                each.name,
                each.entry,
                _shown(each.entry),
                (*each.notes, *_granted(each.entry)),
                each.problem,
            )
            for each in read_servers(Path(path))
        ]

    def show(self, name: str) -> McpReport:
        """Return a report on a server without starting it."""
        return _report(asyncio.run(self._reviews.review(name, start=False)))

    def test(self, name: str) -> McpReport:
        """Start a server, list its tools, and stop it."""
        report = asyncio.run(self._test(name))
        if report.is_isolated or report.host:
            return _report(report)
        return _report(report, ("isolation", "none: it reads and reaches what Larkspur can"))

    def try_isolated(self, name: str) -> McpReport | None:
        """Start a server like `test`, but only in isolation; None without it."""
        report = asyncio.run(self._test(name, only_isolated=True))
        return _report(report) if report.is_isolated else None

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

    def _check_addition(self, name: str) -> None:
        replace = self._servers.is_replaceable(name)
        self._servers.files.check_addition(name, replace=replace)

    async def _install(
        self,
        definition: ServerDefinition,
        entry: Mapping[str, Any],
        on_progress: Callable[[int], None],
    ) -> McpInstalled:
        """Return the entry of an installed server, with the needs of its program.

        Raises:
            ServerFailure: it cannot be installed.
        """
        async with (
            open_sandbox_in(self._loaded, self._homes) as sandbox,
            self._servers.running(sandbox, self._homes.create),
        ):
            try:
                program = await self._servers.install(definition, on_progress)
            except ServerFailure as error:
                raise ServerFailure(
                    await self._servers.explain(definition, error, entry)
                ) from error
            # as it was typed: a variable such as ${TOKEN} is not written out in the file
            command, args = str(entry["command"]), tuple(map(str, entry.get("args", ())))
            download = parse_package_command(command, args)
            place = str(self._servers.packages_of(definition.name))
            installed = {
                **entry,
                "command": program.command,
                "args": list(download.args) if download else [],
                "download": [command, *args],
                "package": program.package,
                "read_only": [*entry.get("read_only", ()), place],
            }
            found = self._servers.files.parse(definition.name, installed)
            lacking = await asyncio.to_thread(self._servers.requirements, found)
        if lacking is not None and lacking.is_hopeless:
            raise ServerFailure(lacking.problem)
        completed = lacking.complete(installed) if lacking else installed
        return McpInstalled(completed, program.failed_scripts)

    async def _requirements(self, definition: ServerDefinition) -> Requirements | None:
        async with (
            open_sandbox_in(self._loaded, self._homes) as sandbox,
            self._servers.running(sandbox, self._homes.create),
        ):
            return await asyncio.to_thread(self._servers.requirements, definition)

    async def _limits(self, definition: ServerDefinition) -> list[str]:
        async with (
            open_sandbox_in(self._loaded, self._homes) as sandbox,
            self._servers.running(sandbox, self._homes.create),
        ):
            return self._servers.describe_reach(definition)

    async def _test(self, name: str, *, only_isolated: bool = False) -> McpReviewReport:
        # the reason of a failure is raised as well
        logging.getLogger("internal.mcp.connection").setLevel(logging.ERROR)
        async with (
            open_sandbox_in(self._loaded, self._homes) as sandbox,
            self._servers.running(sandbox, self._homes.create),
        ):
            start = self._servers.is_isolated or not only_isolated
            return await self._reviews.review(name, start=start)


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
        ("package", report.package),
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


def _granted(entry: Any) -> list[str]:
    """Return the permissions of an unchecked entry's command, which starts before a review."""
    if not isinstance(entry, Mapping):
        return []
    granted = []
    for name, key in (("network", "network"), ("reads", "read_only"), ("writes", "writable")):
        if value := entry.get(key):
            values = value if isinstance(value, list | tuple) else [value]
            granted.append(escape_hidden(f"{name}: {', '.join(map(str, values))}"))
    return [*granted, "also with private addresses"] if _reaches_private(entry) else granted


def _reaches_private(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("network") and entry.get("allow_private_networks"))


def _unavailable(error: OSError) -> FilesUnavailable:
    return FilesUnavailable(f"This cannot be stored: {describe_system_error(error)}")
