"""The dependencies of the web channel, created by the composition root."""

from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple, Protocol

import msgspec
from msgspec import UNSET, UnsetType
from starlette.types import Receive, Scope, Send

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.gateway import Gateway
from internal.agent.app.plain_completions import PlainCompletions
from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.principals import Principal
from internal.agent.ports.documents import DocumentReader
from internal.agent.ports.runtime import Clock
from internal.channels.web.auth import Logins
from internal.channels.web.errors import HttpError
from internal.channels.web.readers import AnswerReaders
from internal.channels.web.static_page import Page, read_page
from internal.config.home import HomeError
from internal.settings.server import ServerSettings


class WebServerError(LarkspurError):
    """The web server cannot start with these settings. The text is shown to the user."""


HealthStatus = Literal["ok", "degraded", "failing"]
"""`failing`: requests cannot be processed; `degraded`: something else does not work."""


class ComponentHealth(msgspec.Struct, frozen=True):
    """The state of one component. `since` is the time of the last change (RFC 3339).

    `last_event` is when the service of a channel sent something last, "" for not yet.
    """

    ok: bool
    since: str
    detail: str = ""
    last_event: str = ""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the gateway.

    `failing` when the database cannot be used; `degraded` when a background task fails, when a
    message waits to be sent for over a minute, or when one was given up in the last day.
    `processes` are the gateways and workers of the database, this one included.
    `dead_letters` counts the messages and runs that were given up and not retried or dismissed.
    `call_repairs` counts what this process repaired in the calls of each model, by kind.
    """

    status: HealthStatus
    database: ComponentHealth
    dispatcher: ComponentHealth
    tasks: dict[str, ComponentHealth] = {}
    channels: dict[str, ComponentHealth] = {}
    lark: ComponentHealth | UnsetType = UNSET
    processes: dict[str, ComponentHealth] = {}
    dead_letters: int = 0
    call_repairs: dict[str, dict[str, int]] = {}


class ModelView(msgspec.Struct, frozen=True):
    """A known model; `id` is `provider:name`. Tasks can use it if it is `available`.

    `context_window` is in tokens, null if unknown.
    """

    id: str
    provider: str
    name: str
    context_window: int | None
    available: bool


class ModelsView(msgspec.Struct, frozen=True):
    """The known models, and the `id` of the one that tasks use by default."""

    default: str
    models: tuple[ModelView, ...]


class ProviderView(msgspec.Struct, frozen=True):
    """A provider of models.

    `key_origin` says where its key is set, such as `stored` or `environment OPENAI_API_KEY`; the
    key itself is never returned. `address` is its own address, `base_url` the stored one that is
    used instead, or "".
    """

    name: str
    title: str
    key: Literal["set", "missing", "not needed"]
    key_origin: str
    models: tuple[str, ...]
    address: str = ""
    base_url: str = ""


class ServerModelsView(msgspec.Struct, frozen=True):
    """The models that the server of a provider lists, none if it lists none: `finding` says why."""

    models: tuple[str, ...]
    finding: "Finding"


class ProvidersView(msgspec.Struct, frozen=True):
    """The providers, and the model that tasks use by default as `provider:name`.

    `set_by` names what chose it if the page cannot change it: a line of the configuration file or
    an environment variable. `pending`: the gateway is about to start again with a change.
    """

    default: str
    set_by: str
    providers: tuple[ProviderView, ...]
    pending: bool


class Finding(msgspec.Struct, frozen=True):
    """The result of a check. `advice` says what to do.

    `base_url` is the address that works in place of the one that was entered, "" if there is none
    or none is needed; `provider` is the one to choose with it, "" if it is the same.
    """

    state: Literal["ok", "warn", "fail"]
    sentence: str
    advice: str = ""
    base_url: str = ""
    provider: str = ""


class Findings(msgspec.Struct, frozen=True):
    """The results of a check, the most important first."""

    findings: list[Finding]


class LarkAppView(msgspec.Struct, frozen=True):
    """The app of the Lark channel. `set_by` and `pending` are as in `ProvidersView`.

    `simulated`: it is that of the simulator, until another one is stored.
    """

    enabled: bool
    app_id: str
    domain: str
    simulated: bool
    set_by: str
    pending: bool


class LarkApp(NamedTuple):
    """The credentials of an app. `domain` is `feishu`, `lark` or an origin."""

    app_id: str
    app_secret: str
    domain: str


class ModelAccess(NamedTuple):
    """A key, an address and a model as entered; "" stands for the configured value."""

    key: str = ""
    base_url: str = ""
    model: str = ""


class Setup(Protocol):
    """Changes the settings of a running gateway, which then starts again with them.

    Raises:
        Forbidden: the principal is not the owner.
        InvalidRequest: a setting is not valid.
        Conflict: the configuration file or the environment sets it.
        NotFound: there is no such provider.
    """

    def list_providers(self, principal: Principal) -> ProvidersView:
        """Return the providers."""
        ...

    async def check_key(self, principal: Principal, provider: str, access: ModelAccess) -> Finding:
        """Try an address and a key, then ask a model for a word.

        "" is the address or key that is set, and the default model.
        """
        ...

    async def list_server_models(self, principal: Principal, provider: str) -> ServerModelsView:
        """Ask the server of a provider which models it has."""
        ...

    async def store_key(
        self, principal: Principal, provider: str, key: str | None, base_url: str | None
    ) -> ProvidersView:
        """Store the key and the address of a provider; "" removes one, None leaves it."""
        ...

    async def choose_model(self, principal: Principal, model: str) -> ProvidersView:
        """Choose the default model, `provider:name`."""
        ...

    def show_lark(self, principal: Principal) -> LarkAppView:
        """Return the app of the Lark channel."""
        ...

    async def check_lark(self, principal: Principal, app: LarkApp | None) -> list[Finding]:
        """Check an app at Lark without storing it."""
        ...

    async def connect_lark(self, principal: Principal, app: LarkApp | None) -> LarkAppView:
        """Store the app of the Lark channel; None removes it."""
        ...


class McpEndpoint(Protocol):
    """Serves the MCP requests of authenticated principals."""

    async def serve(
        self, scope: Scope, receive: Receive, send: Send, *, principal: Principal, origin: str
    ) -> bool:
        """Serve a POST request. `receive` returns its whole body first.

        `origin` is the address of this server for the client. Returns False, without a response,
        if the necessary package is not installed.
        """
        ...


class WebTimeouts(msgspec.Struct, frozen=True):
    """Time limits of the web channel, in seconds.

    Attributes:
        request_seconds: Maximum duration of a request, and of receiving its body.
        head_seconds: Maximum duration of receiving a head, or the body of a request without a
            login.
        stall_seconds: A connection is closed when a write is not finished after this time.
        heartbeat_seconds: Interval of the heartbeats of an idle event stream.
    """

    request_seconds: float = 60.0
    head_seconds: float = 10.0
    stall_seconds: float = 20.0
    heartbeat_seconds: float = 15.0


class WebServices(msgspec.Struct, frozen=True):
    """Application services and settings that the web channel uses.

    A request that carries the local token acts as the local owner.

    Attributes:
        token: Returns the local token that is valid now. Raises HomeError if there is none.
        documents: Reads files; None where nobody can ask for their pages.
        setup: Changes settings; None in a terminal that executes its own tasks.
        mcp: The MCP server; None in such a terminal.
        plain: Completions without runs; None in such a terminal.
        readers: The clients that wait for answers.

    Raises:
        WebServerError: The token is blank.
        HomeError: The token cannot be used.
    """

    gateway: Gateway
    broadcaster: EventBroadcaster
    defaults: TaskDefaults
    token: Callable[[], str]
    settings: ServerSettings
    health: Callable[[], Awaitable[Health]]
    version: str
    clock: Clock
    logins: Logins
    documents: DocumentReader | None
    models: ModelsView = msgspec.field(default_factory=lambda: ModelsView("", ()))
    page: Page = msgspec.field(default_factory=read_page)
    timeouts: WebTimeouts = WebTimeouts()
    setup: Setup | None = None
    mcp: McpEndpoint | None = None
    plain: PlainCompletions | None = None
    readers: AnswerReaders = msgspec.field(default_factory=AnswerReaders)

    def __post_init__(self) -> None:
        if not self.token().strip():
            raise WebServerError("The local token is blank. The web server needs one to start.")

    def local_token(self) -> str:
        """Return the local token that is valid now.

        Raises:
            HttpError: It cannot be used, so that no credentials are accepted.
        """
        try:
            token = self.token()
        except HomeError:
            token = ""
        if not token.strip():
            raise HttpError(
                503,
                "token_unusable",
                "The file with the local token cannot be used. Run `larkspur doctor` for details.",
            )
        return token
