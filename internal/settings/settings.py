"""All settings with their defaults and one-line explanations.

`configs/larkspur.yaml` and the table in `docs/settings.md` are generated from these models by
`reference.py`. `loader.py` reads the values; each package receives its own section.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from internal.database_address.address import is_postgres, parse_address
from internal.i18n.language import LanguageSetting
from internal.normal_forms.addresses import is_loopback, reached_host
from internal.normal_forms.time_zones import check_time_zone
from internal.search_providers.provider import SearchProvider
from internal.search_providers.registry import PROVIDERS
from internal.settings.hooks import HookSettings, WebhookSettings
from internal.settings.lark import LarkSettings
from internal.settings.llm import LlmSettings
from internal.settings.server import ServerSettings
from internal.settings.types import (
    BucketName,
    Count,
    DatabaseUrl,
    DollarLimit,
    Folder,
    HostName,
    KeyPrefix,
    Megabytes,
    Minutes,
    Network,
    Origin,
    OutsidePath,
    Port,
    RetentionDays,
    Seconds,
    Secret,
    SecretEntry,
    Section,
    Share,
    Text,
    TokenLimit,
    WebAddress,
    key,
    matches,
    one_of,
    section,
)

MIN_MESSAGE_DAYS = 8
"""Minimum time for which a handled message is remembered, so that it is not handled again."""


class AgentSettings(Section):
    """How a run works and when it must end."""

    max_iterations: Count = key(60, "Maximum number of iterations of a run.")
    max_cost: DollarLimit = key(
        5.0, "Maximum cost of a run in US dollars, for models with a known price; 0: no limit."
    )
    max_tokens: TokenLimit = key(
        5_000_000, "Maximum number of tokens of a run, for models without one; 0: no limit."
    )
    tool_concurrency: Annotated[Count, Field(le=64)] = key(
        8, "Maximum number of parallel tool calls in a run."
    )
    tool_timeout_seconds: Seconds = key(120.0, "Timeout of a tool call, in seconds.")
    run_timeout_seconds: Seconds = key(
        1_800.0, "Timeout of a run, in seconds; waiting for a person does not count."
    )
    max_consecutive_tool_failures: Count = key(
        6, "Number of consecutive tool failures that end a run."
    )
    gates: Literal["adaptive", "strict", "advisory", "off"] = key(
        "adaptive",
        "strict: plan before acting; adaptive: two calls that read, or one isolated command, go"
        " before it; advisory: only the rule for exclusive calls; off: no gates.",
    )
    plan_review: Literal["off", "complex", "always"] = key(
        "off", "Which plans a person must approve before work starts: none, complex ones, or all."
    )
    question_ttl_minutes: Annotated[Count, Field(le=525_600)] = key(
        1_440, "Minutes after which an unanswered question counts as no."
    )
    profile: Text = key("default", "Profile of runs that name none.")
    title_model: Text = key(
        "",
        "Model of `llm.provider` that titles sessions (empty: the first words of the task) and"
        " answers `larkspur-plain` (empty: the default model).",
    )
    message_cache_bytes: Count = key(
        64_000_000, "Memory for the messages of the sessions that were used last, in bytes."
    )
    workspace: Folder | None = key(
        None, "Working folder of tools; unset: one per session, in the terminal the current folder."
    )


class DatabaseSettings(Section):
    """Where everything is stored."""

    url: DatabaseUrl = key(
        DatabaseUrl("sqlite:///${LARKSPUR_HOME}/larkspur.db"),
        "sqlite:/// and the absolute path of a file, or postgresql://USER:PASSWORD@HOST:PORT/NAME"
        " with larkspur-gateway[postgres].",
    )

    @field_validator("url")
    @classmethod
    def _known(cls, url: DatabaseUrl) -> DatabaseUrl:
        text = url.get_secret_value()
        if is_postgres(text):
            parse_address(text)  # registers the password
            return url
        path = text.removeprefix("sqlite:///")
        if path == text or not path.startswith("/") or path.endswith("/") or not path.isprintable():
            raise ValueError(
                "must be sqlite:/// and an absolute path, such as sqlite:////srv/a.db,"
                " or postgresql://USER:PASSWORD@HOST:PORT/NAME"
            )
        return url

    @property
    def path(self) -> Path | None:
        """The database file, None when the database is a server's.

        Without symbolic links: SQLite puts its other files beside it.
        """
        text = self.url.get_secret_value()
        return None if is_postgres(text) else Path(text.removeprefix("sqlite:///")).resolve()

    @property
    def address(self) -> str:
        """The path or URL to open. A URL may contain a password."""
        return self.url.get_secret_value() if self.path is None else str(self.path)

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The parameters of the URL that are passed over."""
        text = self.url.get_secret_value()
        return parse_address(text).parameters.without_effect if is_postgres(text) else ()

    @property
    def shown(self) -> str:
        """The path or URL in messages, without a password."""
        return self.url.shown if self.path is None else str(self.path)


