"""The search_files tool: with ripgrep if it is installed, else with `search_fallback`."""

import asyncio
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.ports.sandbox import FileAccess, SandboxCommand, SandboxResult
from internal.agent.ports.tools import ToolOutcome
from internal.open_files.paths import real_path, resolve_links
from internal.tools.filesystem import escape_name
from internal.tools.search_fallback import (
    MAX_FILE_BYTES,
    MAX_LINE_CHARS,
    SKIPPED_FOLDERS,
    SearchOptions,
)
from internal.tools.tool import MAX_RESULT_CHARS, ToolContext, tool
from internal.tools.workspace import Workspace, WorkspacePath

_TIMEOUT_SECONDS = 20.0
_MAX_MATCHES = 200
_MAX_OUTPUT_LINE_BYTES = 65_536  # far beyond a path and a line of either engine
_ERROR_EXIT_CODE = 2


@tool(
    risk="read",
    targets=(PathTarget("path", recursive=True),),
    title={"en": "Search files", "zh": "搜索文件"},
    idempotent=True,
    timeout_seconds=60.0,
)
async def search_files(
    context: ToolContext,
    *,
    pattern: Annotated[str, msgspec.Meta(min_length=1), "A regular expression, or plain text."],
    path: Annotated[WorkspacePath, "Search this folder or file."] = WorkspacePath(),  # noqa: B008  # frozen
    glob: Annotated[str, "Only files whose name matches, such as *.py or src/**/*.ts."] = "",
    literal: Annotated[bool, "Take the pattern as plain text."] = False,
    ignore_case: Annotated[bool, "Do not tell capital from small letters."] = False,
) -> ToolOutcome:
    """Search the text of the workspace's files; return up to 200 lines as `path:line: text`.

    Left out are binary files, files over 10 MB, and folders such as .git, node_modules and .venv
    unless the search starts in them. Symbolic links are not followed.
    """
    if any(each in pattern + glob for each in "\0\n"):
        raise ToolError("a pattern is one line: it is matched line by line")
    if glob.startswith("!"):
        raise ToolError("a glob says which files to search, not which to leave out")
    shown, folder, file = await asyncio.to_thread(_resolve, context.workspace, path)
    options = SearchOptions(
        pattern=pattern, literal=literal, ignore_case=ignore_case, glob=glob, file=file
    )
    argv = (
        _fallback_command(options)
        if context.ripgrep is None
        else _ripgrep_command(context.ripgrep, options)
    )
    matches = _Matches(
        shown, lambda name: context.workspace.is_protected(f"{folder}/{name}", path.outside)
    )
    finished = await context.sandbox.run(
        SandboxCommand(
            argv,
            folder,
            _TIMEOUT_SECONDS,
            context.call.session_id,
            access=FileAccess(read_only=(folder, *_ENGINE_FOLDERS), links=_ENGINE_FOLDERS),
        ),
        matches.write,
    )
    return matches.outcome(finished)


_ENGINE_FOLDERS = resolve_links((sys.base_prefix, sys.prefix, str(Path(__file__).parents[1])))
"""Where the programs of both engines are, besides the system's own folders."""


def _resolve(workspace: Workspace, path: WorkspacePath) -> tuple[str, str, str]:
    """Return the folder to search (as shown, and resolved) and the single file in it or "".

    The engines open files themselves, so they get the path that the kernel resolved. What is at
    that path when they start must be no link, else the search is not started.
    """
    with workspace.open(path) as descriptor:
        mode, found = os.fstat(descriptor).st_mode, Path(real_path(descriptor))
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise ToolError(f"{path} is neither a file nor a folder")
    folder, file = (found, "") if stat.S_ISDIR(mode) else (found.parent, found.name)
    root = Path(workspace.root_of(path))
    if not folder.is_relative_to(root):  # replaced since it was opened
        raise ToolError(f"{path} leads outside the workspace")
    shown = "" if folder == root else f"{folder.relative_to(root).as_posix()}/"
    return f"{path.outside}/{shown}" if path.outside else shown, str(folder), file


def _fallback_command(options: SearchOptions) -> tuple[str, ...]:
    return (sys.executable, "-I", "-m", "internal.tools.search_fallback", json.dumps(options))


def _ripgrep_command(program: str, options: SearchOptions) -> tuple[str, ...]:
    flags = [
        *("--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename"),
        *("--line-number", "--null", "--no-ignore", "--hidden", "--no-follow", "--sort=path"),
        f"--max-filesize={MAX_FILE_BYTES}",
    ]
    flags += ["--fixed-strings"] if options["literal"] else []
    flags += ["--ignore-case"] if options["ignore_case"] else ["--case-sensitive"]
    flags += [f"--glob={options['glob']}"] if options["glob"] else []
    flags += [f"--glob=!**/{folder}/**" for folder in SKIPPED_FOLDERS]
    return (program, *flags, f"--regexp={options['pattern']}", "--", f"./{options['file']}")


class _Matches:
    """Collects the output of an engine: the first lines, and the number of all.

    Lines of files for which `is_protected` is true, given the path in the folder, are dropped.
    """

    def __init__(self, folder: str, is_protected: Callable[[str], bool]) -> None:
        self._folder = folder
        self._is_protected = is_protected
        self._rest = b""
        self._lines: list[str] = []
        self._total = 0
        self._files: dict[bytes, bool] = {}  # to whether its lines are dropped
        self._message = ""

    def write(self, chunk: bytes) -> None:
        """Add a chunk of output."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._line(line)
        self._rest = rest[:_MAX_OUTPUT_LINE_BYTES]  # bounds the memory for an endless line

    def _line(self, line: bytes) -> None:
        path, separator, found = line.partition(b"\0")
        if not separator:
            self._message = line.decode("utf-8", "replace").strip() or self._message
            return
        name = os.fsdecode(path).removeprefix("./")
        if path not in self._files:
            self._files[path] = self._is_protected(name)
        if self._files[path]:
            return
        self._total += 1
        if len(self._lines) < _MAX_MATCHES:
            number, _, text = found.decode("utf-8", "replace").partition(":")
            text = text.rstrip("\r")
            shown = text if len(text) <= MAX_LINE_CHARS else f"{text[:MAX_LINE_CHARS]}…"
            self._lines.append(f"{self._folder}{escape_name(name)}:{number}: {shown}")

    def outcome(self, finished: SandboxResult) -> ToolOutcome:
        """Return the result.

        Raises:
            ToolError: the pattern is not valid.
        """
        if finished.exit_code == _ERROR_EXIT_CODE and not self._files:
            raise ToolError(f"the search failed: {self._message or 'the pattern is not valid'}")
        kept = list(_fitting(self._lines))
        notes = []
        if len(kept) < self._total:
            notes.append(f"[{len(kept):,} of {self._total:,} lines are shown: narrow the search]")
        if finished.timed_out:
            notes.append(f"[the search was ended after {_TIMEOUT_SECONDS:g} s: there may be more]")
        elif not self._total:
            notes.append("[nothing was found]")
        return ToolOutcome(
            "\n".join([*kept, *notes]),
            metadata={
                "matches": self._total,
                "files": sum(not is_dropped for is_dropped in self._files.values()),
            },
        )


def _fitting(lines: list[str]) -> list[str]:
    """Return the first lines that fit into a result."""
    remaining = MAX_RESULT_CHARS
    for number, line in enumerate(lines):
        remaining -= len(line) + 1
        if remaining < 0:
            return lines[:number]
    return lines
