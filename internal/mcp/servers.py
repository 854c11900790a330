"""All servers: which of their tools are offered, and their connections."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from internal.agent.domain.errors import StoreUnavailable, ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.network import network_access
from internal.agent.domain.permissions.rules import Rule, parse_rule
from internal.agent.domain.react.input_forms import InputReply
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.ports.mcp import McpServerState
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand
from internal.agent.ports.tools import WithheldTool
from internal.mcp.connection import ServerConnection
from internal.mcp.definition_files import DefinitionFiles
from internal.mcp.definitions import ServerDefinition
from internal.mcp.elicitation import Progress
from internal.mcp.limits import ServerFailure
from internal.mcp.manifest import (
    PREFIX,
    ListedTool,
    Manifest,
    ManifestTool,
    build_manifest,
)
from internal.mcp.pins import KnownTools, McpPins, McpPinsUnreadable, ServerPin
from internal.mcp.private_files import FileVersion

logger = logging.getLogger(__name__)

MAX_LIFE_SECONDS = 7 * 86_400.0
"""How long the process of a server may run."""

NOT_REVIEWED: McpServerState = "not reviewed"
CHANGED: McpServerState = "changed since its review"


class OfferedTool(NamedTuple):
    """A tool that a person has accepted, and its server."""

    server: ServerDefinition
    tool: ManifestTool


class Offer(NamedTuple):
    """The tools that are offered, by the name for models, and those that are withheld."""

    tools: Mapping[str, OfferedTool]
    withheld: tuple[WithheldTool, ...]


class ServerStatus(NamedTuple):
    """A server as it is known without starting it."""

    definition: ServerDefinition
    state: McpServerState
    known: KnownTools
    offered: tuple[ManifestTool, ...]
    withheld: tuple[WithheldTool, ...]


class McpServers:
    """The servers of the definitions, which are started when a tool is called.

    Args:
        files: the definitions.
        pins: what people have accepted.
        version: the version of Larkspur, which servers are told.
        deny: rules about hosts that no server reaches.
    """

    def __init__(
        self, files: DefinitionFiles, pins: McpPins, *, version: str, deny: Sequence[Rule] = ()
    ) -> None:
        self.files, self.pins = files, pins
        self._version, self._deny = version, tuple(deny)
        self._sandbox: Sandbox | None = None
        self._home_of: Callable[[SessionId], str] = str
        self._connections: dict[str, ServerConnection] = {}
        self._offer: tuple[object, Offer] | None = None

    @asynccontextmanager
    async def running(
        self, sandbox: Sandbox, home_of: Callable[[SessionId], str]
    ) -> AsyncGenerator[None]:
        """Let servers be started in a sandbox within the block, and stop all of them at its end.

        `home_of` creates the private folder of a server; it blocks.
        """
        self._sandbox, self._home_of = sandbox, home_of
        try:
            yield
        finally:
            self._sandbox = None
            connections = [*self._connections.values()]
            self._connections.clear()
            async with asyncio.TaskGroup() as tasks:
                for each in connections:
                    tasks.create_task(each.close())

    @property
    def is_isolated(self) -> bool:
        """True if commands of servers are isolated."""
        return self._sandbox is not None and self._sandbox.capabilities.isolated

    def offer(self) -> Offer:
        """Return what is offered now. Starts nothing; reads files that have changed."""
        definitions = self.files.read()
        version: tuple[object, tuple[FileVersion, ...]] = (
            definitions,
            self.pins.version(tuple(definitions.servers)),
        )
        if self._offer is None or self._offer[0] != version:
            statuses = [self.status(each) for each in definitions.servers.values()]
            tools = {
                tool.offered_name: OfferedTool(one.definition, tool)
                for one in statuses
                for tool in one.offered
            }
            withheld = tuple(each for one in statuses for each in one.withheld)
            self._offer = version, Offer(tools, withheld)
        return self._offer[1]

    def status(self, definition: ServerDefinition) -> ServerStatus:
        """Return what is known of a server."""
        known = self.pins.tools(definition.name)
        try:
            pin = self.pins.get(definition.name)
        except McpPinsUnreadable as error:
            logger.warning("mcp pins cannot be read", extra={"error": str(error)})
            pin = None
        if definition.disabled:
            return ServerStatus(definition, "disabled", known, (), ())
        if pin is None or pin.definition != definition.sha256:
            state = NOT_REVIEWED if pin is None else CHANGED
            withheld = (WithheldTool(f"{PREFIX}{definition.name}", state),)
            return ServerStatus(definition, state, known, (), withheld)
        return _compare(definition, pin, known)

    async def list_tools(self, definition: ServerDefinition) -> Manifest:
        """Start a server, return the tools that it lists now, and stop it unless it is in use.

        Raises:
            ServerFailure: it cannot be started, or does not list them.
        """
        try:
            connection = await self._connection(definition)
            await connection.list_tools()
        finally:
            if self.status(definition).state != "offered":
                await self.close(definition.name)
        found = self.pins.tools(definition.name).found
        if found is None:
            raise ServerFailure("its tools cannot be stored; the log says why")
        return found

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        on_progress: Progress,
        *,
        key: str = "",
        reply: InputReply | None = None,
    ) -> dict[str, Any]:
        """Return the result of a call as JSON. The server is started if it does not run.

        `reply` continues the call with this key, whose result required input.

        Raises:
            ToolError: the tool is withheld, the server cannot be used, or the call fails.
        """
        offered = self.find(name)
        try:
            connection = await self._connection(offered.server)
            # it may change with the list of the tools
            check = partial(self.find, name)
            return await connection.call(
                offered.tool.name, arguments, on_progress, check, key=key, reply=reply
            )
        except ServerFailure as error:
            reason = f"The MCP server {offered.server.name} cannot be used: {error}."
            if offered.server.command and self.is_isolated and not offered.server.network:
                reason += " It runs without network; its definition can allow hosts."
            raise ToolError(reason) from error

    async def close(self, name: str) -> None:
        """Stop a server."""
        if (connection := self._connections.pop(name, None)) is not None:
            await connection.close()

    def find(self, name: str) -> OfferedTool:
        """Return a tool that is offered now.

        Raises:
            ToolError: it is not; a person may have to review it.
        """
        offer = self.offer()
        if (found := offer.tools.get(name)) is not None:
            return found
        for each in offer.withheld:
            if name == each.name or name.startswith(f"{each.name}__"):
                raise ToolError(
                    f"{name} is withheld: {each.reason}. Its owner must review the MCP server."
                )
        raise ToolError(f"there is no tool {name[:100]}")

    async def _connection(self, definition: ServerDefinition) -> ServerConnection:
        """Return the connection of a server with this definition.

        Raises:
            ServerFailure: servers cannot be started here.
        """
        if self._sandbox is None:
            raise ServerFailure("servers cannot be started here")
        known = self._connections.get(definition.name)
        if known is not None and known.definition == definition:
            return known
        if known is not None:
            await self.close(definition.name)
        command = await self._command(definition) if definition.command else None
        created = ServerConnection(
            definition,
            self._sandbox,
            command,
            version=self._version,
            on_tools=partial(self._record, definition),
        )
        return self._connections.setdefault(definition.name, created)

    async def _command(self, definition: ServerDefinition) -> SandboxCommand:
        session_id = home_session(definition.name)
        try:
            home = await asyncio.to_thread(self._home_of, session_id)
        except StoreUnavailable as error:
            raise ServerFailure(str(error)) from error
        read_only = (*definition.read_only, *((definition.cwd,) if definition.cwd else ()))
        return SandboxCommand(
            (definition.command, *definition.args),
            definition.cwd or home,
            MAX_LIFE_SECONDS,
            session_id,
            environment=definition.env,
            access=FileAccess(definition.writable, read_only),
            network=network_access(
                [parse_rule(text, {}) for text in definition.network], self._deny, ()
            ),
        )

    def _record(self, definition: ServerDefinition, listed: Sequence[ListedTool]) -> None:
        """Remember the tools that a server lists. Blocks."""
        found = build_manifest(definition.name, definition.sha256, listed)
        try:
            is_new = self.pins.record(definition.name, found)
        except OSError as error:
            reason = describe_system_error(error)
            logger.warning(
                "mcp tools cannot be stored",
                extra={"server": definition.name, "error": reason},
            )
            return
        if is_new and self.status(definition).state == CHANGED:
            logger.warning("mcp tools have changed", extra={"server": definition.name})


def home_session(server: str) -> SessionId:
    """Return the id under which the private home folder of a server is kept."""
    return SessionId(f"mcp-{server}")


def _compare(definition: ServerDefinition, pin: ServerPin, known: KnownTools) -> ServerStatus:
    """Return which of the tools found last are those that have been accepted."""
    found = known.found
    tools = found.tools if found is not None and found.definition == pin.definition else ()
    offered = tuple(tool for tool in tools if pin.tools.get(tool.name) == tool.sha256)
    withheld = tuple(
        WithheldTool(tool.offered_name, CHANGED if tool.name in pin.tools else NOT_REVIEWED)
        for tool in tools
        if pin.tools.get(tool.name) != tool.sha256
    )
    state: McpServerState = CHANGED if withheld else "offered"
    return ServerStatus(definition, state, known, offered, withheld)
