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

    host: Text = key("127.0.0.1", "Address to listen on; loopback while auth is local.")
    port: Port = key(8_420, "Port to listen on; 0 takes any free one.")
    public_url: WebAddress | None = key(
        None, "Address that people use, when a proxy stands in front."
    )
    max_body_bytes: Count = key(20_971_520, "Largest request body, in bytes.")
    rate_limit_per_minute: Count = key(600, "Requests a minute of one principal.")
    rate_limit_burst: Count = key(120, "Requests of one principal at once.")
    streams_per_user: Count = key(12, "Open event streams of one principal.")
    stream_max_seconds: Seconds = key(
        7_200.0, "A stream says bye after this long; the reader comes back."
    )
    allowed_origins: tuple[WebAddress, ...] = key(
        (), "Origins, besides our own, whose pages may send requests."
    )
