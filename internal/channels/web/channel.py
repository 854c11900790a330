"""What the web door needs, handed in by the entry."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.gateway import Gateway
from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.errors import LarkspurError
from internal.agent.ports.attachments import Attachments
from internal.agent.ports.runtime import Clock
from internal.channels.web.auth import Logins
from internal.channels.web.static_page import Page, read_page


class DoorRefused(LarkspurError):
    """The door cannot be opened as asked. Its text is the sentence for a person."""


class PartHealth(msgspec.Struct, frozen=True):
    """How one part is, and `since` when (RFC 3339)."""

    ok: bool
    since: str
    detail: str = ""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How the program is: `failing` when it cannot do what it is asked."""

    status: Literal["ok", "failing"]
    database: PartHealth
    dispatcher: PartHealth
    lark: PartHealth | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The door's settings; docs/settings.md explains each under `server`.

    Besides those: how long a request may take, how long a write to a reader may stay unfinished,
    and how often a quiet stream is heard of, all in seconds.
    """

    host: str = "127.0.0.1"
    port: int = 8420
    public_url: str | None = None
    max_body_bytes: int = 20_971_520
    rate_limit_per_minute: int = 600
    rate_limit_burst: int = 120
    streams_per_user: int = 12
    stream_max_seconds: float = 7200.0
    allowed_origins: tuple[str, ...] = ()
    request_seconds: float = 60.0
    stall_seconds: float = 20.0
    heartbeat_seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class WebDoor:
    """Everything behind the door. `token` is the local token: whoever sends it is the owner.

    Raises:
        DoorRefused: the token is blank; a door that anyone could open is not built.
    """

    gateway: Gateway
    broadcaster: EventBroadcaster
    attachments: Attachments
    defaults: TaskDefaults
    token: str
    settings: WebSettings
    health: Callable[[], Health]
    version: str
    clock: Clock
    logins: Logins
    page: Page = field(default_factory=read_page)

    def __post_init__(self) -> None:
        if not self.token.strip():
            raise DoorRefused("The local token is blank; without one the web door stays closed.")
