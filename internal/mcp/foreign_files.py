"""Files with servers, of this and of other programs: JSON with comments, TOML and YAML."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from internal.agent.domain.system_errors import describe_system_error
from internal.mcp.definitions import ENTRY_KEYS, DefinitionError
from internal.mcp.foreign_entries import Inputs, convert_entry
from internal.mcp.private_files import read_text
from internal.mcp.relaxed_json import parse_relaxed
from internal.mcp.server_names import MAX_NAME_CHARS, usable_name
from internal.settings.types import ConfigError

SERVERS_KEY = "mcpServers"
FOREIGN_KEYS = ("servers", "context_servers", "mcp_servers", "amp.mcpServers", "extensions")
"""Visual Studio Code, Zed, Codex, Amp and Goose."""
MAX_FILE_BYTES = 1_000_000

_WRAPPER = "mcp"
_PROJECT_FOLDERS = frozenset({".vscode", ".cursor", ".zed", ".codex", ".gemini", ".roo", ".kiro"})


class ForeignServer(NamedTuple):
    """A server of a file, with its name and entry in our form.

    `written` is its name in the file. `notes` are sentences about changes. `problem` is a sentence
    with the reason why it cannot be used; "" if nothing is wrong so far.
    """

    name: str
    written: str
    entry: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    problem: str = ""


def read_servers(path: Path) -> list[ForeignServer]:
    """Return the servers of a file, such as the `.mcp.json` of a project.

    Raises:
        DefinitionError: there is no such file, or it has no servers.
    """
    document = _read(path)
    inputs = Inputs(_project_of(path), dict(_defaults(document)))
    found: list[ForeignServer] = []
    for written, given in _entries(document):
        taken = {each.name for each in found}
        found.append(_server(str(written), given, taken, inputs=inputs))
    if not found:
        raise DefinitionError(f"{path} has no {SERVERS_KEY}, {', '.join(FOREIGN_KEYS[:3])} or mcp.")
    return found


def _server(written: str, given: Any, taken: set[str], *, inputs: Inputs) -> ForeignServer:
    name = usable_name(written)
    if name in taken:
        start = name[: MAX_NAME_CHARS - 4]
        name = next(each for n in range(2, 1_000) if (each := f"{start}-{n}") not in taken)
    renamed = () if name == written else (f"{written[:80]!r} is called {name} here.",)
    if not isinstance(given, Mapping):
        return ForeignServer(name, written, {}, renamed, "it is no mapping of keys.")
    try:
        entry, notes = convert_entry(given, inputs)
    except (ValueError, TypeError) as error:
        return ForeignServer(name, written, given, renamed, str(error))
    unknown = sorted(str(key) for key in entry if key not in ENTRY_KEYS)
    if unknown:
        notes = (*notes, f"Left out: {', '.join(unknown)}; there are no such keys here.")
    known = {key: value for key, value in entry.items() if key in ENTRY_KEYS}
    return ForeignServer(name, written, known, (*renamed, *notes))


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the entry of each server of a document."""
    wrapped = document.get(_WRAPPER)
    for key in (SERVERS_KEY, *FOREIGN_KEYS):
        yield from _named(document.get(key), is_strict=key == SERVERS_KEY)
    if isinstance(wrapped, Mapping):
        inner = [each for each in (SERVERS_KEY, *FOREIGN_KEYS) if each in wrapped]
        for each in inner:
            yield from _named(wrapped[each])
        if not inner:
            yield from _named(wrapped)
    if not {SERVERS_KEY, *FOREIGN_KEYS, _WRAPPER} & document.keys():
        yield from _named(document)


def _named(value: Any, *, is_strict: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield named servers of an object or a list; without `is_strict` only plausible entries."""
    if isinstance(value, list):
        value = {
            str(each.get("name") or f"server-{number}"): {
                key: one for key, one in each.items() if key != "name"
            }
            for number, each in enumerate(value, 1)
            if isinstance(each, Mapping)
        }
    if isinstance(value, Mapping):
        yield from (each for each in value.items() if is_strict or _looks_so(each[1]))


def _looks_so(given: Any) -> bool:
    keys = {"command", "cmd", "url", "httpUrl", "serverUrl", "uri", "transport", "settings"}
    return isinstance(given, Mapping) and bool(keys & given.keys())


def _defaults(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the inputs of Visual Studio Code that have a default."""
    wrapped = document.get(_WRAPPER)
    places = [document, *([wrapped] if isinstance(wrapped, Mapping) else [])]
    for place in places:
        inputs = place.get("inputs")
        for each in inputs if isinstance(inputs, list) else ():
            if isinstance(each, Mapping) and isinstance(each.get("default"), str):
                yield str(each.get("id")), each["default"]


def _project_of(path: Path) -> str:
    """Return the folder of the project that a file belongs to."""
    folder = path.absolute().parent
    return str(folder.parent if folder.name in _PROJECT_FOLDERS else folder)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = read_text(path, MAX_FILE_BYTES)
        match path.suffix.lower():
            case ".toml":
                document: Any = _parse_toml(text, path)
            case ".yaml" | ".yml":
                document = _parse_yaml(text, path)
            case _:
                document, _ = parse_relaxed(text)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read: {describe_system_error(error)}") from error
    except json.JSONDecodeError as error:
        raise DefinitionError(f"{path}:{error.lineno}: this is not JSON: {error.msg}.") from error
    except ConfigError as error:
        raise DefinitionError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"{path} cannot be read: {error}.") from error
    if not isinstance(document, Mapping):
        raise DefinitionError(f'{path} must be an object: {{"{SERVERS_KEY}": {{…}}}}.')
    return document


def _parse_toml(text: str, path: Path) -> Any:
    import tomllib  # noqa: PLC0415  # of no use to a gateway that starts

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DefinitionError(f"{path}: this is not TOML: {error}.") from error


def _parse_yaml(text: str, path: Path) -> Any:
    from internal.config.yaml_document import parse  # noqa: PLC0415 - yaml imports slowly

    return parse(text, str(path)).values
