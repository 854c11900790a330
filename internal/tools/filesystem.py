"""The tools that read, write and list files."""

import asyncio
import contextlib
import heapq
import os
import stat
from collections.abc import Callable, Iterator
from typing import Annotated, ParamSpec, TypeVar

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.ports.tools import ToolOutcome
from internal.tools.diffs import unified_diff
from internal.tools.output_limit import MAX_RESULT_CHARS
from internal.tools.tool import ToolContext, tool
from internal.tools.workspace import MAX_BYTES, PathNotFound, Workspace, WorkspacePath

_BINARY_PROBE = 8_192
_MAX_ENTRIES = 500
_KIB = 1024

P = ParamSpec("P")
T = TypeVar("T")


@tool(
    risk="read",
    targets=(PathTarget("path"),),
    title={"en": "Read a file", "zh": "读取文件"},
    idempotent=True,
)
async def read_file(
    context: ToolContext,
    path: Annotated[WorkspacePath, "A file inside the workspace, such as notes/plan.md."],
    offset: Annotated[int, msgspec.Meta(ge=1), "The first line to return, counted from 1."] = 1,
    limit: Annotated[int, msgspec.Meta(ge=1), "Return at most this many lines."] = 2_000,
) -> ToolOutcome:
    """Read a text file from the workspace.

    Returns at most 30,000 characters; when lines are left it says from which one to read on.
    """
    lines = await asyncio.to_thread(_lines, context.workspace, path)
    if offset > max(len(lines), 1):
        raise ToolError(f"{path} has {len(lines):,} lines: there is no line {offset:,}")
    shown = list(_fitting(lines[offset - 1 : offset - 1 + limit]))
    text = "\n".join(shown)
    following = offset + len(shown)
    if (left := len(lines) - following + 1) > 0:
        text += f"\n[{left:,} of {len(lines):,} lines follow: offset={following} reads on]"
    if not lines:
        text = "[the file is empty]"
    return ToolOutcome(text, metadata={"lines": len(shown), "total_lines": len(lines)})


def _lines(workspace: Workspace, path: WorkspacePath) -> list[str]:
    lines = decode_text(workspace.read(path).content).split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _fitting(lines: list[str]) -> Iterator[str]:
    """Yield the first lines that fit; one that is too long alone is cut."""
    room = MAX_RESULT_CHARS
    for number, line in enumerate(lines):
        if len(line) > room and number:
            return
        cut = len(line) - room
        yield line if cut <= 0 else f"{line[:room]}[… {cut:,} more characters in this line]"
        room -= len(line) + 1
        if room <= 0:
            return


def decode_text(content: bytes) -> str:
    r"""Return a file's text with `\n` line ends; what is not UTF-8 becomes U+FFFD.

    Raises:
        ToolError: the file is binary.
    """
    if b"\0" in content[:_BINARY_PROBE]:
        raise ToolError(f"this is a binary file of {format_size(len(content))}, not text")
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")


async def _previewed(context: ToolContext, path: WorkspacePath, content: str) -> str:
    """Return the diff that the call would make now."""
    encode_text(content)

    def diff() -> str:
        before = _standing(context.workspace, path)
        if before == content:
            return "[nothing would change]"
        return unified_diff(escape_name(str(path)), before, content) or "[a new empty file]"

    return await asyncio.to_thread(diff)


def _standing(workspace: Workspace, path: WorkspacePath) -> str | None:
    """Return the text of a file, None when there is none.

    Raises:
        ToolError: it cannot be read, or is binary.
    """
    try:
        content = workspace.read(path).content
    except PathNotFound:
        return None
    decode_text(content[:_BINARY_PROBE])  # refuses binary files
    return content.decode("utf-8", "replace")


@tool(
    risk="write",
    targets=(PathTarget("path"),),
    title={"en": "Write a file", "zh": "写入文件"},
    preview=_previewed,
)
async def write_file(
    context: ToolContext,
    path: Annotated[WorkspacePath, "A file inside the workspace; missing folders are made."],
    content: Annotated[str, "The whole text of the file."],
) -> ToolOutcome:
    """Create a text file, or replace it as a whole. To change a part of a file use edit_file."""
    encoded = encode_text(content)
    if len(encoded) > MAX_BYTES:
        raise ToolError(
            f"the content has {format_size(len(encoded))}, more than {format_size(MAX_BYTES)}"
        )
    async with context.writing:
        created = await run_to_completion(context.workspace.write, path, encoded)
    verb = "created" if created else "overwritten"
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    return ToolOutcome(
        f"{path} {verb}: {format_size(len(encoded))}, {lines:,} lines",
        metadata={"path": str(path), "created": created, "size": len(encoded)},
    )


def encode_text(text: str) -> bytes:
    """Return the text as UTF-8.

    Raises:
        ToolError: it holds half a character (a lone surrogate).
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        where = error.start
        raise ToolError(f"the text is not valid: half a character at position {where:,}") from error


async def run_to_completion(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking change in a thread; a cancel waits for it, so that nothing happens after."""
    work = asyncio.create_task(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({work})
        if not work.cancelled():
            work.exception()  # taken: the cancel is what the caller hears
        raise


@tool(
    risk="read",
    targets=(PathTarget("path", recursive=True),),
    title={"en": "List a folder", "zh": "列出目录"},
    idempotent=True,
)
async def list_dir(
    context: ToolContext,
    path: Annotated[WorkspacePath, "A folder inside the workspace."] = WorkspacePath(),  # noqa: B008  # frozen
) -> ToolOutcome:
    """List a folder: names in order, folders end with a slash, files show their size."""
    lines, total = await asyncio.to_thread(_listing, context.workspace, path)
    if total > len(lines):
        lines.append(f"[{total - len(lines):,} more of {total:,} entries are not shown]")
    return ToolOutcome("\n".join(lines) or "[the folder is empty]", metadata={"entries": total})


def _listing(workspace: Workspace, path: WorkspacePath) -> tuple[list[str], int]:
    total = 0

    def counted(entries: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        nonlocal total
        for entry in entries:
            total += 1
            yield entry

    with (
        workspace.opened(path, os.O_RDONLY | os.O_DIRECTORY) as folder,
        os.scandir(folder) as entries,
    ):
        first = heapq.nsmallest(_MAX_ENTRIES, counted(entries), key=lambda entry: entry.name)
        return [_line(folder, entry) for entry in first], total


def _line(folder: int, entry: os.DirEntry[str]) -> str:
    name = escape_name(entry.name)
    try:
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return f"{name} -> {escape_name(os.readlink(entry.name, dir_fd=folder))}"
    except OSError:
        return f"{name} (gone)"
    if stat.S_ISDIR(status.st_mode):
        return f"{name}/"
    if not stat.S_ISREG(status.st_mode):
        return f"{name} (special)"
    return f"{name}  {format_size(status.st_size)}"


def escape_name(name: str) -> str:
    """Return a file name with what is no printable character escaped: one name is one line."""
    if name.isprintable():
        return name
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in name
    )


def format_size(count: int) -> str:
    """Return a number of bytes as people write it."""
    if count < _KIB:
        return f"{count} bytes"
    if count < _KIB * _KIB:
        return f"{count / _KIB:.1f} KB"
    return f"{count / _KIB / _KIB:.1f} MB"
