"""URLs of web_fetch: parsed once, so that the checked address is the one that is connected to."""

import re
from typing import Self
from urllib.parse import quote

from internal.agent.domain.errors import ToolError
from internal.normal_forms.addresses import parse_host, reached_host
from internal.normal_forms.urls import join_url, split_url

_MAX_URL_CHARS = 8_000
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65_535


class PublicUrl:
    """An http or https URL without credentials. `host` is ASCII or an IP address.

    Only `parse` creates one, and only the fetcher, which checks the addresses of the host, accepts
    it. Not a dataclass: msgspec would decode one from an object and bypass the parser.
    """

    __slots__ = ("host", "port", "scheme", "target")

    def __init__(self, scheme: str, host: str, port: int, target: str) -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.target = target

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a URL.

        Raises:
            ToolError: not a URL, another scheme, credentials, or a non-canonical host.
        """
        text = text.strip()
        if len(text) > _MAX_URL_CHARS:
            raise ToolError(f"the address is longer than {_MAX_URL_CHARS} characters")
        if _UNSAFE.search(text):
            raise ToolError("the address contains blanks, backslashes or control characters")
        try:
            parts = split_url(text)
            port = parts.port
        except ValueError as error:
            raise ToolError(f"this is not an address: {error}") from error
        if parts.scheme not in _PORTS:
            raise ToolError("only http:// and https:// addresses can be fetched")
        if "@" in parts.netloc:
            raise ToolError("the address contains a user name or password: leave it out")
        if port is not None and not 0 < port <= _MAX_PORT:
            raise ToolError(f"there is no port {port}")
        try:
            host = parse_host(parts.hostname or "", bracketed="[" in parts.netloc)
        except ValueError as error:
            raise ToolError(str(error)) from error
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~", errors="replace")
        query = quote(parts.query, safe="/?%:@!$&'()*+,;=~", errors="replace")
        target = f"{path}?{query}" if query else path
        return cls(parts.scheme, host, port or _PORTS[parts.scheme], target)

    def join(self, location: str) -> Self:
        """Return the target of a redirect.

        Raises:
            ToolError: the target may not be fetched.
        """
        try:
            target = join_url(str(self), location)
        except ValueError as error:
            raise ToolError(f"this is not an address: {error}") from error
        return self.parse(target)

    @property
    def site(self) -> tuple[str, int | None]:
        """The host, and the port if it is not the default: the unit of permission rules."""
        return reached_host(self.host), None if self.port == _PORTS[self.scheme] else self.port

    @property
    def authority(self) -> str:
        """The host as in a URL and in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"
