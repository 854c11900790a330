"""The tools that a person has accepted of each server, and the tools that it listed last.

`mcp-pins.json` has the hashes, a file in `mcp/` the found and the accepted tools. Only the hashes
decide which tools are offered.
"""

import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec

from internal.agent.domain.errors import LarkspurError
from internal.mcp.manifest import Manifest, ManifestTool
from internal.mcp.private_files import FileVersion, locked, read_json, version_of, write_json

PINS_FILE = "mcp-pins.json"
MANIFESTS_FOLDER = "mcp"
_MAX_PINS_BYTES = 10_000_000
_MAX_MANIFEST_BYTES = 40_000_000


class McpPinsUnreadable(LarkspurError):
    """The file with the pins is damaged. No tool of an MCP server is offered."""


class ServerPin(msgspec.Struct, frozen=True):
    """The accepted hashes: of the definition, and of each tool by its name."""

    definition: str
    tools: dict[str, str]


class KnownTools(msgspec.Struct, frozen=True):
    """The tools that a server listed last, and the tools that a person has accepted."""

    found: Manifest | None = None
    accepted: tuple[ManifestTool, ...] = ()


class McpPins:
    """The pins and tools in the home folder. Files are read again when they have changed.

    May be used in several threads.
    """

    def __init__(self, home: Path) -> None:
        self._file = home / PINS_FILE
        self._folder = home / MANIFESTS_FOLDER
        self._lock = threading.RLock()
        self._pins: tuple[FileVersion, Mapping[str, ServerPin]] | None = None
        self._tools: dict[str, tuple[FileVersion, KnownTools]] = {}

    def version(self, servers: tuple[str, ...]) -> tuple[FileVersion, ...]:
        """Return a value that changes whenever a pin or a tool of these servers does."""
        return (version_of(self._file), *(version_of(self._path(each)) for each in servers))

    def get(self, server: str) -> ServerPin | None:
        """Return the accepted pin of a server; None if nothing has been accepted.

        Raises:
            McpPinsUnreadable: the file is damaged.
        """
        with self._lock:
            version = version_of(self._file)
            if self._pins is None or self._pins[0] != version:
                self._pins = version, self._read_pins()
            return self._pins[1].get(server)

    def tools(self, server: str) -> KnownTools:
        """Return the known tools of a server; none if the file is missing or damaged."""
        with self._lock:
            version = version_of(self._path(server))
            known = self._tools.get(server)
            if known is None or known[0] != version:
                known = self._tools[server] = version, self._read_tools(server)
            return known[1]

    def record(self, server: str, found: Manifest) -> bool:
        """Store the tools that a server lists now. Return False if nothing has changed.

        Raises:
            OSError: they cannot be stored.
        """
        with self._lock:  # an acceptance in another thread must not be overwritten
            known = self.tools(server)
            if known.found == found:
                return False
            self._write_tools(server, KnownTools(found, known.accepted))
            return True

    def accept(self, server: str, found: Manifest) -> None:
        """Accept the definition and all tools of a manifest.

        Raises:
            McpPinsUnreadable: the file is damaged; it is not changed.
            OSError: this cannot be stored.
        """
        hashes = {tool.name: tool.sha256 for tool in found.tools}
        with self._lock:
            self._write_tools(server, KnownTools(found, found.tools))
            self._put(server, ServerPin(found.definition, hashes))

    def withdraw(self, server: str) -> None:
        """Accept nothing of a server any more.

        Raises:
            McpPinsUnreadable, OSError: as for `accept`.
        """
        self._put(server, None)

    def forget(self, server: str) -> None:
        """Remove everything about a server.

        Raises:
            McpPinsUnreadable, OSError: as for `accept`.
        """
        self._put(server, None)
        self._path(server).unlink(missing_ok=True)

    def _put(self, server: str, pin: ServerPin | None) -> None:
        with locked(self._file):
            pins = dict(self._read_pins())
            pins.pop(server, None)
            if pin is not None:
                pins[server] = pin
            write_json(self._file, msgspec.to_builtins({"pins": pins}))

    def _read_pins(self) -> Mapping[str, ServerPin]:
        try:
            document = read_json(self._file, _MAX_PINS_BYTES)
            return msgspec.convert(document, dict[str, dict[str, ServerPin]])["pins"]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, LookupError) as error:
            raise McpPinsUnreadable(f"{self._file} is damaged; correct it or delete it.") from error

    def _read_tools(self, server: str) -> KnownTools:
        try:
            return msgspec.convert(read_json(self._path(server), _MAX_MANIFEST_BYTES), KnownTools)
        except (OSError, ValueError):
            return KnownTools()

    def _write_tools(self, server: str, tools: KnownTools) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        write_json(self._path(server), msgspec.to_builtins(tools))

    def _path(self, server: str) -> Path:
        return self._folder / f"{server}.json"
