"""The tool that changes a part of a file."""

import asyncio
import itertools
import re
from typing import Annotated, NamedTuple

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.ports.tools import ToolOutcome
from internal.tools.diffs import unified_diff
from internal.tools.filesystem import decode_text, encode_text, escape_name, run_to_completion
from internal.tools.output_limit import OutputBuffer
from internal.tools.tool import ToolContext, tool
from internal.tools.workspace import MAX_BYTES, FileContents, Workspace, WorkspacePath

_MAX_PLACES = 10


async def _previewed(
    context: ToolContext,
    path: WorkspacePath,
    old_string: str,
    new_string: str,
    replace_all: bool = False,
) -> str:
    """Return the diff that the call would make now."""

    def diff() -> str:
        edit = _edited(context.workspace, path, (old_string, new_string), replace_all)
        return unified_diff(escape_name(str(path)), edit.before, edit.after)

    return await asyncio.to_thread(diff)


@tool(
    risk="write",
    targets=(PathTarget("path"),),
    title={"en": "Edit a file", "zh": "修改文件"},
    preview=_previewed,
)
async def edit_file(
    context: ToolContext,
    path: Annotated[WorkspacePath, "An existing text file inside the workspace."],
    old_string: Annotated[str, msgspec.Meta(min_length=1), "The exact text to replace."],
    new_string: Annotated[str, "The text that takes its place."],
    replace_all: Annotated[bool, "Replace every occurrence, not just the only one."] = False,
) -> ToolOutcome:
    """Replace an exact piece of text in a file and return the change as a diff.

    The text must occur exactly once, blanks and line breaks included, unless replace_all is set.
    """
    async with context.writing:
        edit = await run_to_completion(
            _edit, context.workspace, path, (old_string, new_string), replace_all
        )
    diff = await asyncio.to_thread(unified_diff, escape_name(str(path)), edit.before, edit.after)
    clip = OutputBuffer()
    clip.take(encode_text(diff))
    places = "1 place" if edit.places == 1 else f"{edit.places:,} places"
    return ToolOutcome(
        f"{path} changed in {places}:\n{clip.text()}",
        metadata={"path": str(path), "diff": clip.text(), "replacements": edit.places},
    )


class _Edit(NamedTuple):
    """A change to a file: its text before and after, and in how many places they differ."""

    read: FileContents
    before: str
    after: str
    places: int


def _edit(
    workspace: Workspace, path: WorkspacePath, change: tuple[str, str], everywhere: bool
) -> _Edit:
    """Change the file."""
    edit = _edited(workspace, path, change, everywhere)
    workspace.write(path, encode_text(edit.after), instead_of=edit.read)
    return edit


def _edited(
    workspace: Workspace, path: WorkspacePath, change: tuple[str, str], everywhere: bool
) -> _Edit:
    """Work the change out, without making it."""
    contents = workspace.read(path)
    decode_text(contents.content[:8_192])  # refuses binary files
    try:
        before = contents.content.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is not UTF-8: an edit would damage it") from error
    old, new = change
    if "\r\n" in before and "\r" not in old:  # read_file shows such files with plain line ends
        old, new = old.replace("\n", "\r\n"), re.sub("\r?\n", "\r\n", new)
    if old == new:
        raise ToolError("old_string and new_string are the same: nothing would change")
    count = before.count(old)
    if count == 0:
        raise ToolError(f"old_string is not in {path}{_hint(before, old)}")
    if count > 1 and not everywhere:
        raise ToolError(
            f"old_string occurs {count:,} times in {path}, at lines {_places(before, old)}: add "
            "lines around it until it is unique, or set replace_all"
        )
    after = before.replace(old, new)
    if len(encode_text(after)) > MAX_BYTES:
        raise ToolError(f"{path} would grow beyond {MAX_BYTES // 1024:,} KB")
    return _Edit(contents, before, after, count)


def _places(text: str, wanted: str) -> str:
    """Return the line numbers at which the text occurs."""
    found = itertools.islice(re.finditer(re.escape(wanted), text), _MAX_PLACES + 1)
    numbers = [str(text.count("\n", 0, match.start()) + 1) for match in found]
    shown = ", ".join(numbers[:_MAX_PLACES])
    return f"{shown} …" if len(numbers) > _MAX_PLACES else shown


def _hint(text: str, wanted: str) -> str:
    """Say where something stands that differs in blanks only."""
    sought = [" ".join(line.split()) for line in wanted.strip().splitlines()]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if not sought or not sought[0]:
        return ""
    for number, line in enumerate(lines):
        if line == sought[0] and lines[number : number + len(sought)] == sought:
            return f": line {number + 1} differs from it in blanks only; copy it exactly"
    starts = [str(number) for number, line in enumerate(lines, start=1) if line == sought[0]]
    if not starts:
        return ": read the file again and copy the text exactly"
    return f": only its first line is, at line {', '.join(starts[:_MAX_PLACES])}"