def _outlives_redelivery(days: int) -> int:
    if 0 < days < MIN_MESSAGE_DAYS:
        raise ValueError(
            f"must be at least {MIN_MESSAGE_DAYS} (or 0), because chats deliver messages again"
        )
    return days


def _outlives_day(days: int) -> int:
    if days == 1:
        raise ValueError("must be at least 2 (or 0), because daily limits count it")
    return days


class S3Settings(Section):
    """A bucket of a storage service that speaks S3, such as AWS, Cloudflare R2 or MinIO."""

    endpoint: Origin | None = key(
        None, "Origin of the storage service, such as https://s3.eu-central-1.amazonaws.com."
    )
    bucket: BucketName | None = key(None, "Bucket, which must exist.")
    region: Text = key("us-east-1", "Region of the bucket; auto for Cloudflare R2.")
    prefix: KeyPrefix = key(
        "larkspur", "Beginning of all keys. Nothing else may store objects under it."
    )
    access_key: Secret | None = key(None, "Access key, which may read, write, list and delete.")
    secret_key: Secret | None = key(None, "Secret of the access key.")


class AttachmentsSettings(Section):
    """Where files that people send and runs make are stored, and how large they may be."""

    store: Literal["local", "s3"] = key(
        "local",
        "local: a folder in the home folder; s3: the bucket below, with larkspur-gateway[s3].",
    )
    folder: Folder | None = key(
        None,
        "Folder of the local store, which all hosts of a database share; unset: attachments in the"
        " home folder.",
    )
    max_file_bytes: Annotated[Count, Field(le=104_857_600)] = key(
        104_857_600, "Maximum size of a file, in bytes; at most 104857600."
    )
    max_session_bytes: Count = key(
        2_147_483_648,
        "Maximum size of the files of a session together, in bytes; the same holds for a person's"
        " uploads that no task uses yet.",
    )
    s3: S3Settings = section(S3Settings)

    @model_validator(mode="after")
    def _has_bucket(self) -> Self:
        if self.store == "s3":
            required = ("endpoint", "bucket", "access_key", "secret_key")
            missing = [f"s3.{name}" for name in required if getattr(self.s3, name) is None]
            if missing:
                verb = "is" if len(missing) == 1 else "are"
                raise ValueError(f"store is s3, but {' and '.join(missing)} {verb} not set")
        return self


class WorkspacesSettings(Section):
    """Where the folders of sessions are, in a database that several hosts use."""

    location: Literal["host", "shared", "archive"] = key(
        "host",
        "host: on the host that executed the first task of a session, which executes the others,"
        " too; shared: in a folder that all hosts share; archive: as an archive in the store of"
        " attachments between two tasks, up to 200 MB.",
    )
    folder: Folder | None = key(
        None, "Folder in which the folders of sessions are; unset: the home folder."
    )


