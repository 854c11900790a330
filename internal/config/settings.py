"""All settings. Every default and every one-line explanation stands here and in `llm.py` alone.

`configs/larkspur.yaml` and the table in `docs/settings.md` are written from these models by
`reference.py`. Values are read by `load.py`; a room imports its own section's type.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from internal.config.lark import LarkSettings
from internal.config.llm import LlmSettings
from internal.config.server import ServerSettings
from internal.config.types import (
    Count,
    Folder,
    Seconds,
    Section,
    Text,
    is_loopback,
    key,
)


class AgentSettings(Section):
    """How a run works and when it must end."""

    max_iterations: Count = key(150, "Most iterations of one run.")
    tool_concurrency: Annotated[Count, Field(le=64)] = key(
        8, "Tool calls of one reply that run at once."
    )
    tool_timeout_seconds: Seconds = key(120.0, "Longest time of one tool call.")
    run_timeout_seconds: Seconds = key(
        3_600.0, "Longest running time of a run; waiting does not count."
    )
    max_consecutive_tool_failures: Count = key(6, "Tool failures in a row that end a run.")
    gates: Literal["strict", "advisory", "off"] = key(
        "strict", "strict: plan before acting; advisory: only calls that stand alone; off."
    )
    plan_review: Literal["off", "complex", "always"] = key(
        "off", "Plans that a person agrees to before anything is done: none, complex ones, all."
    )
    question_ttl_minutes: Annotated[Count, Field(le=525_600)] = key(
        1_440, "A question that nobody answers in so many minutes is a no."
    )
    profile: Text = key("default", "Profile of a run that names none.")
    workspace: Folder | None = key(
        None, "Folder that tools work in; unset: one a session, in the terminal its own."
    )


class DatabaseSettings(Section):
    """Where everything is stored."""

    url: Text = key(
        "sqlite:///${LARKSPUR_HOME}/larkspur.db",
        "sqlite:/// and the absolute path of the database file.",
    )

    @field_validator("url")
    @classmethod
    def _known(cls, url: str) -> str:
        if url.startswith(("postgresql:", "postgres:")):
            raise ValueError("names PostgreSQL, which comes later; use sqlite:/// for now")
        path = url.removeprefix("sqlite:///")
        if path == url or not path.startswith("/") or path.endswith("/"):
            raise ValueError("must be sqlite:/// and an absolute path, such as sqlite:////srv/a.db")
        return url

    @property
    def path(self) -> Path:
        """The database file."""
        return Path(self.url.removeprefix("sqlite:///"))


class DispatchSettings(Section):
    """How many runs this process works on."""

    concurrency: Count = key(32, "Runs at once in this process; waiting ones do not count.")
    lease_seconds: Annotated[Seconds, Field(ge=1)] = key(
        30.0, "A run whose process was silent for this long may be taken over."
    )


class AuthSettings(Section):
    """Who a caller is."""

    mode: Literal["local"] = key("local", "local: the token in the home folder is the owner.")


class AccessSettings(Section):
    """Who may talk and who may operate: two lists; an empty one means the owner alone."""

    talk: tuple[Text, ...] = key((), "Principals, besides the owner, who may give tasks.")
    operate: tuple[Text, ...] = key((), "Principals, besides the owner, who may approve.")


class WebSettings(Section):
    """The web channel; nothing to set yet."""


class CliSettings(Section):
    """The terminal channel; nothing to set yet."""


class ChannelsSettings(Section):
    """The ways in and out."""

    lark: LarkSettings = LarkSettings()
    web: WebSettings = WebSettings()
    cli: CliSettings = CliSettings()


class WebFetchSettings(Section):
    """The limits of web_fetch."""

    max_bytes: Count = key(5_242_880, "Most bytes of one page that are read.")
    allow_private_networks: bool = key(
        False, "true lets web_fetch reach private addresses: a risk."
    )


class ToolsSettings(Section):
    """What tools may do unasked."""

    allow: tuple[Text, ...] = key((), "Permission rules that let a call run unasked.")
    deny: tuple[Text, ...] = key((), "Permission rules that refuse a call; deny wins.")
    web_fetch: WebFetchSettings = WebFetchSettings()


class SandboxSettings(Section):
    """Where tool processes run."""

    provider: Literal["auto", "native"] = key(
        "auto", "auto takes the best there is; native is not isolated."
    )


class UiSettings(Section):
    """What people see."""

    language: Literal["auto", "en", "zh"] = key("auto", "auto follows the locale.")


class Settings(Section):
    """All settings."""

    llm: LlmSettings = LlmSettings()
    agent: AgentSettings = AgentSettings()
    database: DatabaseSettings = DatabaseSettings()
    dispatch: DispatchSettings = DispatchSettings()
    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    access: AccessSettings = AccessSettings()
    channels: ChannelsSettings = ChannelsSettings()
    tools: ToolsSettings = ToolsSettings()
    sandbox: SandboxSettings = SandboxSettings()
    ui: UiSettings = UiSettings()

    @model_validator(mode="after")
    def _closed_door(self) -> Self:
        if self.auth.mode == "local" and not is_loopback(self.server.host):
            raise ValueError(
                f"server.host {self.server.host} is not a loopback address; while auth.mode is"
                " local only 127.0.0.1, ::1 and localhost are"
            )
        return self
