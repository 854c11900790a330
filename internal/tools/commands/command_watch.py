"""Protection around every command of an agent for people who later work in its folders."""

import os
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

from msgspec import structs

from internal.agent.app.background_task import open_to_completion, run_to_completion
from internal.agent.ports.instructions import FILE_NAMES
from internal.agent.ports.sandbox import SandboxCommand
from internal.tools.commands.configuration_files import ConfigurationSnapshot
from internal.tools.commands.configuration_search import ConfigurationSearch
from internal.tools.commands.git_folders import GitFolders
from internal.tools.instruction_files import read_beginning, root_of
from internal.tools.instruction_trust import InstructionTrust


class WatchedFiles:
    """State shared by the watches of all commands.

    Args:
        trust: remembers which texts may instruct agents.
    """

    def __init__(self, trust: InstructionTrust) -> None:
        self.trust = trust
        self.search = ConfigurationSearch()

    def begin_changes(self, folder: str) -> None:
        """Keep the instructions of a folder in which an agent changes files unasked. Blocks."""
        root = root_of(os.path.realpath(folder))
        self.trust.begin_commands(root, partial(self._instructions, root))

    def _instructions(self, root: str) -> dict[str, bytes]:
        """Return the beginnings of the instruction files in a folder, by their real paths."""
        found: dict[str, bytes] = {}
        for name in self.search.search(root).files:
            if name.rpartition("/")[2] in FILE_NAMES:
                with suppress(OSError):
                    path, content = read_beginning(root, name)
                    found[path] = content
        return found


class CommandWatch:
    """Protects repositories while a command runs, and finds its changes to files trusted later.

    Args:
        files: the state that watches share.
        command: the command. Once the watch has begun, `command` has more read-only paths.
        people: the folders in which people work as well.
        protects: the sandbox keeps the command from configuring repositories there.
    """

    def __init__(
        self,
        files: WatchedFiles,
        command: SandboxCommand,
        people: tuple[str, ...] = (),
        *,
        protects: bool = False,
    ) -> None:
        self.command = command
        self.changed: tuple[str, ...] = ()
        """The files that were changed, once the command has ended."""
        self._files = files
        self._people = people
        self._protected = people if protects else ()
        self._before = ConfigurationSnapshot((), files.search)
        self._git = GitFolders({})

    @property
    def protects(self) -> bool:
        """True if there are repositories that the command may not configure."""
        return bool(self._git.read_only)

    async def __aenter__(self) -> Self:
        self._git = await open_to_completion(self._begin, GitFolders.release)
        access = self.command.access
        read_only = (*access.read_only, *self._git.read_only)
        self.command = structs.replace(
            self.command, access=structs.replace(access, read_only=read_only)
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await run_to_completion(self._end)

    def _begin(self) -> GitFolders:
        for folder in self._people:
            self._files.begin_changes(folder)
        self._before = ConfigurationSnapshot(self.command.access.writable, self._files.search)
        found = {folder: self._before.found.get(folder) for folder in self._protected}
        return GitFolders({folder: one for folder, one in found.items() if one is not None})

    def _end(self) -> None:
        self._git.release()
        self.changed = tuple(self._before.report())