class RetentionSettings(Section):
    """What is removed because of its age, once a day and by `larkspur db prune`."""

    handled_messages_days: Annotated[RetentionDays, AfterValidator(_outlives_redelivery)] = key(
        30,
        "Days after which received messages that were handled and sent replies are removed, not the"
        " conversations; at least 8, 0: never.",
    )
    events_days: RetentionDays = key(
        0,
        "Days after which events are removed, except those of unfinished and resumable runs and of"
        " pinned sessions; the conversations stay. 0: never.",
    )
    sessions_days: RetentionDays = key(
        0,
        "Days without activity after which a session is removed with its files, unless it is"
        " pinned; 0: never.",
    )
    one_shot_days: RetentionDays = key(
        0, "As sessions_days, for sessions of a single task, such as of `larkspur -p`; 0: never."
    )
    audit_days: RetentionDays = key(
        0, "Days after which entries of the audit log are removed; 0: never."
    )
    usage_days: Annotated[RetentionDays, AfterValidator(_outlives_day)] = key(
        0, "Days after which tokens and cost are removed; at least 2, 0: never."
    )


class DispatchSettings(Section):
    """How many runs this process executes."""

    concurrency: Count = key(
        32, "Maximum number of concurrent runs in this process, without waiting ones."
    )
    lease_seconds: Annotated[Seconds, Field(ge=1)] = key(
        30.0,
        "Seconds after which runs and chats may be taken from a silent process. Nothing waits for"
        " one that is known to have ended, on the same machine.",
    )
    drain_seconds: Annotated[Seconds, Field(ge=0)] = key(
        30.0,
        "Seconds that a stopped process waits for its runs to end, before it hands them over to"
        " others; with SQLite it does not wait.",
    )
    health_port: Port | None = key(
        None,
        "Port of 127.0.0.1 on which a worker answers GET /health, 0 for any free one; without it"
        " there is none.",
    )
    host: HostName = key(
        "",
        "Name of this host among those that use the database; empty: with SQLite there is only"
        " one, else the name of the machine.",
    )


class TasksSettings(Section):
    """Tasks that run in the background."""

    report: Literal["group", "each", "silent"] = key(
        "group",
        "How background tasks that end after the run that created them are reported: group: all of"
        " a run together; each: one by one; silent: not at all.",
    )


class AccessSettings(Section):
    """What a person may use per day, and at once."""

    max_daily_cost: DollarLimit = key(
        5.0,
        "Maximum cost in US dollars of a person's runs per day (UTC), over all channels; not for"
        " the owner and operators. 0: no limit.",
    )
    max_daily_tokens: TokenLimit = key(
        5_000_000, "As max_daily_cost, in tokens of models without a known price."
    )
    max_running: Count = key(
        8,
        "Maximum number of a person's runs that run at once, in all processes, and never more than"
        " half of dispatch.concurrency; not for the owner. The runs of people start in turn.",
    )
    max_waiting: Count = key(
        20, "Maximum number of a person's tasks that wait to be started; not for the owner."
    )


class WebSettings(Section):
    """The web channel; there is nothing to set yet."""


class CliSettings(Section):
    """The terminal channel; there is nothing to set yet."""


class ChannelsSettings(Section):
    """The channels."""

    lark: LarkSettings = section(LarkSettings)
    web: WebSettings = section(WebSettings)
    cli: CliSettings = section(CliSettings)


class WebFetchSettings(Section):
    """The limits of web_fetch."""

    max_bytes: Count = key(5_242_880, "Maximum number of bytes read from a page.")
    allow_private_networks: bool = key(
        False, "true allows web_fetch to reach private addresses, which is a risk."
    )


SearchProviderName = Annotated[str, one_of(provider.name for provider in PROVIDERS)]
KeyedSearchProviderName = Annotated[
    str, one_of(provider.name for provider in PROVIDERS if provider.key_variable)
]


