"""The tools that read, write, edit and list files."""

import asyncio
import heapq
import itertools
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

import msgspec
from msgspec import structs

from internal.agent.app.background_task import run_to_completion
from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.domain.text import format_size, truncate
from internal.agent.ports.instructions import FILE_NAMES
from internal.agent.ports.tools import ToolOutcome
from internal.normal_forms.names import fold_name, spell_name
from internal.text_encodings.conversion import (
    NotEncodable,
    decode,
    decode_exactly,
    decode_utf8,
    encode_exactly,
)
from internal.text_encodings.declarations import declared_codec
from internal.text_encodings.detection import detect, marked_codec, wide_codec
from internal.tools.diffs import unified_diff
from internal.tools.document_files import open_file, read_document, read_picture, read_text
from internal.tools.similar_text import carry_over, find_similar
from internal.tools.tool import MAX_RESULT_CHARS, OutputBuffer, ToolContext, tool
from internal.tools.workspace import MAX_BYTES, FileContents, PathNotFound, Workspace, WorkspacePath

_BINARY_PROBE = 8_192
_MAX_ENTRIES = 500


@tool(
    risk="read",
    targets=(PathTarget("path"),),
    title={"en": "Read a file", "zh": "读取文件"},
    idempotent=True,
)
async def read_file(
    context: ToolContext,
    path: Annotated[WorkspacePath, "A file inside the workspace, such as notes/plan.md."],
    offset: Annotated[
        int,
        msgspec.Meta(ge=1),
        "The first line to return, or the first character of a document, counted from 1. Results"
        " give the offset inside of a line that is too long.",
    ] = 1,
    limit: Annotated[int, msgspec.Meta(ge=1), "Return at most this many lines of a text."] = 2_000,
    *,
    source: Annotated[bool, "Return the source of an HTML file, not what it shows."] = False,
) -> ToolOutcome:
    """Read a file from the workspace: text, a document, the list of an archive, or a picture.

    Documents are PDF, Office files, mail, EPUB and HTML: their text is returned by page, slide or
    sheet. Returns at most 30,000 characters; when text is left it says from where to read on.
    """
    async with open_file(context.workspace, path) as descriptor:
        name = path.parts[-1] if path.parts else ""
        form = context.documents.form(descriptor, name)
        match form:
            case "picture":
                return await read_picture(context, path, descriptor)
            case "document" if not source:
                return await read_document(context, path, descriptor, offset)
            case _:
                is_text = form != "binary"
                text, remark = await _text(context, path, descriptor, is_text=is_text)
    outcome = _selected_lines(path, text, offset, limit)
    return structs.replace(outcome, text=f"{remark}\n{outcome.text}") if remark else outcome


async def _text(
    context: ToolContext, path: WorkspacePath, descriptor: int, *, is_text: bool
) -> tuple[str, str]:
    """Return the text of a file, and a line about its encoding unless that is UTF-8.

    A file that is not UTF-8 is decoded by the document reader.
    """
    content = (await asyncio.to_thread(context.workspace.read, path)).content
    has_nul = b"\0" in content
    if not (is_text and has_nul) and (text := decode_utf8(content)) is not None:
        check_text(content)
        return text.replace("\r\n", "\n"), ""
    document = await read_text(context, path, descriptor, len(content))
    return document.text, "" if document.encoding is None else document.encoding.remark


def _selected_lines(path: WorkspacePath, content: str, offset: int, limit: int) -> ToolOutcome:
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    total = len(lines)
    place = _Place(offset - 1, 0)
    if offset > max(total, 1):
        place = _place_in_long_line(path, lines, offset)
    wanted = lines[place.line : place.line + limit]
    if place.skipped:
        wanted[0] = wanted[0][place.skipped :]
    shown = list(_fitting(wanted))
    text = "\n".join(line[:MAX_RESULT_CHARS] for line in shown)
    following = place.line + len(shown) + 1
    notes = []
    if place.skipped:
        notes.append(
            f"[line {place.line + 1:,} of {path}, from character {place.skipped + 1:,} on]\n"
        )
    if shown and (cut := len(shown[-1]) - MAX_RESULT_CHARS) > 0:
        before = sum(map(len, lines[: place.line])) + place.line + place.skipped
        onward = f"offset={total + before + MAX_RESULT_CHARS} reads on in it"
        text += f"[… {cut:,} more characters in this line: {onward}]"
    if (left := total - following + 1) > 0:
        text += f"\n[{left:,} of {total:,} lines follow: offset={following} reads on]"
    if not lines:
        text = "[the file is empty]"
    return ToolOutcome(
        "".join((*notes, text)), metadata={"lines": len(shown), "total_lines": total}
    )


