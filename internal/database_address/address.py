"""The address of a PostgreSQL database."""

import re
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

from internal.agent.domain.secrets import register_secret
from internal.normal_forms.urls import split_url

_SCHEMES = {"postgres", "postgresql"}
_DEFAULT_PORT = 5432
_PRINTABLE = re.compile("[!-~]+")
_FORM = "use postgresql://USER:PASSWORD@HOST:PORT/NAME"


class PostgresAddress(NamedTuple):
    """A database URL. `url` may contain a password; nothing else of it is shown."""

    url: str
    user: str
    host: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} at {self.host}"


def is_postgres(url: str) -> bool:
    """Return whether a URL names a PostgreSQL database."""
    scheme, separator, _ = url.partition(":")
    return bool(separator) and scheme in _SCHEMES


def parse_address(url: str) -> PostgresAddress:
    """Return the parts of a URL such as `postgresql://user:password@host:5432/name`.

    Host, user and name may also be parameters, such as `?host=/run/postgresql`. The password is
    registered as a secret.

    Raises:
        ValueError: the URL is malformed or incomplete; the text follows the name of the URL.
    """
    try:
        parts = split_url(url)
        port, host, password = parts.port, parts.hostname or "", parts.password
    except ValueError as error:
        raise ValueError(f"is malformed; {_FORM}") from error
    parameters = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    if secret := unquote(password or parameters.get("password", "")):
        register_secret(secret)
    if parts.scheme not in _SCHEMES or parts.fragment or not _PRINTABLE.fullmatch(url):
        raise ValueError(f"is malformed; {_FORM}")
    name = unquote(parts.path.removeprefix("/")) or _parameter(parameters, "dbname", "database")
    host = host or _parameter(parameters, "host")
    user = unquote(parts.username or "") or _parameter(parameters, "user")
    for part, value in (("host", host), ("database", name), ("user", user)):
        if not value:
            raise ValueError(f"names no {part}; {_FORM}")
    shown = host if host.startswith("/") else f"{host}:{port or _DEFAULT_PORT}"
    return PostgresAddress(url, user, shown, name)


def shown_url(url: str) -> str:
    """Return a URL without user, password and parameters."""
    if not is_postgres(url):
        return url
    try:
        address = parse_address(url)
    except ValueError:
        return "postgresql://…"
    return f"postgresql://{address.host}/{address.name}"


def _parameter(parameters: dict[str, str], *names: str) -> str:
    return next((parameters[name] for name in names if name in parameters), "")
