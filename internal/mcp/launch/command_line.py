"""The command line of `larkspur mcp add` that adds a server with further options."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
_HIDDEN = "…"


class FurtherOptions(NamedTuple):
    """Options that a server needs besides those it was added with."""

    network: Sequence[str] = ()
    read_only: Sequence[str] = ()
    writable: Sequence[str] = ()
    env: Mapping[str, str] = {}
    private: bool = False


def add_command_line(
    name: str, entry: Mapping[str, Any], further: FurtherOptions, *, without: str = ""
) -> str:
    """Return the command that adds a server again.

    Values that look like secrets are left out.

    Args:
        name: the name of the server.
        entry: its entry of `mcpServers`.
        further: options to add.
        without: a folder that is made by the command itself.
    """
    download = entry.get("download")
    options = ["larkspur", "mcp", "add", name]
    environment = {**_mapping(entry.get("env")), **further.env}
    for key, value in environment.items():
        # found again by the command
        if key == "PATH" and key not in further.env:
            continue
        options += ["--env", f"{key}={_shown(key, value)}"]
    for key, value in _mapping(entry.get("headers")).items():
        options += ["--header", f"{key}: {_shown('KEY', value)}"]
    network = entry.get("network") or ()
    hosts = [network] if isinstance(network, str) else [*network]
    hosts = [one for one in dict.fromkeys([*hosts, *further.network]) if one != "off"]
    options += [part for one in hosts for part in ("--network", one)]
    readable = _others([*(entry.get("read_only") or ()), *further.read_only], without)
    options += [part for one in readable for part in ("--read", one)]
    writable = _others([*(entry.get("writable") or ()), *further.writable], without)
    options += [part for one in writable for part in ("--write", one)]
    for key in ("cwd", "risk", "login"):
        options += [f"--{key}", str(entry[key])] if entry.get(key) else []
    is_private = further.private or entry.get("allow_private_networks")
    options += ["--private"] if is_private else []
    if url := entry.get("url"):
        return shlex.join([*options, "--url", str(url)])
    words = download or [entry.get("command", ""), *(entry.get("args") or ())]
    return shlex.join([*options, "--", *map(str, words)])


def _mapping(value: Any) -> Mapping[str, str]:
    return value if isinstance(value, Mapping) else {}


def _shown(name: str, value: str) -> str:
    is_secret = _SECRET_NAME.search(name) is not None and "${" not in value
    return _HIDDEN if is_secret else value


def _others(paths: Iterable[str], without: str) -> list[str]:
    return [
        one
        for one in dict.fromkeys(paths)
        if not without or not PurePath(one).is_relative_to(without)
    ]