class _Place(NamedTuple):
    """A place in a text: a line, counted from 0, and how many of its characters are skipped."""

    line: int
    skipped: int


def _place_in_long_line(path: WorkspacePath, lines: list[str], offset: int) -> _Place:
    """Return the place that an offset beyond the last line stands for: a character of a long line.

    It is the number of the lines and of the characters before it, so that no line has this offset.

    Raises:
        ToolError: there is no such line, or it fits into a result.
    """
    before = offset - len(lines)
    for number, line in enumerate(lines):
        if len(line) > MAX_RESULT_CHARS and 0 <= before < len(line):
            return _Place(number, before)
        before -= len(line) + 1
    raise ToolError(f"{path} has {len(lines):,} lines: there is no line {offset:,}")


def _fitting(lines: list[str]) -> Iterator[str]:
    """Yield the first lines that fit; the first one in any case."""
    remaining = MAX_RESULT_CHARS
    for number, line in enumerate(lines):
        if len(line) > remaining and number:
            return
        yield line
        remaining -= len(line) + 1
        if remaining <= 0:
            return


def check_text(content: bytes) -> None:
    """Check that a file is text.

    Raises:
        ToolError: the file is binary.
    """
    head = content[:_BINARY_PROBE]
    if b"\0" in head and not (marked_codec(head) or wide_codec(head)):
        raise ToolError(f"this is a binary file of {format_size(len(content))}, not text")


async def _preview_write(context: ToolContext, path: WorkspacePath, content: str) -> str:
    """Return the diff that the call would make now.

    Raises:
        ToolError: it would change nothing.
    """
    encode_text(content)

    def diff() -> str:
        try:
            found = context.workspace.find(path)
            before = _current_text(context.workspace, found)
        except ToolError as error:  # it can be replaced all the same
            return f"[no preview: {error}]"
        if before == content:
            raise ToolError(f"{found} has exactly this content already: nothing to write")
        if _instructs(found):  # a yes is to the whole text, see `_remember_agreement`
            before = ""
        return unified_diff(escape_name(str(found)), before, content) or "[a new empty file]"

    return await asyncio.to_thread(diff)


def _current_text(workspace: Workspace, path: WorkspacePath) -> str | None:
    """Return the text of a file, None if it does not exist.

    Raises:
        ToolError: the file cannot be read or is binary.
    """
    try:
        content = workspace.read(path).content
    except PathNotFound:
        return None
    check_text(content)
    return decode(content)[0]


@tool(
    risk="write",
    targets=(PathTarget("path"),),
    title={"en": "Write a file", "zh": "写入文件"},
    preview=_preview_write,
)
async def write_file(
    context: ToolContext,
    path: Annotated[WorkspacePath, "A file inside the workspace; missing folders are made."],
    content: Annotated[str, "The whole text of the file."],
) -> ToolOutcome:
    """Create a text file, or replace it as a whole. To change a part of a file use edit_file."""
    encoded = encode_text(content)
    note = ""
    if len(encoded) > MAX_BYTES:
        raise ToolError(
            f"the content has {format_size(len(encoded))}, more than {format_size(MAX_BYTES)}"
        )
    async with context.locks.hold(context.workspace, path) as path:  # noqa: PLR1704 - as it exists
        await _begin_change(context, path)
        kept = await asyncio.to_thread(_keep_encoding, context.workspace, path, content)
        if kept is not None:
            encoded, note = kept
        created = await run_to_completion(context.workspace.write, path, encoded)
        if context.call.is_agreed and _instructs(path):
            await asyncio.to_thread(_remember_agreement, context, path, encoded)
    verb = "created" if created else "overwritten"
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    return ToolOutcome(
        f"{path} {verb}: {format_size(len(encoded))}, {lines:,} lines{note}",
        metadata={"path": str(path), "created": created, "size": len(encoded)},
    )


def _keep_encoding(
    workspace: Workspace, path: WorkspacePath, text: str
) -> tuple[bytes, str] | None:
    """Return a text in the encoding of the file that it replaces, and a remark about it.

    None if that is UTF-8, or if the text declares an encoding itself.
    """
    encoded = encode_text(text)
    if declared_codec(encoded) is not None:
        return None
    try:
        before = workspace.read(path).content
        check_text(before)
    except ToolError:  # nothing is there, or nothing that has an encoding
        return None
    encoding = detect(before)
    if encoding.codec == "utf-8":
        return None
    remark = "" if encoding.is_utf8 else f", in {encoding.name} as it was"
    try:
        return encode_exactly(text, encoding, before), remark
    except NotEncodable as error:
        return encoded, f", in UTF-8 now: {error}, which it was in"


