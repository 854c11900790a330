"""The definitions of all servers, from the settings and from `mcp.json` in the home folder.

Nothing is ever read from a workspace.
"""

import json
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from internal.agent.domain.errors import NotFound
from internal.agent.domain.system_errors import describe_system_error
from internal.mcp.definitions import DefinitionError, Expand, ServerDefinition, parse_definition
from internal.mcp.foreign_files import FOREIGN_KEYS, MAX_FILE_BYTES, SERVERS_KEY
from internal.mcp.private_files import FileVersion, locked, read_text, version_of, write_json
from internal.mcp.relaxed_json import parse_relaxed

logger = logging.getLogger(__name__)

DEFINITIONS_FILE = "mcp.json"
PACKAGES_FOLDER = "mcp-packages"
"""Folder of the servers' packages, in the home folder."""
SETTING = "mcp.servers"
MAX_SERVERS = 100


class Definitions(NamedTuple):
    """The servers by name, in order. `problems` are sentences, by the name that they are about.

    The problem of the whole file has the name "".
    """

    servers: Mapping[str, ServerDefinition]
    problems: Mapping[str, str]


class DefinitionFiles:
    """Reads the definitions again when the file has changed. May be used in several threads.

    Args:
        home: the home folder.
        settings: the entries of the settings, which take precedence.
        expand: replaces variables in an entry.
    """

    def __init__(self, home: Path, settings: Mapping[str, Any], expand: Expand) -> None:
        self.path = home / DEFINITIONS_FILE
        self._settings, self._expand = settings, expand
        self._lock = threading.Lock()
        self._known: tuple[FileVersion, Definitions] | None = None

    def read(self) -> Definitions:
        """Return all definitions. One that is wrong does not affect the others."""
        with self._lock:
            version = version_of(self.path)
            if self._known is None or self._known[0] != version:
                self._known = version, self._parse()
            return self._known[1]

    def parse(self, name: str, entry: Mapping[str, Any]) -> ServerDefinition:
        """Return the definition of an entry, as it would be in the file.

        Raises:
            DefinitionError: it cannot be used.
        """
        return parse_definition(name, entry, self._expand, str(self.path))

    def entry(self, name: str) -> Mapping[str, Any] | None:
        """Return an entry of the file unchanged, None if the file does not have it."""
        try:
            found = _entries(_read_document(self.path)[0], self.path).get(name)
        except DefinitionError:
            return None
        return found if isinstance(found, Mapping) else None

    def add(
        self, name: str, entry: Mapping[str, Any], *, replace: bool = False
    ) -> ServerDefinition:
        """Write an entry to the file, and return its definition.

        With `replace` it takes the place of one in the file.

        Raises:
            DefinitionError: it cannot be used, or there is a server of this name.
            OSError: the file cannot be written.
        """
        definition = self.parse(name, entry)
        with locked(self.path):
            document = _read_writable(self.path)
            entries = _entries(document, self.path)
            if name in self._settings or (name in entries and not replace):
                raise DefinitionError(_taken(name))
            if len({**entries, name: {}}) > MAX_SERVERS:
                raise DefinitionError(f"{self.path} has {MAX_SERVERS} servers, as many as it may.")
            document[SERVERS_KEY] = {**entries, name: dict(entry)}
            write_json(self.path, document)
        return definition

    def check_addition(self, name: str, *, replace: bool) -> None:
        """Check that a server of this name can be added.

        Raises:
            DefinitionError: there is one.
        """
        if name in self._settings or (self.entry(name) is not None and not replace):
            raise DefinitionError(_taken(name))

    def remove(self, name: str) -> None:
        """Remove an entry from the file.

        Raises:
            NotFound: the file has no such entry.
            DefinitionError: the file is damaged.
            OSError: it cannot be written.
        """
        with locked(self.path):
            document = _read_writable(self.path)
            entries = dict(_entries(document, self.path))
            if name not in entries:
                elsewhere = f"; it is in the setting {SETTING}" if name in self._settings else ""
                raise NotFound(
                    f"{self.path} has no MCP server {name[:80]}{elsewhere}.",
                    reason_code="no_mcp_server",
                    server=name[:80],
                )
            del entries[name]
            document[SERVERS_KEY] = entries
            write_json(self.path, document)

    def _parse(self) -> Definitions:
        problems: dict[str, str] = {}
        try:
            document, _ = _read_document(self.path)
            written = dict(_entries(document, self.path))
            problems |= _foreign_problem(document, self.path)
        except DefinitionError as error:
            written, problems[""] = {}, str(error)
        given = [(name, entry, SETTING) for name, entry in self._settings.items()]
        given += [(name, entry, str(self.path)) for name, entry in written.items()]
        servers: dict[str, ServerDefinition] = {}
        for name, entry, where in given[:MAX_SERVERS]:
            if name in servers or name in problems:
                problems[name] = f"{where}: {name} is also in {SETTING}, which takes precedence."
                continue
            try:
                servers[name] = parse_definition(name, entry, self._expand, where)
            except DefinitionError as error:
                problems[name] = str(error)
        if len(given) > MAX_SERVERS:
            problems[""] = f"There are more than {MAX_SERVERS} MCP servers; the rest is ignored."
        for problem in problems.values():
            logger.warning("mcp definition is not used", extra={"problem": problem})
        return Definitions(servers, problems)


def _taken(name: str) -> str:
    return f"There is an MCP server {name} already; remove it first: larkspur mcp remove {name}"


def _read_document(path: Path) -> tuple[dict[str, Any], bool]:
    """Return the content of the file, and True if it can be written again; a missing one is empty.

    Raises:
        DefinitionError: it cannot be read, or is not a JSON object.
    """
    try:
        document, is_plain = parse_relaxed(read_text(path, MAX_FILE_BYTES))
    except FileNotFoundError:
        return {}, True
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read: {describe_system_error(error)}") from error
    except json.JSONDecodeError as error:
        raise DefinitionError(f"{path}:{error.lineno}: this is not JSON: {error.msg}.") from error
    except RecursionError as error:
        raise DefinitionError(f"{path} cannot be read: it is nested too deeply.") from error
    except ValueError as error:
        raise DefinitionError(f"{path} cannot be read: {error}.") from error
    if not isinstance(document, dict):
        raise DefinitionError(f'{path} must be a JSON object: {{"{SERVERS_KEY}": {{…}}}}.')
    return document, is_plain


def _read_writable(path: Path) -> dict[str, Any]:
    """Return the content of the file before it is written again.

    Raises:
        DefinitionError: it cannot be read, or has comments, which would be lost.
    """
    document, is_plain = _read_document(path)
    if not is_plain:
        raise DefinitionError(
            f"{path} has comments or trailing commas, which are lost when it is written. Remove"
            " them, or change the file by hand."
        )
    return document


def _foreign_problem(document: Mapping[str, Any], path: Path) -> dict[str, str]:
    """Return the problem of a file with servers under the key of another program."""
    found = [key for key in FOREIGN_KEYS if key in document]
    if not found or SERVERS_KEY in document:
        return {}
    sentence = f"{path} has the servers of {found[0]}, which are not read; add them with: "
    return {"": f"{sentence}larkspur mcp import {path}"}


def _entries(document: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    entries = document.get(SERVERS_KEY, {})
    if not isinstance(entries, Mapping):
        raise DefinitionError(f"{path}: {SERVERS_KEY} must be an object of servers by name.")
    return entries
