"""The gateway: a long-running process."""

import asyncio
import ctypes
import gc
import logging
import os
import resource
import secrets
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import uvloop

from internal.agent.app.background_task import background_task
from internal.agent.app.retention.pruner import PRUNE_INTERVAL_SECONDS
from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.permissions.network import NetworkKind, network_kind
from internal.agent.domain.react.gates import CONTROL_SPECS, DEFERRED_TOOL_SPECS
from internal.agent.domain.secrets import register_secret
from internal.agent.domain.system_errors import check_descriptors
from internal.agent.domain.tools import titles_by_tool
from internal.agent.store.runs import Role
from internal.channels.cli.commands.browser import open_browser
from internal.channels.cli.exit_codes import OK
from internal.channels.mcp.server import McpServer
from internal.channels.registry import create_channels
from internal.channels.web.auth import Logins
from internal.channels.web.routes.reviews import MCP_CALLBACK
from internal.channels.web.routes.table import HEALTH
from internal.channels.web.server import Address, WebServer
from internal.channels.web.services import ModelsView, ModelView, WebServices
from internal.channels.web.static_page import Page
from internal.config import home
from internal.config.home import GatewayAddress, HomeError
from internal.config.loader import Loaded
from internal.dispatch.dispatcher import RunDispatcher
from internal.dispatch.lock import database_lock
from internal.hooks.signature import suits_libraries
from internal.i18n.runs import RunMessages
from internal.observability.logs import configure_logging
from internal.observability.processes import SystemProcesses
from internal.sandbox.process_privacy import deny_process_inspection
from internal.settings.hooks import HookSettings, WebhookSettings
from internal.settings.server import ServerSettings
from internal.settings.settings import Settings
from internal.settings.types import ConfigError
from larkspur.chat_instructions import make_chat_instructions
from larkspur.health import ProcessHealth
from larkspur.model_list import list_models
from larkspur.retention import make_pruner
from larkspur.services import (
    GatewayServices,
    open_gateway,
)
from larkspur.settings_editor import SettingsEditor
from larkspur.task_defaults import TOOL_SPECS
from larkspur.version import VERSION

if TYPE_CHECKING:
    from internal.channels.chat.channel import ChatApp, ChatChannel

logger = logging.getLogger(__name__)

HANDOVER_TIMEOUT_SECONDS = 5.0
"""How long runs and channels may take to stop."""
SWITCH_INTERVAL_SECONDS = 0.0005
"""How long a storage thread waits for the interpreter lock while the event loop is busy.

For SQLite. On PostgreSQL a thread is woken by each reply of the server: many short waits cost more.
"""
MALLOC_ARENAS = 2
"""How many heaps malloc of glibc may use: one for the event loop, one for all other threads."""
MAX_DESCRIPTORS = 65_536
"""To how many open files a process raises its own limit, which is usually 1,024, if it may."""
MIN_FREE_DESCRIPTORS = 48
"""How many files a gateway must be able to open when it starts."""
SPARE_DESCRIPTORS = 4
PRELOAD_DELAY_SECONDS = 0.1
"""How long after it is ready a gateway answers the first requests before it reads more files."""
START_SECONDS = 10.0
"""How long after it is ready a gateway may still import modules, without garbage collection."""
UNUSED_FILES_INTERVAL_SECONDS = 600.0
"""How long files remain at most that nothing uses any more."""
_M_ARENA_MAX = -8  # of malloc.h
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SettingsSource:
    """Reads the settings of a gateway, also after people changed them.

    `load` has the parameters of `internal.config.loader.load`; `config` is the file named on the
    command line. `simulator` are the flags that connect to a simulator of Lark, used unless an app
    is configured.
    """

    def __init__(
        self,
        load: Callable[..., Loaded],
        config: str | None,
        flags: Mapping[str, Any],
        *,
        simulator: Mapping[str, Any] | None = None,
    ) -> None:
        self._load, self._config, self._flags = load, config, flags
        self._simulator = simulator or {}

    def with_simulator(self, flags: Mapping[str, Any]) -> "SettingsSource":
        """Return this source with the flags that connect to a simulator."""
        return SettingsSource(self._load, self._config, self._flags, simulator=flags)

    def read(
        self, *, flags: Mapping[str, Any] | None = None, stored: Mapping[str, Any] | None = None
    ) -> Loaded:
        """Read the settings, with further flags or other stored settings.

        Raises:
            ConfigError, HomeError: they cannot be used.
        """
        given = _merge(self._flags, flags or {})
        loaded = self._load(config=self._config, flags=given, stored=stored)
        if self._simulator and not loaded.settings.channels.lark.enabled:
            given = _merge(given, self._simulator)
            return self._load(config=self._config, flags=given, stored=stored)
        return loaded