def _instructs(path: WorkspacePath) -> bool:
    return bool(path.parts) and path.parts[-1] in FILE_NAMES


async def _begin_change(context: ToolContext, path: WorkspacePath) -> None:
    """Keep the instructions of the folder before the first change that nobody agrees to."""
    asked = context.call.is_agreed or context.workspace.belongs_to_session
    if _instructs(path) and not asked:
        watched = context.background.watched
        await asyncio.to_thread(watched.begin_changes, context.workspace.root)


def _remember_agreement(context: ToolContext, path: WorkspacePath, content: bytes) -> None:
    """Let agents follow a text that a person has seen as a whole and agreed to."""
    file = os.path.realpath("/".join((context.workspace.root_of(path), *path.parts)))
    context.background.watched.trust.trust(file, content)


def encode_text(text: str) -> bytes:
    """Return the text as UTF-8.

    Raises:
        ToolError: it contains a lone surrogate.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        where = error.start
        raise ToolError(f"the text is not valid: half a character at position {where:,}") from error


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
        workspace.open(path, is_folder=True) as folder,
        os.scandir(folder) as entries,
    ):
        first = heapq.nsmallest(_MAX_ENTRIES, counted(entries), key=lambda entry: entry.name)
        looks = Counter(fold_name(entry.name) for entry in first)
        return [
            _line(folder, entry, is_alone=looks[fold_name(entry.name)] == 1) for entry in first
        ], total


def _line(folder: int, entry: os.DirEntry[str], *, is_alone: bool) -> str:
    """Return an entry; one that looks like another one of the folder is spelled out."""
    name = escape_name(entry.name) if is_alone else spell_name(entry.name)
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
    """Return a file name on one line, with characters that are not printable escaped."""
    if name.isprintable():
        return name
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in name
    )


_MAX_LINE_NUMBERS = 10
_MAX_QUOTED_CHARS = 2_000


async def _preview_edit(
    context: ToolContext,
    path: WorkspacePath,
    *,
    old_string: str,
    new_string: str,
    replace_all: bool = False,
) -> str:
    """Return the diff that the call would make now."""

    def diff() -> str:
        found = context.workspace.find(path)
        edit = _plan_edit(context.workspace, found, (old_string, new_string), replace_all)
        return unified_diff(escape_name(str(found)), edit.before, edit.after)

    return await asyncio.to_thread(diff)


@tool(
    risk="write",
    targets=(PathTarget("path"),),
    title={"en": "Edit a file", "zh": "修改文件"},
    preview=_preview_edit,
)
async def edit_file(
    context: ToolContext,
    path: Annotated[WorkspacePath, "An existing text file inside the workspace."],
    *,
    old_string: Annotated[str, msgspec.Meta(min_length=1), "The exact text to replace."],
    new_string: Annotated[str, "The text that takes its place."],
    replace_all: Annotated[bool, "Replace every occurrence, not just the only one."] = False,
) -> ToolOutcome:
    """Replace an exact piece of text in a file and return the change as a diff.

    The text must occur exactly once, blanks and line breaks included, unless replace_all is set.
    If it does not occur, a text that differs in the form of its quotes and blanks is replaced.
    """
    async with context.locks.hold(context.workspace, path) as path:  # noqa: PLR1704 - as it exists
        await _begin_change(context, path)
        edit = await run_to_completion(
            _edit, context.workspace, path, (old_string, new_string), replace_all
        )
    diff = await asyncio.to_thread(unified_diff, escape_name(str(path)), edit.before, edit.after)
    output = OutputBuffer()
    output.add(diff)
    places = "1 place" if edit.replacements == 1 else f"{edit.replacements:,} places"
    note = ""
    if edit.found:
        shown = truncate(msgspec.json.encode(edit.found).decode(), _MAX_QUOTED_CHARS)
        note = f"\n[old_string was not there; this looks the same and was replaced: {shown}]"
    return ToolOutcome(
        f"{path} changed in {places}:\n{output.text()}{note}",
        metadata={"path": str(path), "diff": output.text(), "replacements": edit.replacements},
    )


class _Edit(NamedTuple):
    """A change to a file: its text before and after, and the number of replacements.

    `found` is the text that was replaced if it only resembles the wanted text, else "".
    """

    original: FileContents
    before: str
    after: str
    replacements: int
    encoded: bytes
    found: str


def _edit(
    workspace: Workspace, path: WorkspacePath, change: tuple[str, str], everywhere: bool
) -> _Edit:
    """Edit the file."""
    edit = _plan_edit(workspace, path, change, everywhere)
    workspace.write(path, edit.encoded, expected=edit.original)
    return edit


def _plan_edit(
    workspace: Workspace, path: WorkspacePath, change: tuple[str, str], everywhere: bool
) -> _Edit:
    """Return the edit without making it."""
    contents = workspace.read(path)
    check_text(contents.content)
    decoded = decode_exactly(contents.content)
    if decoded is None:
        raise ToolError(f"{path} is damaged text: an edit would change more than what it replaces")
    before, encoding = decoded
    after, count, found = _replace(path, before, change, everywhere=everywhere)
    encode_text(change[1])
    try:
        encoded = encode_exactly(after, encoding, contents.content)
    except NotEncodable as error:
        raise ToolError(f"{path} cannot hold the text: {error}, which it is in") from error
    if len(encoded) > MAX_BYTES:
        raise ToolError(f"{path} would grow beyond {MAX_BYTES // 1024:,} KB")
    return _Edit(contents, _shown(before), _shown(after), count, encoded, _shown(found))


def _replace(
    path: WorkspacePath, before: str, change: tuple[str, str], *, everywhere: bool
) -> tuple[str, int, str]:
    """Return a text after a change, the number of places, and `found` of `_Edit`.

    Raises:
        ToolError: the text is not there, is there several times, or would not change.
    """
    old, new = change
    if "\r\n" in before and "\r" not in old:  # read_file returns such files with LF
        old, new = old.replace("\n", "\r\n"), re.sub("\r?\n", "\r\n", new)
    if old == new:
        raise ToolError("old_string and new_string are the same: nothing would change")
    count, after, found = before.count(old), before.replace(old, new), ""
    starts = _occurrences(before, old)
    if not count:
        similar = find_similar(before, old)
        if not similar:
            raise ToolError(f"old_string is not in {path}{_hint(_shown(before), old)}")
        count, found = len(similar), before[slice(*similar[0])]
        starts, after = (
            (start for start, _ in similar),
            _replace_similar(before, similar, (old, new)),
        )
    if count > 1 and not everywhere:
        lines = _line_numbers(before, starts)
        where = f"occurs {count:,} times in {path}, at lines {lines}"
        if found:
            where = f"is not in {path}, and {count:,} texts look the same, at lines {lines}"
        raise ToolError(
            f"old_string {where}: add lines around it until it is unique, or set replace_all"
        )
    if after == before:
        raise ToolError("old_string and new_string look the same: nothing would change")
    return after, count, found


def _shown(text: str) -> str:
    """Return a text in which bytes that are not valid in its encoding are U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _replace_similar(text: str, places: list[tuple[int, int]], change: tuple[str, str]) -> str:
    """Return a text with a change at places that resemble the text to be replaced."""
    parts: list[str] = []
    at = 0
    for start, end in places:
        parts += text[at:start], carry_over(text[start:end], *change)
        at = end
    return "".join((*parts, text[at:]))


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + len(wanted))


