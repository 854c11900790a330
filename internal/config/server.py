"""Settings of the web server."""

from internal.config.types import (
    Count,
    Port,
    Seconds,
    Section,
    Text,
    WebAddress,
    key,
)


class ServerSettings(Section):
    """The web server of the gateway."""

    host: Text = key("127.0.0.1", "Address to listen on; must be a loopback address.")
    port: Port = key(8_420, "Port to listen on; 0 chooses a free one.")
    public_url: WebAddress | None = key(None, "Public address of the page, if a proxy is in front.")
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