def _merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested mappings as one; `other` wins."""
    merged = {**one, **other}
    for name in one.keys() & other.keys():
        if isinstance(one[name], Mapping) and isinstance(other[name], Mapping):
            merged[name] = _merge(one[name], other[name])
    return merged


def serve(
    source: SettingsSource,
    simulator_notice: str = "",
    *,
    opens_page: bool = False,
    executes: bool = True,
) -> int:
    """Serve the gateway until SIGTERM, SIGINT or SIGHUP, then return 0.

    On a shared database it then waits for its runs, until a second signal; the last signal exits.
    Without `executes` it leaves the runs to other processes.

    Raises:
        LarkspurError, ConfigError, HomeError: the gateway cannot start or continue.
    """
    loaded = source.read()
    home.prepare(loaded.home)
    register_secret(home.ensure_token(loaded.home))
    if not executes:
        _check_shared(loaded, "larkspur serve --no-work", "because no other process could work")
    _prepare_process(loaded)
    with (
        _exclusive(loaded) as has_lock,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        gateway = _ServedGateway(source, simulator_notice, has_lock=has_lock, executes=executes)
        runner.run(gateway.serve(loaded, opens_page=opens_page))
    return OK


def work(source: SettingsSource) -> int:
    """Execute runs beside gateways until a signal, then return 0. Signals act as in `serve`.

    Raises:
        LarkspurError, ConfigError, HomeError: the worker cannot start or continue.
    """
    loaded = source.read()
    home.prepare(loaded.home)
    _check_shared(loaded, "A worker", "because an SQLite file has one gateway, which also works")
    _prepare_process(loaded)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(loaded))
    return OK


def _check_shared(loaded: Loaded, subject: str, reason: str) -> None:
    """Raise ConfigError unless several processes may serve the database."""
    if loaded.settings.database.path is not None:
        raise ConfigError(
            f"{subject} needs PostgreSQL, {reason}. Set database.url, such as"
            " postgresql://larkspur@db.example.org/larkspur, for all processes."
        )


def _prepare_process(loaded: Loaded) -> None:
    configure_logging()
    deny_process_inspection()
    _limit_malloc_arenas()
    if loaded.settings.database.path is not None:
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.disable()  # it takes a fifth of the time of imports and finds nothing there
    _raise_descriptor_limit()
    check_descriptors(MIN_FREE_DESCRIPTORS)


def _raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _limit_malloc_arenas() -> None:
    """Let threads share their heap. One for each, the default, takes 2 MB more."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only glibc has it
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, MALLOC_ARENAS)


@contextmanager
def _exclusive(loaded: Loaded) -> Generator[bool]:
    """Hold the lock file of an SQLite database; yield whether it is held."""
    path = loaded.settings.database.path
    if path is None:
        yield False
        return
    with database_lock(path, SystemProcesses().current("gateway")) as has_lock:
        yield has_lock