class WebSearchSettings(Section):
    """The search providers of web_search, which is offered if one of them can be asked."""

    providers: tuple[SearchProviderName, ...] = key(
        (),
        f"Providers to ask, in order: {', '.join(each.name for each in PROVIDERS)};"
        " unset: all that have a key or a URL.",
    )
    searxng_url: WebAddress | None = key(
        None, "URL of a SearXNG instance; it must list json under search.formats."
    )
    keys: Mapping[KeyedSearchProviderName, Secret] = key(
        {},
        "{provider: key}; also read from"
        f" {', '.join(each.key_variable for each in PROVIDERS if each.key_variable)}.",
    )
    timeout_seconds: Annotated[Seconds, Field(le=30)] = key(
        10.0, "Seconds after which the next provider is asked."
    )
    cache_minutes: Minutes = key(60, "Minutes for which results are kept in memory; 0: not at all.")
    allow_private_networks: bool = key(
        False, "true allows providers with private addresses, such as a SearXNG of your own."
    )

    def configured_providers(self) -> tuple[SearchProvider, ...]:
        """Return the providers in the order in which they are asked, usable or not."""
        made = {kind.name: self._make(kind) for kind in PROVIDERS}
        if self.providers:
            return tuple(made[name] for name in dict.fromkeys(self.providers))
        return tuple(provider for provider in made.values() if not provider.missing)

    def _make(self, kind: type[SearchProvider]) -> SearchProvider:
        if kind.key_variable is None:
            return kind(address=self.searxng_url or "")
        return kind(key=self.keys.get(kind.name))


class ToolsSettings(Section):
    """Permission rules and limits of tools."""

    permission_mode: Literal["auto", "ask"] = key(
        "auto",
        "Mode of tasks that choose none; auto: run where commands are isolated, else ask.",
    )
    allow: tuple[Text, ...] = key((), "Permission rules for calls that run without approval.")
    deny: tuple[Text, ...] = key(
        (), "Permission rules for calls that are denied; deny takes precedence."
    )
    web_fetch: WebFetchSettings = section(WebFetchSettings)
    web_search: WebSearchSettings = section(WebSearchSettings)


class SandboxSettings(Section):
    """How tool processes are isolated."""

    provider: Literal["auto", "bubblewrap", "landlock", "container", "native"] = key(
        "auto",
        "bubblewrap: commands see their workspace and reach permitted hosts only; landlock: the"
        " same without user namespaces, and without network; container: docker or podman, without"
        " network; native: no isolation; auto: bubblewrap, landlock or native, the first that works"
        " here.",
    )
    network: Network = key(
        "off",
        "Hosts that isolated commands reach without approval; off: none; registries: the package"
        " indexes of PyPI, npm and others; open: all; or a list such as [github.com, *.corp.cn].",
    )
    allow_private_networks: bool = key(
        False, "true lets such hosts have addresses of this machine and of private networks."
    )
    read_only: tuple[OutsidePath, ...] = key(
        (),
        "Files and folders besides /usr that isolated commands may read, such as [/opt/node,"
        " ~/data]; programs in a bin folder of one are found.",
    )
    engine: Text = key(
        "docker", "For container: docker, podman, or the path of a program that is used like them."
    )
    image: str = key("", "For container: an image with bash that is on this machine.")
    session_disk_mb: Megabytes = key(
        10_000,
        "Megabytes that the folders of one session may take where commands are isolated: its"
        " workspace unless that is a folder of yours, its home, and the files that people sent and"
        " runs made; 0: no bound.",
    )
    packages: str = key(
        "",
        "A requirements file for pip: these Python packages are installed once, and commands find"
        " them.",
    )


class SkillsSettings(Section):
    """Where skills are, besides the home folder and those that are shipped."""

    paths: tuple[OutsidePath, ...] = key(
        (),
        "Folders with further skills, such as [~/.claude/skills, ~/.agents/skills]; each skill"
        " needs a review, and isolated commands may read the folders.",
    )


class McpSettings(Section):
    """MCP servers, besides those of mcp.json in the home folder."""

    servers: Mapping[str, SecretEntry] = key(
        {},
        "Servers by name, with the keys of mcpServers such as command, args, env, url and headers;"
        " each needs a review, see docs/mcp.md.",
    )
    max_schema_share: Share = key(
        0.1,
        "Share of the model's context window for the schemas of MCP tools; with more of them the"
        " model gets find_tools and use_tool instead.",
    )
    token_key: Secret | None = key(
        None,
        "Key that encrypts the logins to servers, 32 bytes in base64, such as of `openssl rand"
        " -base64 32`; without one, the home folder has a file with a key.",
    )


StatusPart = Literal["mode", "model", "folder", "context", "cost"]


