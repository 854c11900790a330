"""The address of a PostgreSQL database."""

import re
from typing import NamedTuple
from urllib.parse import unquote

from internal.agent.domain.secrets import register_secret
from internal.database_address.parameters import (
    ConnectionParameters,
    read_parameters,
    split_parameters,
)

_SCHEMES = {"postgres", "postgresql"}
_DEFAULT_PORT = 5432
_MAX_PORT = 65_535
_PRINTABLE = re.compile("[!-~]+")
_FORM = "use postgresql://USER:PASSWORD@HOST:PORT/NAME"
# Of clients that name their driver, such as postgresql+psycopg, only the first part counts.
_URL = re.compile(r"([a-z]+)(?:\+[a-z0-9_]+)?://([^/?#]*)(?:/([^?#]*))?(?:\?([^#]*))?")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(?::([0-9]*))?")


class PostgresAddress(NamedTuple):
    """A database URL. `url` may contain a password; nothing else of it is shown but the password.

    `hosts` are names, addresses or folders of sockets, with their ports, in the order in which they
    are tried.
    """

    url: str
    user: str
    hosts: tuple[tuple[str, int], ...]
    name: str
    password: str
    parameters: ConnectionParameters

    @property
    def host(self) -> str:
        """The hosts with their ports, as they are shown."""
        return ", ".join(
            host if host.startswith("/") else f"{host}:{port}" for host, port in self.hosts
        )

    def __str__(self) -> str:
        return f"{self.name} at {self.host}"


def is_postgres(url: str) -> bool:
    """Return whether a URL names a PostgreSQL database."""
    scheme, separator, _ = url.partition(":")
    return bool(separator) and scheme.partition("+")[0] in _SCHEMES


def parse_address(url: str) -> PostgresAddress:
    """Return the parts of a URL such as `postgresql://user:password@host:5432/name`.

    Host, user and name may also be parameters, such as `?host=/run/postgresql`, and there may be
    several hosts with commas between. The password is registered as a secret.

    Raises:
        ValueError: the URL is malformed or incomplete, or has a parameter that cannot be honoured;
            the text follows the name of the URL.
    """
    found = _URL.fullmatch(url) if _PRINTABLE.fullmatch(url) else None
    if found is None or found[1] not in _SCHEMES:
        raise ValueError(f"is malformed; {_FORM}")
    login, _, place = found[2].rpartition("@")
    user, _, password = (unquote(each) for each in login.partition(":"))
    given = split_parameters(found[4] or "")
    if password := password or given.get("password", ""):
        register_secret(password)
    name = unquote(found[3] or "") or given.get("dbname", "") or given.get("database", "")
    hosts = _read_hosts(place) or _read_hosts(given.get("host", ""), given.get("port", ""))
    user = user or given.get("user", "")
    for part, value in (("host", hosts), ("database", name), ("user", user)):
        if not value:
            raise ValueError(f"names no {part}; {_FORM}")
    return PostgresAddress(url, user, hosts, name, password, read_parameters(given))


def _read_hosts(text: str, ports: str = "") -> tuple[tuple[str, int], ...]:
    """Return the hosts of a list with commas; `ports` are for those that name none.

    Raises:
        ValueError: one is malformed.
    """
    hosts = text.split(",")
    given = ports.split(",") if "," in ports else [ports] * len(hosts)
    found: list[tuple[str, int]] = []
    for number, each in enumerate(hosts):
        if each.startswith("/"):
            found.append((each, _port(given[number : number + 1])))
            continue
        match = _HOST.fullmatch(each)
        if match is None:
            raise ValueError(f"is malformed; {_FORM}")
        host = unquote(match[1]).strip("[]")
        if host:
            found.append((host, _port([match[2] or "", *given[number : number + 1]])))
    return tuple(found)


def _port(candidates: list[str]) -> int:
    """Return the first port that is given, else the default one.

    Raises:
        ValueError: it is none.
    """
    port = next(filter(None, candidates), str(_DEFAULT_PORT))
    if not port.isascii() or not port.isdigit() or not 0 < int(port) <= _MAX_PORT:
        raise ValueError(f"is malformed; {_FORM}")
    return int(port)


def shown_url(url: str) -> str:
    """Return a URL without user, password and parameters."""
    if not is_postgres(url):
        return url
    try:
        address = parse_address(url)
    except ValueError:
        return "postgresql://…"
    return f"postgresql://{address.host}/{address.name}"
