"""Settings of the web server."""

import re

from pydantic import field_validator

from internal.normal_forms.urls import split_url
from internal.settings.types import (
    Count,
    Port,
    Seconds,
    Section,
    Text,
    WebAddress,
    key,
)

OWN_PATHS = frozenset(
    {
        "THIRD-PARTY-NOTICES.txt",
        "api",
        "assets",
        "health",
        "icons",
        "library",
        "manifest.webmanifest",
        "mcp",
        "oauth",
        "preview",
        "sessions",
        "settings",
        "tasks",
        "v1",
        "waiting",
    }
)
"""First components of the paths of the gateway's own addresses."""
_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")


class ServerSettings(Section):
    """The web server of the gateway."""

    host: Text = key("127.0.0.1", "Address to listen on; must be a loopback address.")
    port: Port = key(8_420, "Port to listen on; 0 chooses a free one.")
    public_url: WebAddress | None = key(
        None, "Public address of the page, if a proxy is in front; it may have a path."
    )
    max_body_bytes: Count = key(20_971_520, "Maximum size of a request body, in bytes.")
    rate_limit_per_minute: Count = key(600, "Requests per minute and principal.")
    rate_limit_burst: Count = key(120, "Number of requests that a principal may send in a burst.")
    streams_per_user: Count = key(12, "Maximum number of open event streams per principal.")
    stream_max_seconds: Seconds = key(
        7_200.0, "Seconds after which a stream is closed and the client reconnects."
    )
    allowed_origins: tuple[WebAddress, ...] = key(
        (), "Further origins whose pages may send requests."
    )

    @property
    def path(self) -> str:
        """The path of the public address, such as `/larkspur`; "" without a path."""
        return split_url(self.public_url).path if self.public_url else ""

    @field_validator("public_url")
    @classmethod
    def _usable_path(cls, url: str | None) -> str | None:
        path = split_url(url).path if url else ""
        if not _PATH.fullmatch(path):
            raise ValueError(
                "must have a path of letters, digits, hyphens, dots and underscores,"
                " such as https://example.org/larkspur"
            )
        if (first := path.split("/")[1] if path else "") in OWN_PATHS:
            raise ValueError(
                f"must not have a path that begins with /{first}, which is one of Larkspur's own"
            )
        return url
