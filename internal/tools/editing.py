"""The tool that changes a part of a file."""

import asyncio
import difflib
import itertools
import re
from typing import Annotated

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.ports.tools import ToolOutcome
from internal.tools.clip import Clip
from internal.tools.files import as_text, encode, to_the_end
from internal.tools.tool import ToolContext, tool
from internal.tools.workspace import MAX_BYTES, Workspace, WorkspacePath

_MAX_PLACES = 10
_MAX_DIFF_LINES = 4_000  # difflib takes seconds beyond
_CONTEXT = 3
_HUNK = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


@tool(risk="write")
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
        before, after, count = await to_the_end(
            _edit, context.workspace, path, (old_string, new_string), replace_all
        )
    diff = await asyncio.to_thread(unified, str(path), before, after)
    clip = Clip()
    clip.take(encode(diff))
    places = "1 place" if count == 1 else f"{count:,} places"
    return ToolOutcome(
        f"{path} changed in {places}:\n{clip.text()}",
        metadata={"path": str(path), "diff": clip.text(), "replacements": count},
    )


def _edit(
    workspace: Workspace, path: WorkspacePath, change: tuple[str, str], everywhere: bool
) -> tuple[str, str, int]:
    """Change the file; return its text before and after, and in how many places."""
    contents = workspace.read(path)
    as_text(contents.content[:8_192])  # refuses binary files
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
    encoded = encode(after)
    if len(encoded) > MAX_BYTES:
        raise ToolError(f"{path} would grow beyond {MAX_BYTES // 1024:,} KB")
    workspace.write(path, encoded, instead_of=contents)
    return before, after, count


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


def unified(name: str, before: str, after: str) -> str:
    """Return a unified diff. What is the same at both ends is never compared."""
    old, new = before.splitlines(), after.splitlines()
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    first = max(start - _CONTEXT, 0)
    old = old[first : len(old) - max(end - _CONTEXT, 0)]
    new = new[first : len(new) - max(end - _CONTEXT, 0)]
    if len(old) + len(new) > _MAX_DIFF_LINES:
        return f"[{len(old):,} lines became {len(new):,} lines]"
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=_CONTEXT, lineterm="")
    return "\n".join(_HUNK.sub(lambda hunk: _moved(hunk, first), line) for line in lines)


def _common(old: list[str], new: list[str]) -> int:
    """Return how many lines the two have in common at their beginning."""
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _moved(hunk: re.Match[str], by: int) -> str:
    old, old_length, new, new_length = hunk.groups()
    return f"@@ -{int(old) + by}{old_length} +{int(new) + by}{new_length} @@"