def _line_numbers(text: str, starts: Iterable[int]) -> str:
    """Return the line numbers of the first places."""
    first = itertools.islice(starts, _MAX_LINE_NUMBERS + 1)
    numbers = [str(text.count("\n", 0, start) + 1) for start in first]
    shown = ", ".join(numbers[:_MAX_LINE_NUMBERS])
    return f"{shown} …" if len(numbers) > _MAX_LINE_NUMBERS else shown


def _hint(text: str, wanted: str) -> str:
    """Return where the text occurs with different whitespace."""
    sought = [" ".join(line.split()) for line in wanted.strip().splitlines()]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if not sought or not sought[0]:
        return ""
    for number, line in enumerate(lines):
        if line == sought[0] and lines[number : number + len(sought)] == sought:
            there = "\n".join(text.splitlines()[number : number + len(sought)])
            shown = truncate(msgspec.json.encode(there).decode(), _MAX_QUOTED_CHARS)
            return f": line {number + 1} differs from it in blanks only; copy it exactly: {shown}"
    starts = [str(number) for number, line in enumerate(lines, start=1) if line == sought[0]]
    if not starts:
        return ": read the file again and copy the text exactly"
    return f": only its first line is, at line {', '.join(starts[:_MAX_LINE_NUMBERS])}"
