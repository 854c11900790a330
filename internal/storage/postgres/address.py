"""The address of a PostgreSQL database."""

from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from internal.agent.domain.errors import StoreCorrupt
from internal.agent.domain.secrets import register_secret

_SCHEMES = {"postgres", "postgresql"}
_DEFAULT_PORT = 5432
_FORM = "use postgresql://USER:PASSWORD@HOST:PORT/NAME."


class PostgresAddress(NamedTuple):
    """A database URL. `url` may contain a password; nothing else of it is shown."""

    url: str
    user: str
    host: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} at {self.host}"


def parse_address(url: str) -> PostgresAddress:
    """Return the parts of a URL such as `postgresql://user:password@host:5432/name`.

    Host, user and name may also be parameters, such as `?host=/run/postgresql`.

    Raises:
        StoreCorrupt: the URL is malformed or names no database.
    """
    try:
        parts = urlsplit(url)
        port, host, password = parts.port, parts.hostname or "", parts.password
        parameters = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    except ValueError as error:
        raise StoreCorrupt(f"The database URL is malformed: {_FORM}") from error
    secret = unquote(password) if password else parameters.get("password", "")
    if secret:
        register_secret(secret)
    if parts.scheme not in _SCHEMES or parts.fragment or any(c.isspace() for c in url):
        raise StoreCorrupt(f"The database URL is malformed: {_FORM}")
    name = unquote(parts.path.removeprefix("/")) or _parameter(parameters, "dbname", "database")
    host = host or _parameter(parameters, "host")
    user = unquote(parts.username or "") or _parameter(parameters, "user")
    if not host:
        raise StoreCorrupt(f"The database URL names no host: {_FORM}")
    if not name or "/" in name:
        raise StoreCorrupt(f"The database URL names no database: {_FORM}")
    if not user:
        raise StoreCorrupt(f"The database URL names no user: {_FORM}")
    shown = host if host.startswith("/") else f"{host}:{port or _DEFAULT_PORT}"
    return PostgresAddress(url, user, shown, name)


def _parameter(parameters: dict[str, str], *names: str) -> str:
    return next((parameters[name] for name in names if name in parameters), "")
