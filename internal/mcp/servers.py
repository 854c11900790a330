"""All servers: which of their tools are offered, and their connections."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from internal.agent.domain.errors import StoreUnavailable, ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.network import (
    NetworkAccess,
    network_access,
    private_access,
    rules_of_network,
)
from internal.agent.domain.permissions.rules import Rule, parse_rule
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.react.input_forms import InputReply
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.ports.mcp import LoginAnswer, McpServerState
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand
from internal.agent.ports.tools import WithheldTool
from internal.mcp.connection import ServerConnection, load_sdk
from internal.mcp.default_arguments import with_defaults
from internal.mcp.definition_files import PACKAGES_FOLDER, DefinitionFiles
from internal.mcp.definitions import ServerDefinition
from internal.mcp.elicitation import Progress
from internal.mcp.launch.advice import Circumstances, advise
from internal.mcp.launch.downloaders import PackageCommand, hosts_of, parse_package_command
from internal.mcp.launch.program_files import search_path
from internal.mcp.launch.reach import describe_reach
from internal.mcp.launch.requirements import Requirements, find_requirements, program_files
from internal.mcp.limits import LoginRequired, ServerFailure
from internal.mcp.login.loopback import listening
from internal.mcp.login.pending_logins import PendingLogins
from internal.mcp.login.token_file import ServerLogin, TokenFile
from internal.mcp.manifest import (
    PREFIX,
    ListedTool,
    Manifest,
    ManifestTool,
    build_manifest,
)
from internal.mcp.packages.installation import Installer, OnProgress, install
from internal.mcp.packages.program_names import InstalledProgram
from internal.mcp.packages.registry_settings import RegistrySettings, read_registry_settings
from internal.mcp.pins import KnownTools, McpPins, McpPinsUnreadable, ServerPin
from internal.mcp.private_files import FileVersion

if TYPE_CHECKING:
    from internal.mcp.login.sign_in import Authorize

logger = logging.getLogger(__name__)

MAX_LIFE_SECONDS = 7 * 86_400.0
"""Maximum running time of the process of a server."""

NOT_REVIEWED: McpServerState = "not reviewed"
CHANGED: McpServerState = "changed since its review"


class OfferedTool(NamedTuple):
    """A tool that a person has accepted, and its server."""

    server: ServerDefinition
    tool: ManifestTool


class Offer(NamedTuple):
    """The offered tools, by the name for models, and the tools that are withheld."""

    tools: Mapping[str, OfferedTool]
    withheld: tuple[WithheldTool, ...]


class ServerStatus(NamedTuple):
    """The known state of a server that need not run."""

    definition: ServerDefinition
    state: McpServerState
    known: KnownTools
    offered: tuple[ManifestTool, ...]
    withheld: tuple[WithheldTool, ...]


def _with_accepted_title(tool: ManifestTool, known: KnownTools) -> ManifestTool:
    """Return a tool without a title that nobody has accepted: a server must not rename it later."""
    if any(each.name == tool.name and each.title == tool.title for each in known.accepted):
        return tool
    return msgspec.structs.replace(tool, title="")


class McpServers:
    """The servers of the definitions, which are started when a tool is called.

    Args:
        files: the definitions.
        pins: the tools that people have accepted.
        version: the version of Larkspur, sent to servers.
        logins: the logins of people.
        deny: rules about hosts that no server reaches.
        environ: the environment of the person, whose PATH has programs that commands do not find.
    """

    def __init__(
        self,
        files: DefinitionFiles,
        pins: McpPins,
        *,
        version: str,
        logins: TokenFile,
        deny: Sequence[Rule] = (),
        environ: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.files, self.pins, self.logins = files, pins, logins
        self.login_redirect = ""
        """Address to which browsers return after a login, "" if they cannot: in a terminal."""
        self._version, self._deny = version, tuple(deny)
        self._environ, self._own_path = environ, search_path(environ)
        self._sandbox: Sandbox | None = None
        self._home_of: Callable[[SessionId], str] = str
        self._connections: dict[tuple[str, str], ServerConnection] = {}
        self._offer: tuple[object, Offer] | None = None
        self._pending = PendingLogins()

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
            await self._pending.close()
            connections = [*self._connections.values()]
            self._connections.clear()
            async with asyncio.TaskGroup() as tasks:
                for each in connections:
                    tasks.create_task(each.close())

    @property
    def is_isolated(self) -> bool:
        """True if commands of servers are isolated."""
        return self._sandbox is not None and self._sandbox.capabilities.isolated

    def requirements(self, definition: ServerDefinition) -> Requirements | None:
        """Return the missing requirements of a command, None if none are known. Blocks."""
        if self._sandbox is None:
            return None
        able = self._sandbox.capabilities
        return find_requirements(definition, able, own_path=self._own_path)

    def describe_reach(self, definition: ServerDefinition) -> list[str]:
        """Return sentences about hosts in a definition that its command cannot reach."""
        return describe_reach(definition, self._sandbox.capabilities) if self._sandbox else []

    def packages_of(self, name: str) -> Path:
        """Return the folder for the packages of a server."""
        return self.files.path.parent / PACKAGES_FOLDER / name

    async def install(
        self, definition: ServerDefinition, on_progress: OnProgress
    ) -> InstalledProgram:
        """Install the packages that a command downloads, and return the program to start.

        Raises:
            ServerFailure: the command downloads none, or they cannot be installed.
        """
        download = parse_package_command(definition.command, definition.args)
        if self._sandbox is None or download is None:
            raise ServerFailure("its packages cannot be installed here")
        able = self._sandbox.capabilities
        session_id = home_session(definition.name)
        indexes = self.indexes(download)
        hosts = (*indexes.hosts, *hosts_of(download.packages, download.ecosystem))
        rules = [*definition.network, *rules_of_network(hosts)]
        await asyncio.to_thread(self._home_of, session_id)
        return await install(
            download,
            self.packages_of(definition.name),
            Installer(
                self._sandbox,
                program_files(definition, able, own_path=self._own_path),
                self._own_path,
                indexes,
                self._reached(rules, private=definition.allow_private_networks),
                session_id,
                definition.env,
            ),
            on_progress,
        )

    def _reached(self, rules: Sequence[str], *, private: bool) -> NetworkAccess:
        """Return the hosts that a command reaches, as named by its owner."""
        allow = [parse_rule(text, {}) for text in rules]
        return private_access(network_access(allow, self._deny, ()), names=private)

    def indexes(self, download: PackageCommand) -> RegistrySettings:
        """Return the package indexes of the person for a download. Blocks."""
        return read_registry_settings(download.ecosystem, self._environ, Path.home())

    def offer(self) -> Offer:
        """Return the tools that are offered now. Starts nothing; reads files that have changed."""
        definitions = self.files.read()
        if not definitions.servers:
            return Offer({}, ())
        version: tuple[object, tuple[FileVersion, ...]] = (
            definitions,
            self.pins.version(tuple(definitions.servers)),
        )
        if self._offer is None or self._offer[0] != version:
            statuses = [self.status(each) for each in definitions.servers.values()]
            tools = {
                tool.offered_name: OfferedTool(
                    one.definition, _with_accepted_title(tool, one.known)
                )
                for one in statuses
                for tool in one.offered
            }
            withheld = tuple(each for one in statuses for each in one.withheld)
            self._offer = version, Offer(tools, withheld)
        return self._offer[1]

    def status(self, definition: ServerDefinition) -> ServerStatus:
        """Return the known status of a server."""
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

        A server with personal logins is asked with the one of the local owner.

        Raises:
            ServerFailure: it cannot be started, or does not list them.
        """
        try:
            connection = await self._connection(definition, LOCAL_OWNER.id)
            await connection.list_tools()
        except LoginRequired:
            raise
        except ServerFailure as error:
            raise ServerFailure(await self.explain(definition, error)) from error
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
        principal: str,
        key: str = "",
        reply: InputReply | None = None,
    ) -> dict[str, Any]:
        """Return the result of a call as JSON. The server is started if it does not run.

        `principal` is who the call is for, whose login counts where logins are personal. `reply`
        continues the call with this key, whose result required input.

        Raises:
            ToolError: the tool is withheld, the server cannot be used, or the call fails.
            LoginRequired: a person must sign in first.
        """
        offered = self.find(name)
        try:
            connection = await self._connection(offered.server, principal)
            # it may change with the list of the tools
            check = partial(self.find, name)
            filled = with_defaults(offered.tool.schema, arguments)
            return await connection.call(
                offered.tool.name, filled, on_progress, check, key=key, reply=reply
            )
        except LoginRequired:
            raise
        except ServerFailure as error:
            explained = await self.explain(offered.server, error)
            reason = f"The MCP server {offered.server.name} cannot be used: {explained}."
            if offered.server.command and self.is_isolated and not offered.server.network:
                reason += " It runs without network; its definition can allow hosts."
            raise ToolError(reason) from error

    async def explain(
        self,
        definition: ServerDefinition,
        failure: ServerFailure,
        entry: Mapping[str, Any] | None = None,
    ) -> str:
        """Return why a server failed, with advice.

        `entry` is the entry to be added, None for a server that has been added.
        """
        advice = await asyncio.to_thread(self._advise, definition, failure, entry)
        return f"{failure}; {advice}" if advice else str(failure)

    def _advise(
        self,
        definition: ServerDefinition,
        failure: ServerFailure,
        entry: Mapping[str, Any] | None,
    ) -> str:
        found = Circumstances(
            definition,
            entry or self.files.entry(definition.name),
            None if entry else self.requirements(definition),
            entry is not None or self.is_replaceable(definition.name),
            str(self.packages_of(definition.name)),
            self.is_isolated,
        )
        return advise(failure, found)

    def is_replaceable(self, name: str) -> bool:
        """Return True if nothing of a server has ever been accepted, and it is in the file."""
        try:
            is_known = self.pins.get(name) is not None
        except McpPinsUnreadable:
            return False
        return not is_known and self.files.entry(name) is not None

    async def sign_in(self, definition: ServerDefinition, show: Callable[[str], None]) -> None:
        """Let the owner sign in at this machine; `show` gets the URL to open in a browser.

        Raises:
            ServerFailure: the owner does not agree in time, or the server accepts no login.
            LoginsUnreadable: the login cannot be stored.
        """
        async with listening() as receiver:

            async def authorize(url: str, state: str) -> LoginAnswer:
                show(url)
                return await receiver.receive(state)

            await self._sign_in(definition, LOCAL_OWNER.id, receiver.redirect_uri, authorize)

    async def start_login(
        self, definition: ServerDefinition, principal: str, redirect_uri: str
    ) -> str:
        """Return the URL at which a person signs in; the browser comes back to `redirect_uri`.

        Raises:
            ServerFailure: the server accepts no login.
            LoginsUnreadable: the login cannot be stored.
        """
        return await self._pending.start(
            (definition.name, principal),
            partial(self._sign_in, definition, principal, redirect_uri),
        )

    async def finish_login(self, answer: LoginAnswer) -> str:
        """Finish the login that waits for an answer, and return the name of the server.

        Raises:
            NotFound: none does.
            ServerFailure: it failed.
            LoginsUnreadable: the login cannot be stored.
        """
        return await self._pending.finish(answer)

    def sign_out(self, name: str, principal: str) -> bool:
        """Remove the shared login of a server and the login of a person. False if there was none.

        Raises:
            LoginsUnreadable: the logins cannot be read or written.
        """
        removed = [self.logins.remove(name, each) for each in ("", principal)]
        return any(removed)

    async def _sign_in(
        self,
        definition: ServerDefinition,
        principal: str,
        redirect_uri: str,
        authorize: "Authorize",
    ) -> None:
        login = self._login(definition, principal)
        if login is None or definition.login == "client_credentials":
            raise ServerFailure("its definition has neither login: shared nor login: personal")
        endpoint = await asyncio.to_thread(load_sdk)
        await endpoint.sign_in(definition, login, redirect_uri, authorize)

    async def close(self, name: str) -> None:
        """Stop a server, with all logins."""
        for key in [key for key in self._connections if key[0] == name]:
            await self._connections.pop(key).close()

    def _login(self, definition: ServerDefinition, principal: str) -> ServerLogin | None:
        """Return the login that applies; None if the server has none."""
        if definition.login is None:
            return None
        return ServerLogin(self.logins, principal if definition.login == "personal" else "")

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

    async def _connection(self, definition: ServerDefinition, principal: str) -> ServerConnection:
        """Return the connection of a server with this definition and the login of a principal.

        Raises:
            ServerFailure: servers cannot be started here.
        """
        if self._sandbox is None:
            raise ServerFailure("servers cannot be started here")
        login = self._login(definition, principal)
        key = definition.name, login.principal if login else ""
        known = self._connections.get(key)
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
            login=login,
        )
        return self._connections.setdefault(key, created)

    async def _command(self, definition: ServerDefinition) -> SandboxCommand:
        session_id = home_session(definition.name)
        try:
            home = await asyncio.to_thread(self._home_of, session_id)
        except StoreUnavailable as error:
            raise ServerFailure(str(error)) from error
        seen = definition.cwd and definition.cwd not in definition.writable
        read_only = (*definition.read_only, *((definition.cwd,) if seen else ()))
        return SandboxCommand(
            (definition.command, *definition.args),
            definition.cwd or home,
            MAX_LIFE_SECONDS,
            session_id,
            environment=definition.env,
            access=FileAccess(definition.writable, read_only, definition.links),
            network=self._reached(definition.network, private=definition.allow_private_networks),
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
    """Return the status of a server: the tools found last, compared with the accepted ones."""
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
