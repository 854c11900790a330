"""The parameters of database addresses, as hosting providers and other clients write them."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

MAX_TIMEOUT_SECONDS = 600.0
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_NO = frozenset({"0", "false", "off", "no", "disable"})
_OF_DRIVER = frozenset(
    {
        "gsslib",
        "krbsrvname",
        "passfile",
        "sslcert",
        "sslcrl",
        "sslkey",
        "sslnegotiation",
        "sslpassword",
        "sslrootcert",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
    }
)
_PLACE = frozenset({"database", "dbname", "host", "password", "port", "user"})

_WITHOUT_EFFECT = frozenset(
    {
        # of libpq: about sockets, or wishes that need not be met
        "fallback_application_name",
        "gssdelegation",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "max_protocol_version",
        "min_protocol_version",
        "sslcertmode",
        "sslcompression",
        "sslkeylogfile",
        "sslsni",
        "tcp_user_timeout",
        # of Prisma, JDBC, node-postgres, lib/pq and the hosting providers
        "binary_parameters",
        "connection_limit",
        "max_pool_size",
        "pgbouncer",
        "pool",
        "pool_size",
        "pool_timeout",
        "prepareThreshold",
        "prepared_statements",
        "preparedStatements",
        "single_use_connections",
        "socket_timeout",
        "sslaccept",
        "statement_cache_size",
        "supa",
        "uselibpqcompat",
        "workaround",
    }
)
"""What Larkspur decides itself, or leaves to the system."""

_REFUSED = {
    "hostaddr": "write the address as the host",
    "replication": "Larkspur reads and writes tables",
    "require_auth": "the driver cannot require it",
    "requirepeer": "the driver cannot check it",
    "service": "write its values into the address",
    "servicefile": "write its values into the address",
    "sslcrldir": "use sslcrl",
    "sslidentity": "use sslcert and sslkey",
}
"""What would weaken or change the connection if it had no effect, and what to do instead."""


class ConnectionParameters(NamedTuple):
    """Parameters in the form that the driver takes.

    `of_driver` are those of TLS and login that it reads from a URL. `server_settings` are given to
    the server at the start of a connection. `connect_timeout` is in seconds, None for the default.
    `schema` is the search path, "" for that of the server. `without_effect` are the names of those
    that are passed over.
    """

    of_driver: Mapping[str, str]
    server_settings: Mapping[str, str]
    connect_timeout: float | None = None
    schema: str = ""
    without_effect: tuple[str, ...] = ()


def split_parameters(query: str) -> dict[str, str]:
    """Return the parameters of an address by name; of two with one name the last counts.

    Raises:
        ValueError: one has no value; the text follows the name of the URL.
    """
    found: dict[str, str] = {}
    for each in filter(None, query.split("&")):
        name, separator, value = each.partition("=")
        if not separator or not name:
            raise ValueError(f"has the parameter {unquote(each)[:100]} without a value")
        # unlike in forms, + is a plus: libpq reads it so
        found[unquote(name)] = unquote(value)
    return found


def read_parameters(given: Mapping[str, str]) -> ConnectionParameters:
    """Return the parameters of an address beside those that say where it leads.

    Raises:
        ValueError: one cannot be honoured; the text follows the name of the URL.
    """
    reader = _ParameterReader()
    for name, value in given.items():
        if name not in _PLACE:
            reader.read(name, value)
    return ConnectionParameters(
        reader.of_driver,
        reader.server_settings,
        reader.connect_timeout,
        reader.schema,
        tuple(reader.without_effect),
    )


class _ParameterReader:
    def __init__(self) -> None:
        self.of_driver: dict[str, str] = {}
        self.server_settings: dict[str, str] = {}
        self.connect_timeout: float | None = None
        self.schema = ""
        self.without_effect: list[str] = []

    def read(self, name: str, value: str) -> None:
        """Read one parameter.

        Raises:
            ValueError: it cannot be honoured.
        """
        if name in _REFUSED:
            raise _refusal(name, value, _REFUSED[name])
        if name in _OF_DRIVER:
            self.of_driver[name] = value
        elif name in _WITHOUT_EFFECT:
            self._check_sslaccept(name, value)
            self.without_effect.append(name)
        elif (special := _SPECIAL.get(name)) is not None:
            special(self, name, value)
        else:
            # one of the server, which says so if it has no such setting
            self.server_settings[name] = value

    def read_sslmode(self, name: str, value: str) -> None:
        """Read `sslmode`, and `ssl` as other clients write it."""
        mode = value.lower()
        if name == "ssl" and mode not in _SSL_MODES:
            mode = "disable" if mode in _NO else "require"
        if mode == "no-verify":
            mode = "require"
        if mode not in _SSL_MODES:
            raise _refusal(name, value, f"use one of {', '.join(_SSL_MODES)}")
        if name == "sslmode" or "sslmode" not in self.of_driver:
            self.of_driver["sslmode"] = mode

    def read_timeout(self, name: str, value: str) -> None:
        """Read `connect_timeout`: as in libpq, 0 or less is the default."""
        try:
            seconds = int(value)
        except ValueError:
            raise _refusal(name, value, "it is a number of seconds") from None
        if seconds > 0:
            self.connect_timeout = min(float(max(seconds, 2)), MAX_TIMEOUT_SECONDS)

    def read_target(self, name: str, value: str) -> None:
        """Read `target_session_attrs`: Larkspur writes."""
        if value not in {"any", "read-write", "primary"}:
            raise _refusal(name, value, "Larkspur writes: use read-write")
        self.of_driver[name] = value

    def read_schema(self, name: str, value: str) -> None:
        """Read the schema, as Prisma, JDBC and the server call it."""
        if not re.fullmatch(r"[^\x00-\x1f]+", value):
            raise _refusal(name, value, "it is the name of a schema")
        quoted = value if name == "search_path" else '"{}"'.format(value.replace('"', '""'))
        self.schema = quoted

    def read_encoding(self, name: str, value: str) -> None:
        """Read the encoding of the client, which is always UTF-8."""
        if value.lower().replace("-", "") not in {"utf8", "unicode", "auto"}:
            raise _refusal(name, value, "Larkspur uses UTF8")

    def read_optional(self, name: str, value: str) -> None:
        """Read a wish for a protection that the driver does not have."""
        if value.lower() == "require":
            advice = "the driver cannot do that; sslmode=verify-full checks the server as well"
            raise _refusal(name, value, advice)
        self.without_effect.append(name)

    def _check_sslaccept(self, name: str, value: str) -> None:
        if name == "sslaccept" and value == "strict":
            raise _refusal(name, value, "use sslmode=verify-full")


_SPECIAL: Mapping[str, Callable[[_ParameterReader, str, str], None]] = {
    "channel_binding": _ParameterReader.read_optional,
    "client_encoding": _ParameterReader.read_encoding,
    "connect_timeout": _ParameterReader.read_timeout,
    "currentSchema": _ParameterReader.read_schema,
    "gssencmode": _ParameterReader.read_optional,
    "schema": _ParameterReader.read_schema,
    "search_path": _ParameterReader.read_schema,
    "ssl": _ParameterReader.read_sslmode,
    "sslmode": _ParameterReader.read_sslmode,
    "target_session_attrs": _ParameterReader.read_target,
}


def _refusal(name: str, value: str, advice: str) -> ValueError:
    return ValueError(
        f"has the parameter {name}={value[:100]}, which cannot be honoured: remove it ({advice})"
    )
