"""Conversion of server entries of other programs to our keys.

Used for imported files, and for entries that people paste into `mcp.json`.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_URL_KEYS = ("httpUrl", "url", "serverUrl", "uri")
"""In the order in which they count: Gemini CLI knows two of them."""
_RENAMED = {
    "cmd": "command",
    "envs": "env",
    "environment": "env",
    "http_headers": "headers",
    "working_directory": "cwd",
}
_TYPES = {
    **dict.fromkeys(("stdio", "local"), "stdio"),
    **dict.fromkeys(
        ("http", "remote", "streamable-http", "streamableHttp", "streamable_http", "http-stream"),
        "http",
    ),
    "sse": "sse",
}
_SELECTIONS = frozenset(
    {
        *("disabledTools", "disabled_tools", "enabledTools", "enabled_tools", "allowedTools"),
        *("includeTools", "excludeTools", "available_tools", "tools"),
    }
)
_APPROVALS = frozenset({"autoApprove", "alwaysAllow", "always_allow", "trust", "autoApproveAll"})
_LOGINS = frozenset({"oauth", "auth", "oauth_resource", "authProviderType"})
_ENVIRONMENT_FILES = frozenset({"envFile", "env_file"})
_MILLISECONDS = 1_000

_NAMED = re.compile(
    r"(?<!\$)\$\{(env|input|command|config|file|secrets?):([^}]*)\}|(?<!\$)\{(env|file):([^}]*)\}"
)
_FOLDER = re.compile(r"\$\{(workspaceFolder|workspaceRoot|workspaceFolderBasename)\}")
_HOME = re.compile(r"\$\{userHome\}")
_SEPARATOR = re.compile(r"\$\{(?:pathSeparator|/)\}")
_BARE = re.compile(r"(?<![$\\\w])\$([A-Z_][A-Z0-9_]*)(?!\w)")
_UNUSABLE = re.compile(r"[^A-Z0-9]+")


class ForeignEntry(NamedTuple):
    """An entry with our keys. `notes` are sentences about changes and omissions."""

    entry: dict[str, Any]
    notes: tuple[str, ...]


class Inputs(NamedTuple):
    """Values that an entry may refer to.

    `folder` is the folder of the project. `defaults` maps the ids of inputs, for which Visual
    Studio Code asks people, to their defaults.
    """

    folder: str
    defaults: Mapping[str, str] = {}


def convert_entry(given: Mapping[str, Any], inputs: Inputs | None = None) -> ForeignEntry:
    """Return an entry of another program with our keys; an entry with our keys stays as it is.

    `inputs` belong to a file of another program, None for an entry in one of ours.

    Raises:
        ValueError: the entry cannot be used here; the message is a sentence with the reason.
    """
    notes: list[str] = []
    entry = {key: value for key, value in given.items() if value is not None}
    if isinstance(nested := entry.get("transport"), Mapping):
        entry |= {"type": "", **nested}
        del entry["transport"]
    _convert_command(entry)
    _convert_keys(entry)
    _convert_type(entry)
    _convert_times(entry)
    _convert_credentials(entry)
    _leave_out(entry, notes)
    values = _Values(inputs, notes)
    return ForeignEntry(values.convert(entry), tuple(dict.fromkeys(notes)))


def _convert_command(entry: dict[str, Any]) -> None:
    """Split a command that is an object or a list."""
    command = entry.get("command")
    if isinstance(command, Mapping):
        entry["command"] = command.get("path", command.get("command", ""))
        entry |= {key: command[key] for key in ("args", "env") if command.get(key) is not None}
    elif isinstance(command, list) and command:
        entry["command"], *first = command
        more = entry.get("args")
        entry["args"] = [*first, *(more if isinstance(more, list) else ())]


def _convert_keys(entry: dict[str, Any]) -> None:
    for key, own in _RENAMED.items():
        if key in entry:
            entry.setdefault(own, entry.pop(key))
    urls = [entry.pop(key) for key in _URL_KEYS if key in entry]
    if urls := [each for each in urls if each != ""]:
        entry["url"] = urls[0]
    if isinstance(enabled := entry.pop("enabled", True), bool) and not enabled:
        entry["disabled"] = True
    if isinstance(env := entry.get("env"), Mapping):
        entry["env"] = {name: value for name, value in env.items() if value is not None}


def _convert_type(entry: dict[str, Any]) -> None:
    kind = entry.pop("transport", None) or entry.get("type")
    entry.pop("type", None)
    is_text = kind is None or isinstance(kind, str)
    if not is_text:
        raise ValueError("its type is no text.")
    if kind in {"ws", "websocket"}:
        raise ValueError(
            "WebSocket is no transport of the protocol; ask who runs the server for an address with"
            " streamable HTTP."
        )
    if kind in {"sdk", "builtin", "platform", "frontend", "inline_python"}:
        raise ValueError(f"a server of the type {kind} is a part of the program that wrote this.")
    if not kind:
        if not entry.get("command") and not entry.get("url") and "settings" in entry:
            raise ValueError("an extension of an editor starts it; give the server's command.")
        return
    own = _TYPES.get(kind, kind)
    # remote is any transport over HTTP
    if kind != "remote" and not (own == "stdio" and entry.get("command")):
        entry["type"] = own


def _convert_times(entry: dict[str, Any]) -> None:
    for key, own, divisor in (
        ("startup_timeout_sec", "start_timeout_seconds", 1),
        ("startup_timeout_ms", "start_timeout_seconds", _MILLISECONDS),
        ("initTimeout", "start_timeout_seconds", _MILLISECONDS),
        ("tool_timeout_sec", "call_timeout_seconds", 1),
        ("timeout", "call_timeout_seconds", 1),
    ):
        if isinstance(value := entry.pop(key, None), int | float) and not isinstance(value, bool):
            # some programs count seconds, others milliseconds
            is_milliseconds = key == "timeout" and value >= _MILLISECONDS
            entry.setdefault(own, value / (_MILLISECONDS if is_milliseconds else divisor))


def _convert_credentials(entry: dict[str, Any]) -> None:
    """Replace the keys that name variables by the variables."""
    headers: dict[str, str] = {}
    if name := entry.pop("bearer_token_env_var", ""):
        headers["Authorization"] = f"Bearer ${{{name}}}"
    if isinstance(named := entry.pop("env_http_headers", None), Mapping):
        headers |= {str(key): f"${{{name}}}" for key, name in named.items()}
    _add(entry, "headers", headers)
    if isinstance(names := entry.pop("env_vars", None), list):
        _add(entry, "env", {name: f"${{{name}}}" for name in names if isinstance(name, str)})


def _add(entry: dict[str, Any], key: str, values: Mapping[str, str]) -> None:
    """Add values to a mapping of an entry, which has precedence."""
    given = entry.get(key, {})
    if values and isinstance(given, Mapping):
        entry[key] = {**values, **given}


def _leave_out(entry: dict[str, Any], notes: list[str]) -> None:
    for keys, reason in (
        (_SELECTIONS, "a review and permission rules decide which tools are offered"),
        (_APPROVALS, "calls are asked about unless risk or a permission rule allows them"),
        (_LOGINS, "a login needs the key login: shared or personal"),
        (_ENVIRONMENT_FILES, "give the variables of the file with env"),
    ):
        found = sorted(keys & entry.keys())
        for key in found:
            del entry[key]
        if found:
            notes.append(f"Left out: {', '.join(found)}; {reason}.")


class _Values:
    """Converts the variables in the texts of an entry."""

    def __init__(self, inputs: Inputs | None, notes: list[str]) -> None:
        self._inputs, self._notes = inputs, notes

    def convert(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return an entry with our variables."""
        converted: dict[str, Any] = self._in(entry, self._text)
        for key in ("env", "headers"):
            if self._inputs is not None and key in converted:
                converted[key] = self._in(converted[key], self._bare)
        return converted

    def _in(self, value: Any, change: Callable[[str], str]) -> Any:
        match value:
            case str():
                return change(value)
            case list():
                return [self._in(each, change) for each in value]
            case dict():
                return {key: self._in(each, change) for key, each in value.items()}
            case _:
                return value

    def _text(self, text: str) -> str:
        text = _SEPARATOR.sub("/", _HOME.sub(lambda _found: str(Path.home()), text))
        return _NAMED.sub(self._named, _FOLDER.sub(self._folder, text))

    def _folder(self, found: re.Match[str]) -> str:
        if self._inputs is None:
            raise ValueError(f"{found[0]} is the folder of a project; write its path.")
        name = found[1]
        return Path(self._inputs.folder).name if "Base" in name else self._inputs.folder

    def _named(self, found: re.Match[str]) -> str:
        kind, name = found[1] or found[3], found[2] or found[4]
        match kind:
            case "env":
                return f"${{{name}}}"
            case "input":
                return self._input(name)
            case _:
                raise ValueError(f"{found[0][:100]} has a value in another program only; write it.")

    def _input(self, name: str) -> str:
        variable = _UNUSABLE.sub("_", name.upper()).strip("_") or "INPUT"
        if variable[0].isdigit():
            variable = f"INPUT_{variable}"
        default = self._inputs.defaults.get(name, "") if self._inputs else ""
        self._notes.append(f"${{input:{name[:60]}}} is the variable {variable} of Larkspur.")
        return (
            f"${{{variable}:-{default}}}" if default and "}" not in default else f"${{{variable}}}"
        )

    def _bare(self, text: str) -> str:
        changed = _BARE.sub(lambda found: f"${{{found[1]}}}", text)
        if changed != text:
            names = ", ".join(f"${name}" for name in _BARE.findall(text))
            self._notes.append(f"{names} is read as a variable.")
        return changed
