"""Definitions of MCP servers: one entry of `mcpServers`, checked."""

import contextlib
import hashlib
import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from internal.agent.domain.errors import InvalidRequest, LarkspurError
from internal.agent.domain.permissions.network import NetworkSetting, rules_of_network
from internal.agent.domain.permissions.rules import parse_outside_pattern, parse_rule
from internal.agent.domain.permissions.targets import Risk
from internal.agent.domain.secrets import register_secret
from internal.agent.domain.text import find_invisible, truncate_line
from internal.agent.ports.mcp import MAX_START_SECONDS
from internal.mcp.foreign_entries import convert_entry
from internal.mcp.server_names import MAX_NAME_CHARS, is_usable, usable_name
from internal.normal_forms.addresses import parse_host
from internal.normal_forms.urls import split_url
from internal.open_files.paths import resolve_links

MAX_CALL_SECONDS = 3_600.0

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "accept-encoding"})

ServerRisk = Literal["read", "write", "exec", "net"]
LoginKind = Literal["shared", "personal", "client_credentials"]
"""Login to a server: by the owner for all people, by each person, or by Larkspur with a secret."""
HttpTransport = Literal["http", "sse"]
"""Streamable HTTP, or the HTTP+SSE of servers of 2024."""
Expand = Callable[[Any, str], Any]
"""Replaces every ${VARIABLE} in a value; the text says where it is, for errors."""


class DefinitionError(LarkspurError):
    """A definition of a server cannot be used. The message is a sentence."""