class _Shutdown:
    """The signals of a process that executes runs.

    The first one stops it. While it waits for its runs, the second one ends the waiting. Any other
    signal exits at once.
    """

    def __init__(self) -> None:
        self.ending = asyncio.Event()
        self.is_stopped = False
        self._is_draining = False
        self._hurry = asyncio.Event()

    def install(self) -> None:
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._stop, number)

    async def end_runs(
        self, settings: Settings, dispatcher: RunDispatcher, dispatching: asyncio.Task[None]
    ) -> None:
        """Let the active runs end, then hand over the others, for at most 5 s."""
        if self.is_stopped and settings.database.path is None:
            await self._drain(dispatcher, dispatching, settings.dispatch.drain_seconds)
        dispatcher.stop()
        await asyncio.wait([dispatching], timeout=HANDOVER_TIMEOUT_SECONDS)

    async def _drain(
        self, dispatcher: RunDispatcher, dispatching: asyncio.Task[None], seconds: float
    ) -> None:
        dispatcher.close()
        if count := dispatcher.active_count:
            runs = "1 active run" if count == 1 else f"{count} active runs"
            notice = f"Waiting up to {seconds:g} s for {runs} to end."
            print(f"{notice} Another signal hands them over now.", file=sys.stderr, flush=True)
        self._is_draining = True
        async with background_task(_wait_for(self._hurry)) as hurrying:
            await asyncio.wait(
                [dispatching, hurrying], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        self._is_draining = False

    def _stop(self, number: signal.Signals) -> None:
        if self._is_draining and not self._hurry.is_set():
            self._hurry.set()
            return
        if self.is_stopped:
            os._exit(128 + number)
        self.is_stopped = True
        self.ending.set()


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()


async def _work(loaded: Loaded) -> None:
    shutdown = _Shutdown()
    shutdown.install()
    try:
        async with (
            open_gateway(loaded, role="worker") as services,
            services.registry.enter(services.process, "worker", services.supervisor),
            _health_server(loaded, services) as health,
            AsyncExitStack() as stack,
            asyncio.TaskGroup() as tasks,
        ):
            for channel in _create_channels(loaded, services):  # they fetch files of messages
                stack.push_async_callback(channel.close)
            dispatcher = services.dispatcher
            dispatching = tasks.create_task(dispatcher.run(services.coordinator, is_alone=False))
            _end_start(services)
            runs = loaded.settings.dispatch.concurrency
            print(
                f"larkspur {VERSION} works as {services.process.pid} on {services.process.host},"
                f" up to {runs} runs at once. The model is {_model(loaded)}. Ctrl+C stops.{health}",
                file=sys.stderr,
                flush=True,
            )
            await shutdown.ending.wait()
            await shutdown.end_runs(loaded.settings, dispatcher, dispatching)
            dispatching.cancel()
    except ExceptionGroup as group:
        raise _explained(group) from None


@asynccontextmanager
async def _health_server(loaded: Loaded, services: GatewayServices) -> AsyncGenerator[str]:
    """Answer GET /health for the length of a block, if the settings name a port.

    Yields the sentence about it. With the local token the answer has details, as that of a gateway.

    Raises:
        WebServerError: the port cannot be used.
    """
    port, path = loaded.settings.dispatch.health_port, loaded.home / "token"
    if port is None:
        yield ""
        return
    token = home.LocalToken(loaded.home, partial(register_secret, renewed="local token"))
    nobodys = secrets.token_hex(32)  # a host with a home folder of its own may have no token
    web = WebServices(
        gateway=services.gateway,
        broadcaster=services.broadcaster,
        defaults=services.defaults,
        token=lambda: token.read() if path.exists() else nobodys,
        settings=ServerSettings(port=port),
        health=ProcessHealth(services, ()).report,
        version=VERSION,
        clock=services.clock,
        documents=None,
        logins=Logins(),
        page=Page(b"", {}),
    )
    server = WebServer(web, (HEALTH,), port_key="dispatch.health_port")
    async with background_task(server.serve(services.supervisor)):
        await server.ready()
        try:
            yield f" Its health: {server.address.url}/health"
        finally:
            await server.stop()


def serve_with_simulator(
    source: SettingsSource, *, opens_page: bool = False, executes: bool = True
) -> int:
    """Serve the gateway, with a simulator of Lark unless an app is configured.

    Raises:
        LarkspurError, ConfigError, HomeError, OSError: the gateway cannot start.
    """
    if source.read().settings.channels.lark.enabled:
        return serve(source, opens_page=opens_page, executes=executes)
    from larkspur.lark_simulator import background_simulator  # noqa: PLC0415 - only for this

    with background_simulator() as simulator:
        notice = (
            f"{simulator.page}   simulated: message the bot there; {simulator.operator} approves"
        )
        source = source.with_simulator(simulator.flags)
        return serve(source, notice, opens_page=opens_page, executes=executes)


class _ServedGateway:
    """Serves a gateway until a signal; starts it again after a change of its settings."""

    def __init__(
        self, source: SettingsSource, simulator_notice: str, *, has_lock: bool, executes: bool
    ) -> None:
        self._source = source
        self._simulator_notice = simulator_notice
        self._has_lock, self._executes = has_lock, executes
        self._shutdown = _Shutdown()

    async def serve(self, loaded: Loaded, *, opens_page: bool) -> None:
        shutdown = self._shutdown
        shutdown.install()
        try:
            port = await self._serve_once(loaded, opens_page=opens_page)
            while not shutdown.is_stopped:
                shutdown.ending.clear()
                port = await self._serve_once(self._source.read(), port=port)
        except ExceptionGroup as group:
            raise _explained(group) from None

    async def _serve_once(self, loaded: Loaded, *, port: int = 0, opens_page: bool = False) -> int:
        """Serve with these settings until a signal or a change; return the port.

        With `port` the gateway starts again: it is announced in a line.
        """
        if port:
            server_settings = loaded.settings.server.model_copy(update={"port": port})
            settings = loaded.settings.model_copy(update={"server": server_settings})
            loaded = replace(loaded, settings=settings)
        async with (
            open_gateway(loaded, executes=self._executes) as services,
            self._registered(loaded, services),
            _running_channels(
                loaded, services, self._editor(loaded, services), self._shutdown
            ) as server,
        ):
            if port:
                _announce_settings(loaded)
            else:
                _announce(loaded, services.defaults, server, self._simulator_notice)
            if opens_page:
                await asyncio.to_thread(open_browser, server.link(), loaded.home)
            await self._shutdown.ending.wait()
            return server.address.port

    def _registered(
        self, loaded: Loaded, services: GatewayServices
    ) -> AbstractAsyncContextManager[None]:
        """Enter the process into the list of the database; on SQLite it must be the only one."""
        path, registry = loaded.settings.database.path, services.registry
        if path is None:
            role: Role = "gateway" if services.dispatcher.executes_runs else "channels"
            return registry.enter(services.process, role, services.supervisor)
        return registry.enter_alone(services.process, path, has_lock=self._has_lock)

    def _editor(self, loaded: Loaded, services: GatewayServices) -> SettingsEditor:
        restart = self._shutdown.ending.set
        return SettingsEditor(loaded, services, reload=self._source.read, restart=restart)


@asynccontextmanager
async def _running_channels(
    loaded: Loaded, services: GatewayServices, setup: SettingsEditor, shutdown: _Shutdown
) -> AsyncGenerator[WebServer]:
    """Run the dispatcher and the channels for the length of a block; stop in reverse order."""
    channels = _create_channels(loaded, services)
    token = home.LocalToken(loaded.home, partial(register_secret, renewed="local token"))
    server = WebServer(_web_services(loaded, services, token, channels, setup=setup))

    async def check_token() -> None:
        try:
            token.read()
        except HomeError as error:
            raise LarkspurError(str(error)) from error

    await services.webhooks.open()
    repeat = partial(services.supervisor.repeat, interval=1.0)
    async with (
        background_task(repeat("file descriptors", _check_spare_descriptors)),
        background_task(repeat("local token", check_token)),
        background_task(services.webhooks.run(services.supervisor)),
        background_task(
            services.supervisor.repeat(
                "unused files",
                services.files.unused.remove_released,
                interval=UNUSED_FILES_INTERVAL_SECONDS,
            )
        ),
        background_task(
            services.supervisor.repeat(
                "retention",
                make_pruner(services, services.gateway).prune,
                interval=PRUNE_INTERVAL_SECONDS,
            )
        ),
        asyncio.TaskGroup() as tasks,
    ):
        dispatching = tasks.create_task(
            services.dispatcher.run(
                services.coordinator, is_alone=loaded.settings.database.path is not None
            )
        )
        tasks.create_task(server.serve(services.supervisor))
        await server.ready()
        home.write_address(loaded.home, _gateway_address(loaded, server.address))
        if names := loaded.settings.database.without_effect:
            fields = {"parameters": ", ".join(names)}
            logger.warning("parameters of database.url have no effect", extra=fields)
        base = loaded.settings.server.public_url or server.address.url
        services.mcp_servers.login_redirect = f"{base.rstrip('/')}{MCP_CALLBACK}"
        _end_start(services)
        serving = [tasks.create_task(channel.run()) for channel in channels]
        try:
            yield server
        finally:
            home.remove_address(loaded.home, os.getpid())
            for channel in channels:
                channel.stop()
            if serving:
                await asyncio.wait(serving, timeout=HANDOVER_TIMEOUT_SECONDS)
            await shutdown.end_runs(loaded.settings, services.dispatcher, dispatching)
            await server.stop()
            dispatching.cancel()


def _create_channels(loaded: Loaded, services: GatewayServices) -> "tuple[ChatChannel, ...]":
    """Return the enabled chat channels. The files of their messages can be fetched now."""
    return create_channels(partial(_make_chat_app, loaded, services), loaded.settings.channels)


def _make_chat_app(loaded: Loaded, services: GatewayServices) -> "ChatApp":
    from internal.channels.chat.channel import ChatApp  # noqa: PLC0415 - of no use without chat
    from internal.i18n.chat import ChatTexts  # noqa: PLC0415 - as above

    titles = titles_by_tool((*TOOL_SPECS, *CONTROL_SPECS, *DEFERRED_TOOL_SPECS))
    return ChatApp(
        services.gateway,
        services.defaults,
        services.clock,
        ChatTexts(loaded.settings.ui.language, titles),
        services.supervisor,
        services.remote_files,
        make_chat_instructions(services),
        services.leaderships,
        services.question_recipients,
        services.mentions,
        services.workspaces.folders.path,
        loaded.settings.server.public_url or "",
    )


def _end_start(services: GatewayServices) -> None:
    """Schedule the preload for the first run, and enable garbage collection after a while.

    Objects that exist now are never scanned.
    """
    loop = asyncio.get_running_loop()
    loop.call_later(PRELOAD_DELAY_SECONDS, services.preload)
    gc.freeze()  # looking through it would stop every conversation
    loop.call_later(START_SECONDS, _enable_garbage_collection)


def _enable_garbage_collection() -> None:
    """Collect garbage from now on, among objects created from now on."""
    gc.collect()
    gc.freeze()
    gc.enable()


async def _check_spare_descriptors() -> None:
    """Check that connections can be accepted; the event loop refuses them without a word."""
    check_descriptors(SPARE_DESCRIPTORS)


def _explained(group: ExceptionGroup[Exception]) -> Exception:
    """Return the error with a sentence for people. The failures that it caused are logged."""
    known, others = group.split((LarkspurError, ConfigError, HomeError, OSError))
    if known is None:
        return group
    if others is not None:
        logger.error("more than one part of the gateway failed", exc_info=others)
    return _first_error(known)


def _first_error(group: BaseExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first_error(first) if isinstance(first, BaseExceptionGroup) else first


def _web_services(
    loaded: Loaded,
    services: GatewayServices,
    token: home.LocalToken,
    channels: "Sequence[ChatChannel]",
    *,
    setup: SettingsEditor,
) -> WebServices:
    return WebServices(
        gateway=services.gateway,
        broadcaster=services.broadcaster,
        defaults=services.defaults,
        token=token.read,
        settings=loaded.settings.server,
        health=ProcessHealth(services, channels).report,
        version=VERSION,
        clock=services.clock,
        documents=services.documents,
        logins=Logins(loaded.home),
        models=_models(loaded),
        setup=setup,
        mcp=McpServer(services.gateway, services.defaults, VERSION),
        plain=services.plain,
    )


def _models(loaded: Loaded) -> ModelsView:
    """Return the known models; tasks can use the models of the configured provider."""
    llm = loaded.settings.llm
    views = (
        ModelView(
            f"{one.provider}:{one.model}",
            one.provider,
            one.model,
            one.context_window,
            one.provider == llm.provider,
        )
        for one in list_models(loaded)
    )
    return ModelsView(f"{llm.provider}:{llm.model}", tuple(views))


def _gateway_address(loaded: Loaded, address: Address) -> GatewayAddress:
    return GatewayAddress(
        host=address.host,
        port=address.port,
        pid=os.getpid(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        provider=loaded.settings.llm.provider,
        model=loaded.settings.llm.model,
        version=VERSION,
    )


_NETWORK: dict[NetworkKind, str] = {
    "off": "without network",
    "registries": "and reach package indexes only",
    "hosts": "and reach the hosts of the settings only",
    "open": "with network",
}


def _isolation(defaults: TaskDefaults) -> str:
    if defaults.isolated:
        return f"commands run isolated, {_NETWORK[network_kind(defaults.policy.allow)]}"
    return "commands run on this machine, not isolated"


def _limits(loaded: Loaded, defaults: TaskDefaults) -> str:
    agent, daily = loaded.settings.agent, loaded.settings.access.max_daily_cost
    limits = defaults.limits
    cost = f"${agent.max_cost:.2f}" if agent.max_cost else "no cost limit"
    if unpriced := RunMessages("en").cost_limit(
        defaults.model, limits.max_cost, limits.max_tokens, is_priced=defaults.is_priced
    ):
        return (
            f"{agent.max_iterations} iterations, {agent.run_timeout_seconds / 60:g} min. {unpriced}"
        )
    minutes = f"{agent.run_timeout_seconds / 60:g} min"
    run = f"{agent.max_iterations} iterations, {minutes}, {cost} per run"
    return run if not daily else f"{run} · ${daily:.2f} per day for each person in a chat"


def _model(loaded: Loaded) -> str:
    llm = loaded.settings.llm
    if llm.provider == "offline":
        return "the offline demo model; add a key in the settings of the page to use a real one"
    return f"{llm.model} of {llm.provider}"


def _announce_settings(loaded: Loaded) -> None:
    print(f"The settings were changed. The model is {_model(loaded)}.", file=sys.stderr, flush=True)


def _announce(
    loaded: Loaded, defaults: TaskDefaults, server: WebServer, simulator_notice: str
) -> None:
    """Print the addresses and the first commands to try."""
    token, url = loaded.home / "token", server.address.url
    lark = [f"  lark   {simulator_notice}"] if simulator_notice else []
    lines = [
        f"larkspur {VERSION} is at {url}",
        f"  page   {_login(server)}",
        *lark,
        f"  model  {_model(loaded)}",
        f"  limits {_limits(loaded, defaults)}",
        f"  data   {loaded.home} · {_isolation(defaults)} · Ctrl+C stops",
        *_workspace_warning(loaded),
        *_secret_warnings(loaded),
        "",
        "Try, in another terminal:",
        f"  {sys.argv[0]}",
        f'  {sys.argv[0]} -p "list the files here"',
        f'  curl -s {url}/api/tasks -H @<(echo "Authorization: Bearer $(cat {token})") \\',
        "    -H 'Content-Type: application/json' -d '{\"task\": \"what is 6*7\"}'",
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _login(server: WebServer) -> str:
    """Return a link that logs in, for a terminal; logs are kept, and read by others."""
    if not sys.stderr.isatty():
        return f"`{sys.argv[0]} open` prints a link that logs in"
    return f"{server.link()}   opens once, within five minutes"


def _workspace_warning(loaded: Loaded) -> list[str]:
    folder = loaded.settings.agent.workspace
    inner = None if folder is None else home.find_home_in(str(folder))
    if inner is None:
        return []
    return [f"  warning  agent.workspace {folder} contains {inner}; the agent reads it unasked"]


def _secret_warnings(loaded: Loaded) -> list[str]:
    settings = loaded.settings
    named: list[HookSettings | WebhookSettings] = [*settings.webhooks, *settings.hooks]
    return [
        f"  warning  the secret of {each.title} is not valid Base64: libraries that verify"
        " signatures may refuse it; `larkspur hooks secret` makes one that they take"
        for each in named
        if each.secret is not None and not suits_libraries(each.secret.get_secret_value())
    ]