class UiSettings(Section):
    """The language of messages, and how a session in the terminal looks."""

    language: LanguageSetting = key("auto", "Language of messages; auto follows the locale.")
    time_zone: Annotated[Text, AfterValidator(check_time_zone)] | None = key(
        None, "Time zone of dates and times, such as Asia/Shanghai; unset: that of the system."
    )
    notify: bool = key(
        True,
        "The terminal rings and notifies when something waits or a run of over 10 s ends.",
    )
    status_line: tuple[StatusPart, ...] = key(
        ("mode", "model", "folder", "context", "cost"),
        "Parts of the status line of a session, in order.",
    )


OPENAI_URL = "https://api.openai.com/v1"


LanguageCode = Annotated[str, matches("[a-z]{2,3}", "must be a code such as zh or en")]


class TranscriptionSettings(Section):
    """Transcription of voice messages and recordings by an OpenAI-compatible service."""

    model: Text | None = key(
        None, "Model, such as gpt-4o-transcribe; unset: recordings are not transcribed."
    )
    base_url: WebAddress = key(
        OPENAI_URL, "Base URL of the service; recordings are sent to it as files."
    )
    api_key: Secret | None = key(
        None, "API key of the service; a service at another base URL may need none."
    )
    language: LanguageCode | None = key(
        None, "Code of the spoken language, such as zh; unset: the service recognises it."
    )
    timeout_seconds: Seconds = key(
        120.0, "Seconds after which the transcription of a recording fails, with all retries."
    )
    max_minutes: Count = key(60, "Longer recordings are not transcribed.")

    @model_validator(mode="after")
    def _has_key(self) -> Self:
        if self.model is not None and self.api_key is None and self.base_url == OPENAI_URL:
            raise ValueError("model needs an api_key, or the base_url of a service without one")
        return self


class AudioSettings(Section):
    """What is done with recordings that people send."""

    transcription: TranscriptionSettings = section(TranscriptionSettings)


class Settings(Section):
    """All settings."""

    llm: LlmSettings = section(LlmSettings)
    agent: AgentSettings = section(AgentSettings)
    database: DatabaseSettings = section(DatabaseSettings)
    retention: RetentionSettings = section(RetentionSettings)
    attachments: AttachmentsSettings = section(AttachmentsSettings)
    workspaces: WorkspacesSettings = section(WorkspacesSettings)
    dispatch: DispatchSettings = section(DispatchSettings)
    tasks: TasksSettings = section(TasksSettings)
    server: ServerSettings = section(ServerSettings)
    access: AccessSettings = section(AccessSettings)
    channels: ChannelsSettings = section(ChannelsSettings)
    tools: ToolsSettings = section(ToolsSettings)
    audio: AudioSettings = section(AudioSettings)
    sandbox: SandboxSettings = section(SandboxSettings)
    skills: SkillsSettings = section(SkillsSettings)
    mcp: McpSettings = section(McpSettings)
    ui: UiSettings = section(UiSettings)
    hooks: tuple[HookSettings, ...] = key(
        (), "Programs and services that are asked or told about what happens; see docs/hooks.md."
    )
    webhooks: tuple[WebhookSettings, ...] = key(
        (), "Receivers of events, [{url, secret, events, timeout_seconds}]; see docs/hooks.md."
    )

    @field_validator("webhooks")
    @classmethod
    def _are_distinct(cls, hooks: tuple[WebhookSettings, ...]) -> tuple[WebhookSettings, ...]:
        if len({hook.url for hook in hooks}) < len(hooks):
            raise ValueError("must not name a url twice; list all its events once")
        return hooks

    @model_validator(mode="after")
    def _is_loopback_only(self) -> Self:
        # browsers would send the Host [::ffff:7f00:1] to ::ffff:127.0.0.1, which names no server
        is_plain = reached_host(self.server.host) == self.server.host
        if not (is_plain and is_loopback(self.server.host)):
            raise ValueError(
                f"server.host {self.server.host} is not a loopback address; only 127.0.0.1, ::1"
                " and localhost are"
            )
        return self
