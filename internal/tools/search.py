"""The search_files tool: with ripgrep if it is installed, else with `search_fallback`."""

import asyncio
import json
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.ports.sandbox import FileAccess, SandboxCommand, SandboxResult
from internal.agent.ports.tools import ToolOutcome
from internal.open_files.paths import real_path, resolve_links
from internal.tools.search_fallback import MAX_FILE_BYTES, SKIPPED_FOLDERS, SearchOptions
from internal.tools.search_globs import SearchGlob
from internal.tools.search_matches import SearchMatches
from internal.tools.tool import ToolContext, tool
from internal.tools.workspace import Workspace, WorkspacePath

_TIMEOUT_SECONDS = 20.0
_FALLBACK = (sys.executable, "-I", "-m", "internal.tools.search_fallback")
# a pattern of ASCII without operators finds the same in the bytes of every encoding
_MATCHES_BYTES = re.compile(r"[\w \-/:,;=<>@#%&~\"']+", re.ASCII)


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
    if glob.startswith("~/"):
        raise ToolError("'~' does not stand for the home folder here: begin with a folder's name")
    shown, folder, file = await asyncio.to_thread(_resolve, context.workspace, path)
    meant = SearchGlob(glob)
    options = SearchOptions(
        pattern=pattern, literal=literal, ignore_case=ignore_case, globs=meant.patterns, file=file
    )

    def is_dropped(name: str) -> bool:
        is_meant = meant.accepts is None or meant.accepts(name)
        return not is_meant or context.workspace.is_protected(f"{folder}/{name}", path.outside)

    matches = SearchMatches(shown, is_dropped)
    engine = _Engine(context, folder)
    if context.ripgrep is None:
        finished = await engine.run(_FALLBACK, matches.write, options)
    else:
        finished = await _search_with_ripgrep(engine, context.ripgrep, options, matches)
    return matches.outcome(finished, timeout_seconds=_TIMEOUT_SECONDS)


class _Engine(NamedTuple):
    """Runs programs that search a folder."""

    context: ToolContext
    folder: str

    async def run(
        self,
        argv: tuple[str, ...],
        write: Callable[[bytes], None],
        options: SearchOptions | None = None,
    ) -> SandboxResult:
        """Run a program; `options` are the standard input of our own search program."""
        command = SandboxCommand(
            argv,
            self.folder,
            _TIMEOUT_SECONDS,
            self.context.call.session_id,
            stdin=b"" if options is None else json.dumps(options).encode(),
            access=FileAccess(read_only=(self.folder, *_ENGINE_FOLDERS), links=_ENGINE_FOLDERS),
        )
        return await self.context.sandbox.run(command, write)


async def _search_with_ripgrep(
    engine: _Engine, program: str, options: SearchOptions, matches: SearchMatches
) -> SandboxResult:
    """Search with ripgrep, and again the files that are not UTF-8: it knows no characters there."""
    finished = await engine.run(_ripgrep_command(program, options), matches.write)
    if finished.timed_out or matches.has_failed(finished):
        return finished
    others = set(matches.undecoded)
    if not _MATCHES_BYTES.fullmatch(options["pattern"]):
        listed = bytearray()
        listing = await engine.run(_listing_command(program, options), listed.extend)
        if listing.timed_out:
            return listing
        others |= {path.removeprefix(b"./") for path in bytes(listed).split(b"\0")[:-1]}
    if not others:
        return finished
    again = SearchOptions(**{**options, "files": [os.fsdecode(path) for path in sorted(others)]})
    found = matches.without_lines()
    searched = await engine.run(_FALLBACK, found.write, again)
    if found.has_failed(searched):  # Python has another syntax
        return finished
    matches.replace(others, found)
    return searched if searched.timed_out else finished


_ENGINE_FOLDERS = resolve_links((sys.base_prefix, sys.prefix, str(Path(__file__).parents[1])))
"""Folders with the programs of both engines, besides the system's own."""


def _resolve(workspace: Workspace, path: WorkspacePath) -> tuple[str, str, str]:
    """Return the folder to search (as shown, and resolved) and the single file in it or "".

    The engines open files themselves, so they get the path that the kernel resolved. It must not be
    a link when they start, else the search is not started.
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


def _ripgrep_command(program: str, options: SearchOptions) -> tuple[str, ...]:
    flags = ["--line-number", "--column", "--with-filename", *_ripgrep_flags(options)]
    flags += ["--fixed-strings"] if options["literal"] else []
    flags += ["--ignore-case"] if options["ignore_case"] else ["--case-sensitive"]
    return (program, *flags, f"--regexp={options['pattern']}", "--", f"./{options['file']}")


def _listing_command(program: str, options: SearchOptions) -> tuple[str, ...]:
    """Return the command that lists the files with a line that is not UTF-8."""
    flags = ["--files-with-matches", "--invert-match", "--line-regexp", *_ripgrep_flags(options)]
    return (program, *flags, "--regexp=.*", "--", f"./{options['file']}")


def _ripgrep_flags(options: SearchOptions) -> list[str]:
    return [
        *("--no-config", "--no-messages", "--color=never", "--no-heading"),
        *("--null", "--no-ignore", "--hidden", "--no-follow", "--sort=path"),
        f"--max-filesize={MAX_FILE_BYTES}",
        *(f"--glob={glob}" for glob in options["globs"]),
        *(f"--glob=!**/{folder}/**" for folder in SKIPPED_FOLDERS),
    ]
