"""Advice for a server that did not start: one command, if one is known."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from internal.mcp.definitions import ServerDefinition
from internal.mcp.launch.command_line import FurtherOptions, add_command_line
from internal.mcp.launch.requirements import Requirements, downloads
from internal.mcp.limits import ServerFailure

_STORAGE = {
    "github.com": ("release-assets.githubusercontent.com", "objects.githubusercontent.com"),
    "huggingface.co": ("cdn-lfs.huggingface.co", "cas-bridge.xethub.hf.co"),
}
"""Hosts that store the downloads of each host."""
_TOO_SLOW = "it did not start in "
_MAX_NAMES = 4
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_WANTED = re.compile(
    r"required|missing|not set|must be|must set|need|provide|undefined|not defined|not found"
    r"|environment variable|env var|KeyError|set ",
    re.IGNORECASE,
)
_NO_VARIABLES = re.compile(r"(?:ERR|ERROR|UV|NODE|HTTP|E)_.*|.*_(?:NOT_FOUND|ERROR|FAILED|CODE)")
_BRIDGES = frozenset({"mcp-remote", "supergateway"})
"""Packages that connect standard input and output with an address, which Larkspur does itself."""
_NO_CONNECTION = re.compile(
    r"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|Connection refused|name resolution"
    r"|Name or service not known|Network is unreachable|ConnectError|ConnectionError",
    re.IGNORECASE,
)
_SITE = re.compile(r"ECONNREFUSED ((?:\d+\.){3}\d+:\d+)|(?:ENOTFOUND|EAI_AGAIN) ([\w.-]+\w)")
_URL = re.compile(r"[a-z][a-z0-9+]*://(?:[^/@\s]*@)?([A-Za-z0-9.-]+(?::\d+)?)")
_ABSENT = re.compile(
    r"(?:ENOENT|No such file or directory|does not exist|not found|cannot open|unable to open"
    r"|FileNotFoundError|not accessible|not a directory)",
    re.IGNORECASE,
)
_UNWRITABLE = re.compile(r"EROFS|read-only file system|readonly database|EACCES", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w/.:])/[^\s'\"`:,;()<>\[\]]+")
_OTHER_SDK = re.compile(
    r"(?:AttributeError|ImportError|ModuleNotFoundError|TypeError): .*", re.DOTALL
)
"""Failures of a Python server that was written for another version of an imported package."""
_OLDER_SDK = "mcp<2"
_PARTS = re.compile(r" / |; ")


class Circumstances(NamedTuple):
    """A server that failed, and the known circumstances.

    `entry` is its stored entry of `mcpServers`, None if it is not in the file. `lacking` are the
    known missing requirements of its command. `is_replaced` is true if adding it again replaces it;
    `place` is the folder that adding it creates. `is_isolated` applies to its command.
    """

    definition: ServerDefinition
    entry: Mapping[str, Any] | None
    lacking: Requirements | None
    is_replaced: bool
    place: str
    is_isolated: bool


def advise(failure: ServerFailure, found: Circumstances) -> str:
    """Return advice about a failure, as the end of a sentence; "" if there is none."""
    if found.lacking is not None:
        return "; ".join(filter(None, _of_requirements(found.lacking, found)))
    if not found.definition.command:
        return ""
    if special := _special_advice(str(failure), found):
        return special
    options = _further_options(failure, found)
    return "" if options is None else _add(found, options)


def _special_advice(said: str, found: Circumstances) -> str:
    """Return advice about a failure that no further option fixes, "" for any other failure."""
    if address := _bridged_address(found.definition):
        entry = {"url": address}
        return f"{_add(found._replace(entry=entry), FurtherOptions())}, without the bridge"
    if said.startswith(_TOO_SLOW) and downloads(found.definition):
        name = Path(found.definition.command).name
        return f"{name} may still be downloading, and keeps what it has: try again"
    older = _with_older_sdk(found) if _OTHER_SDK.search(said) else None
    return f"it may be written for version 1 of the SDK: {older}" if older else ""


def _further_options(failure: ServerFailure, found: Circumstances) -> FurtherOptions | None:
    """Return the options that a server seems to need, None if nothing is known."""
    said = str(failure)
    if failure.refused_addresses and not failure.refused:
        return FurtherOptions(private=True)
    if failure.refused and found.is_isolated:
        return FurtherOptions(network=_with_storage(failure.refused))
    if found.is_isolated and (hosts := _unreached(said, found.definition)):
        return FurtherOptions(network=hosts)
    if names := [*_missing_variables(said, found.definition)][:_MAX_NAMES]:
        return FurtherOptions(env=dict.fromkeys(names, "VALUE"))
    return _unseen(said, found.definition) if found.is_isolated else None


def _bridged_address(definition: ServerDefinition) -> str:
    """Return the address to which a server only passes messages on, "" for another server."""
    if definition.package.rpartition("@")[0] not in _BRIDGES:
        return ""
    return next((one for one in definition.args if one.startswith(("http://", "https://"))), "")


def _unreached(said: str, definition: ServerDefinition) -> tuple[str, ...]:
    """Return the hosts that a server without network tried to reach: those it names, or has."""
    if definition.network or not _NO_CONNECTION.search(said):
        return ()
    named = [match[1] or match[2] for match in _SITE.finditer(said)]
    given = [
        match[1]
        for text in (*definition.args, *definition.env.values())
        for match in _URL.finditer(text)
    ]
    return tuple(dict.fromkeys(given or named))[:_MAX_NAMES]


def _with_storage(sites: tuple[str, ...]) -> tuple[str, ...]:
    """Return sites with those to which they lead on; the port of https is not named."""
    hosts = [site.removesuffix(":443") for site in sites]
    further = [also for host in hosts for also in _STORAGE.get(host, ())]
    return tuple(dict.fromkeys([*hosts, *further]))


def _of_requirements(lacking: Requirements, found: Circumstances) -> Iterator[str]:
    yield lacking.problem
    if lacking.is_hopeless:
        yield lacking.instead
        return
    if lacking.download is not None:
        # the network of the definition may be the registries
        yield f"{_add(found, FurtherOptions())}, which installs it"
        return
    environment = {"PATH": lacking.path} if lacking.path else {}
    network = (lacking.network,) if lacking.network else ()
    yield _add(found, FurtherOptions(network, lacking.read_only, (), environment), lacking)


def _add(found: Circumstances, further: FurtherOptions, lacking: Requirements | None = None) -> str:
    definition = found.definition
    entry = found.entry or {"command": definition.command, "args": definition.args}
    if lacking is not None:
        entry = {**entry, "command": lacking.command}
    command = add_command_line(definition.name, entry, further, without=found.place)
    again = "" if found.is_replaced else "remove it and "
    return f"{again}add it with: {command}"


def _with_older_sdk(found: Circumstances) -> str | None:
    """Return how a package of Python is added with an older SDK; None if that changes nothing."""
    typed = found.definition.download
    packages = "tools/*/lib/python3*/site-packages/mcp-[2-9]*.dist-info"
    if not typed or not any(Path(found.place).glob(packages)):
        return None
    if Path(typed[0]).name == "uvx":
        older = (typed[0], "--with", _OLDER_SDK, *typed[1:])
    elif typed[1:3] == ("tool", "run"):
        older = (*typed[:3], "--with", _OLDER_SDK, *typed[3:])
    else:
        return None
    entry = {**(found.entry or {}), "download": older}
    # it would be missed next
    folder = _folder_of_new_file(found.definition)
    further = FurtherOptions(writable=(folder,) if folder else ())
    return _add(found._replace(entry=entry), further)


def _missing_variables(said: str, definition: ServerDefinition) -> Iterator[str]:
    """Yield the variables of the environment that a server demands."""
    seen = {*definition.env}
    for part in _PARTS.split(said):
        if not _WANTED.search(part):
            continue
        for name in _VARIABLE.findall(part):
            if name not in seen and not _NO_VARIABLES.fullmatch(name):
                seen.add(name)
                yield name


def _unseen(said: str, definition: ServerDefinition) -> FurtherOptions | None:
    """Return the options for a path that is on this machine, and that a server misses.

    One among its arguments that is still to be made comes first.
    """
    is_about_files = _ABSENT.search(said) or _UNWRITABLE.search(said)
    if is_about_files and (folder := _folder_of_new_file(definition)):
        return FurtherOptions(writable=(folder,))
    granted = [Path(one) for one in (*definition.read_only, *definition.writable)]
    for part in _PARTS.split(said):
        is_absent, is_unwritable = _ABSENT.search(part), _UNWRITABLE.search(part)
        for text in _PATH.findall(part) if is_absent or is_unwritable else ():
            path = Path(text)
            if is_unwritable and path.exists() and _is_own(path):
                return FurtherOptions(writable=(text,))
            is_granted = any(path.is_relative_to(one) for one in granted)
            if is_absent and not is_granted and _is_own(path):
                if path.exists():
                    return FurtherOptions(read_only=(text,))
                if path.parent.is_dir() and _is_own(path.parent):
                    return FurtherOptions(writable=(str(path.parent),))
    return None


def _folder_of_new_file(definition: ServerDefinition) -> str:
    """Return the folder in which a file argument is yet to be created, "" if there is none."""
    granted = [Path(one) for one in definition.writable]
    for path in map(Path, _PATH.findall(" ".join(definition.args))):
        is_new = not path.exists() and path.parent.is_dir() and _is_own(path.parent)
        if is_new and not any(path.is_relative_to(one) for one in granted):
            return str(path.parent)
    return ""


def _is_own(path: Path) -> bool:
    """Return True for a path that people may give to a server: one of their own files."""
    system = ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc", "/dev", "/proc", "/sys", "/run")
    is_system = any(path.is_relative_to(one) for one in system)
    return not is_system and path not in {Path("/"), Path("/tmp"), Path.home()}  # noqa: S108 - of commands
