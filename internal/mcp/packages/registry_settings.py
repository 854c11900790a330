"""The package indexes that a person has chosen for pip, uv and npm.

Only addresses are read. Passwords and tokens beside them are not taken over.
"""

import configparser
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult

from internal.mcp.launch.downloaders import Ecosystem
from internal.mcp.private_files import read_start
from internal.normal_forms.urls import split_url

PYTHON_HOSTS = ("pypi.org", "files.pythonhosted.org")
NPM_HOSTS = ("registry.npmjs.org",)
_MAX_FILE_CHARS = 200_000
_NPM_LINE = re.compile(r"(?m)^\s*(?P<scope>@[A-Za-z0-9._~-]+:)?registry\s*=\s*(?P<url>\S+)\s*$")
_NPM_TOKEN = re.compile(r"(?m)^[^#;\n]*:?_(?:authToken|auth|password)\s*=")
_DEFAULT_PORTS = {"https": 443, "http": 80}


class RegistrySettings(NamedTuple):
    """The package indexes of one ecosystem.

    `hosts` are theirs, as in a network setting. `variables` and `options` tell an installer of
    them. `secrets` names the places of logins for them, which installers do not get.
    """

    hosts: tuple[str, ...]
    variables: Mapping[str, str] = {}
    options: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def read_registry_settings(
    ecosystem: Ecosystem, environ: Mapping[str, str], home: Path
) -> RegistrySettings:
    """Return the indexes that a person has configured; otherwise the defaults of the ecosystem.

    Blocks. Files that cannot be read count as missing.

    Args:
        ecosystem: the ecosystem of the packages.
        environ: the environment of the person.
        home: the home folder of the person.
    """
    if ecosystem == "npm":
        return _npm_settings(environ, home)
    return _python_settings(environ, home)


def _python_settings(environ: Mapping[str, str], home: Path) -> RegistrySettings:
    collected = _Collected()
    main = ""
    further: list[str] = []
    for place, url, is_default in _python_indexes(environ, home):
        plain = collected.add(place, url)
        if is_default:
            main = main or plain
        elif plain not in further:
            further.append(plain)
    variables: dict[str, str] = {}
    if main:
        variables |= {"UV_DEFAULT_INDEX": main, "PIP_INDEX_URL": main}
    if further:
        variables |= {"UV_INDEX": " ".join(further), "PIP_EXTRA_INDEX_URL": " ".join(further)}
    hosts = collected.hosts if main else (*PYTHON_HOSTS, *collected.hosts)
    return RegistrySettings(hosts, variables, (), collected.secrets)


def _python_indexes(environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield place, address and whether it replaces PyPI, the most decisive first."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if url := environ.get(name, "").strip():
            yield name, url, True
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        for url in environ.get(name, "").split():
            yield name, url.partition("=")[2] if re.match(r"[\w-]+=", url) else url, False
    configuration = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    uv = Path(environ.get("UV_CONFIG_FILE") or configuration / "uv" / "uv.toml")
    yield from _uv_indexes(uv)
    own = environ.get("PIP_CONFIG_FILE")
    files = [configuration / "pip" / "pip.conf", home / ".pip" / "pip.conf", Path("/etc/pip.conf")]
    for file in [Path(own)] if own else files:
        yield from _pip_indexes(file)


def _uv_indexes(file: Path) -> Iterator[tuple[str, str, bool]]:
    import tomllib  # noqa: PLC0415  # of no use to a gateway that starts

    try:
        document: dict[str, Any] = tomllib.loads(read_start(file, _MAX_FILE_CHARS))
    except tomllib.TOMLDecodeError:
        return
    tables = [document, document.get("pip")]
    for table in (one for one in tables if isinstance(one, Mapping)):
        if isinstance(url := table.get("index-url"), str):
            yield str(file), url, True
        extra = table.get("extra-index-url")
        yield from ((str(file), one, False) for one in extra or () if isinstance(one, str))
        indexes = table.get("index")
        for index in indexes if isinstance(indexes, list) else ():
            if isinstance(index, Mapping) and isinstance(url := index.get("url"), str):
                yield str(file), url, bool(index.get("default"))


def _pip_indexes(file: Path) -> Iterator[tuple[str, str, bool]]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(read_start(file, _MAX_FILE_CHARS))
    except configparser.Error:
        return
    for section in ("install", "global"):
        if parser.has_section(section):
            if url := parser.get(section, "index-url", fallback="").strip():
                yield str(file), url, True
            for extra in parser.get(section, "extra-index-url", fallback="").split():
                yield str(file), extra, False


def _npm_settings(environ: Mapping[str, str], home: Path) -> RegistrySettings:
    file = Path(environ.get("NPM_CONFIG_USERCONFIG") or home / ".npmrc")
    text = read_start(file, _MAX_FILE_CHARS)
    collected = _Collected()
    main, options = "", []
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if url := environ.get(name, "").strip():
            main = main or collected.add(name, url)
    for match in _NPM_LINE.finditer(text):
        url = match["url"].strip("\"'")
        if "${" in url:
            continue
        plain = collected.add(str(file), url)
        if match["scope"]:
            options.append(f"--{match['scope']}registry={plain}")
        else:
            main = main or plain
    if _NPM_TOKEN.search(text):
        collected.note_secret(str(file))
    hosts = collected.hosts if main else (*NPM_HOSTS, *collected.hosts)
    variables = {"npm_config_registry": main, "BUN_CONFIG_REGISTRY": main} if main else {}
    return RegistrySettings(
        tuple(dict.fromkeys(hosts)), variables, tuple(options), collected.secrets
    )


class _Collected:
    """The hosts of addresses, and the places of logins beside them."""

    def __init__(self) -> None:
        self._hosts: dict[str, None] = {}
        self._secrets: dict[str, None] = {}

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self._hosts)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(self._secrets)

    def note_secret(self, place: str) -> None:
        self._secrets[place] = None

    def add(self, place: str, url: str) -> str:
        """Return an address without a login; "" if it is none of a server."""
        try:
            parts = split_url(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return ""
        if parts.scheme not in _DEFAULT_PORTS or not host:
            return ""
        if "@" in parts.netloc:
            self.note_secret(place)
        netloc = parts.netloc.rpartition("@")[2]
        named = port not in {None, _DEFAULT_PORTS[parts.scheme]}
        self._hosts[f"{host}:{port}" if named else host] = None
        return SplitResult(parts.scheme, netloc, parts.path, parts.query, "").geturl()