class _Entry(msgspec.Struct, frozen=True):
    """The keys of an entry. Keys of other programs without effect here are accepted."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    login: LoginKind | None = None
    client_id: str = ""
    client_secret: str = ""
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    type: Literal["stdio", "http", "sse"] | None = None
    disabled: bool = False
    description: str = ""
    download: tuple[str, ...] = ()
    package: str = ""
    read_only: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    network: NetworkSetting = "off"
    allow_private_networks: bool = False
    risk: ServerRisk = "exec"
    risks: dict[str, ServerRisk] = {}
    start_timeout_seconds: float = 30.0
    call_timeout_seconds: float = 60.0
    idle_seconds: float = 600.0


ENTRY_KEYS = frozenset(_Entry.__struct_fields__)


class ServerDefinition(msgspec.Struct, frozen=True):
    """A server: a command, or the address of one with streamable HTTP or HTTP+SSE.

    `transport` is the protocol of an address, None to detect it. `read_only` and `writable` are
    absolute paths that an isolated command sees, `links` the paths among them that pass symbolic
    links, with their targets, `network` the rules for the hosts that it reaches. `package` is the
    installed package of the command, `download` the command line that requested it. `risk` applies
    to the tools that `risks` does not name. `warnings` are sentences. `issuer` is the authorization
    server that issued `client_id` and `client_secret`.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    transport: HttpTransport | None = None
    headers: dict[str, str] = {}
    login: LoginKind | None = None
    client_id: str = ""
    client_secret: str = ""
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    disabled: bool = False
    download: tuple[str, ...] = ()
    package: str = ""
    read_only: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    links: dict[str, str] = {}
    network: tuple[str, ...] = ()
    allow_private_networks: bool = False
    risk: ServerRisk = "exec"
    risks: dict[str, ServerRisk] = {}
    start_timeout_seconds: float = 30.0
    call_timeout_seconds: float = 60.0
    idle_seconds: float = 600.0
    warnings: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Hash of everything that decides which program runs and which hosts and files it reaches.

        Values of variables and headers are included as hashes.
        """
        facts = [
            *(self.command, self.args, self.cwd, self.url),
            {name: _digest(value) for name, value in sorted(self.env.items())},
            {name.lower(): _digest(value) for name, value in sorted(self.headers.items())},
            *(self.read_only, self.writable, self.network, self.allow_private_networks),
            *(self.login, self.client_id, _digest(self.client_secret), self.issuer, self.scopes),
        ]
        if self.links:
            facts.append(self.links)
        if self.transport == "sse":
            facts.append(self.transport)
        if self.package:
            facts.append(self.package)
        return _digest(json.dumps(facts, sort_keys=True))

    @property
    def host(self) -> str:
        """The host of its address with the port, "" for a command."""
        return urlsplit(self.url).netloc

    @property
    def shown(self) -> str:
        """The command line or the address, for people."""
        return self.url or shlex.join([self.command, *self.args])

    def risk_of(self, tool: str) -> Risk:
        """Return the risk of a tool, by the name that the server gives it."""
        return self.risks.get(tool, self.risk)


def check_name(name: str) -> None:
    """Check the name of a server.

    Raises:
        DefinitionError: a server cannot have this name.
    """
    if not is_usable(name):
        raise DefinitionError(
            f"{name[:80]!a} cannot be the name of an MCP server; use at most {MAX_NAME_CHARS} of"
            " a-z, 0-9, - and _, without __ and without _ at the end, such as"
            f" {usable_name(name)}."
        )


def parse_definition(name: str, given: object, expand: Expand, where: str) -> ServerDefinition:
    """Return the definition of an entry. Values that may be secrets are masked from now on.

    Args:
        name: the name of the server.
        given: the value of the entry.
        expand: replaces variables; raises LarkspurError for one that is not set.
        where: the place of the entry, for errors.

    Raises:
        DefinitionError: the definition cannot be used.
    """
    check_name(name)
    if not isinstance(given, Mapping):
        raise DefinitionError(f"{where}: {name} must be a mapping of keys.")
    try:
        given, notes = convert_entry(given)
    except ValueError as error:
        raise DefinitionError(f"{where}: {name}: {error}") from error
    try:
        expanded = expand(given, f"{where}: {name}")
        entry = msgspec.convert(expanded, _Entry)
    except msgspec.ValidationError as error:
        raise DefinitionError(f"{where}: {name}: {error}.") from error
    except LarkspurError as error:
        raise DefinitionError(str(error)) from error
    _register_secrets(given, entry, expand)
    try:
        warnings = (f"{where}: {name}: {note}" for note in notes)
        return _checked(name, entry, (*warnings, *_warnings(name, given, where)))
    except (ValueError, InvalidRequest) as error:
        raise DefinitionError(f"{where}: {name}: {error}") from error


def _checked(name: str, entry: _Entry, warnings: tuple[str, ...]) -> ServerDefinition:
    """Return the definition of an entry with usable values.

    Raises:
        ValueError, InvalidRequest: a value is not usable; the sentence says which.
    """
    _check_kind(entry)
    if entry.url:
        _check_url(entry.url, allow_http=entry.allow_private_networks)
    _check_login(entry)
    for variable in entry.env:
        if not _VARIABLE_NAME.fullmatch(variable):
            raise ValueError(f"{variable[:80]!a} is not the name of an environment variable.")
    words = (entry.command, *entry.args, *entry.download, entry.package)
    if any("\0" in text for text in (*words, *entry.env.values())):
        raise ValueError("the command contains a NUL character.")
    for header, value in entry.headers.items():
        if not _HEADER_NAME.fullmatch(header) or header.lower() in _OWN_HEADERS:
            raise ValueError(f"{header[:80]!a} cannot be set as a header.")
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"the header {header} must be printable ASCII.")
    network = rules_of_network(entry.network)
    for rule in network:
        parse_rule(rule, {})
    _check_seconds("start_timeout_seconds", entry.start_timeout_seconds, MAX_START_SECONDS)
    _check_seconds("call_timeout_seconds", entry.call_timeout_seconds, MAX_CALL_SECONDS)
    _check_seconds("idle_seconds", entry.idle_seconds, MAX_CALL_SECONDS * 24)
    own = {field: getattr(entry, field) for field in _COMMON}
    cwd = _absolute(entry.cwd) if entry.cwd else ""
    read_only = tuple(_outside(path) for path in entry.read_only)
    writable = tuple(_outside(path) for path in entry.writable)
    places = resolve_links((*read_only, *writable, *filter(None, [cwd])))
    return ServerDefinition(
        name=name,
        **own,
        transport=None if entry.type == "stdio" else entry.type,
        cwd=cwd,
        read_only=read_only,
        writable=writable,
        links={path: place for path, place in places.items() if path != place},
        network=network,
        warnings=warnings,
    )


def _check_kind(entry: _Entry) -> None:
    if bool(entry.command.strip()) == bool(entry.url.strip()):
        raise ValueError("give either a command or a url.")
    if entry.type is not None and (entry.type == "stdio") == bool(entry.url):
        given = "url" if entry.url else "command"
        raise ValueError(f"the type {entry.type} is not one of a {given}.")


_COMMON = tuple(
    field
    for field in _Entry.__struct_fields__
    if field in ServerDefinition.__struct_fields__
    and field not in {"cwd", "read_only", "writable", "network"}
)


def _check_url(url: str, *, allow_http: bool, key: str = "url") -> None:
    if len(url) > 2_000 or find_invisible(url) or " " in url:  # noqa: PLR2004 - of a URL
        raise ValueError(f"the {key} contains blanks or control characters, or is too long.")
    parts = split_url(url)
    if parts.scheme not in {"http", "https"} or parts.port == 0:
        raise ValueError(f"the {key} must begin with https:// or http://.")
    if "@" in parts.netloc:
        raise ValueError(f"the {key} contains a user name or password; use headers.")
    if parts.fragment:
        raise ValueError(f"the {key} has a fragment (#).")
    try:
        parse_host(parts.hostname or "", bracketed="[" in parts.netloc)
    except ValueError as error:
        raise ValueError(f"{error}.") from error
    if parts.scheme == "http" and not allow_http:
        raise ValueError(
            "http:// is accepted for servers of this machine and its networks only; write https://,"
            " or set allow_private_networks to true."
        )


def _check_login(entry: _Entry) -> None:
    client = (entry.client_id, entry.client_secret, entry.issuer, *entry.scopes)
    if entry.login is None:
        if any(client):
            raise ValueError("client_id, client_secret, issuer and scopes need the key login.")
        return
    if not entry.url:
        raise ValueError("login is for servers with a url.")
    if any(header.lower() == "authorization" for header in entry.headers):
        raise ValueError("give either login or the header Authorization.")
    _check_client(entry)
    if any(not scope or {*' "\\'} & {*scope} for scope in entry.scopes):
        raise ValueError('a scope is empty, or contains blanks, " or \\.')
    if entry.issuer:
        _check_url(entry.issuer, allow_http=entry.url.startswith("http:"), key="issuer")


def _check_client(entry: _Entry) -> None:
    client = (entry.client_id, entry.client_secret, *entry.scopes)
    if not all(text.isascii() and text.isprintable() for text in client):
        raise ValueError("client_id, client_secret and scopes must be printable ASCII.")
    if entry.login == "client_credentials" and not (entry.client_id and entry.client_secret):
        raise ValueError("client_credentials needs client_id and client_secret.")
    if entry.client_secret and not entry.client_id:
        raise ValueError("client_secret needs client_id.")
    if entry.client_id and not entry.issuer:
        # else the server would decide who gets the secret
        raise ValueError("client_id needs issuer, the URL of its authorization server.")


def _check_seconds(key: str, value: float, longest: float) -> None:
    if not 0 < value <= longest:
        raise ValueError(f"{key} must be more than 0 and at most {longest:g}.")


def _absolute(path: str) -> str:
    expanded = Path(path).expanduser()
    if not expanded.is_absolute() or "\0" in path:
        raise ValueError(f"{path[:200]!a} is not an absolute path.")
    return str(expanded)


def _outside(path: str) -> str:
    absolute = _absolute(path)
    return parse_outside_pattern(absolute, absolute).path


def _warnings(name: str, given: Mapping[Any, Any], where: str) -> tuple[str, ...]:
    unknown = sorted(str(key) for key in given if key not in ENTRY_KEYS)
    if not unknown:
        return ()
    return (f"{where}: {name}: unknown keys are ignored: {truncate_line(', '.join(unknown), 200)}",)


def _register_secrets(given: Mapping[Any, Any], entry: _Entry, expand: Expand) -> None:
    """Mask headers, and the values of variables with the name of a secret."""
    for name, value in entry.env.items():
        if _SECRET_NAME.search(name):
            register_secret(value)
    register_secret(entry.client_secret)
    for value in entry.headers.values():
        register_secret(value)
        register_secret(value.rpartition(" ")[2])  # without the scheme, such as Bearer
    for name in set(_VARIABLE.findall(repr(given))):
        if _SECRET_NAME.search(name):
            with contextlib.suppress(LarkspurError):  # $${NAME} stands for itself
                register_secret(str(expand(f"${{{name}}}", name)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
