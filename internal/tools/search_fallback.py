"""Program that searches files where ripgrep is missing, with the same output.

It runs as a child process: a regular expression can keep Python busy forever, and only a process
can be stopped. Matching lines are printed as `path NUL number:column:text`, where the column of the
first match counts bytes from 1. The exit code is 0 with matches, 1 without, 2 with a message if the
pattern is not valid.

The options are read from standard input: there may be many files to search.

    python -m internal.tools.search_fallback < OPTIONS-AS-JSON        (in the folder to search)
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import NotRequired, TypedDict

from internal.text_encodings.conversion import decode
from internal.text_encodings.detection import marked_codec, wide_codec

SKIPPED_FOLDERS = (".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".mypy_cache")
"""Folders that are skipped unless the search starts in them."""
MAX_FILE_BYTES = 10 * 1024 * 1024
_BINARY_PROBE = 8_192
_MAX_DEPTH = 200


class SearchOptions(TypedDict):
    """A search in the files that match one of `globs`, in all without one.

    `file` restricts it to one file of the folder, `files` to the named files below it.
    """

    pattern: str
    literal: bool
    ignore_case: bool
    globs: list[str]
    file: str
    files: NotRequired[list[str]]


def glob_to_regex(glob: str) -> str:
    """Return the regular expression of a glob in ripgrep's syntax.

    A glob without a slash matches the name, one with a slash the path below the folder. `**`
    crosses folders, `*` and `?` do not, `{a,b}` matches either, and a backslash makes the next
    character literal.
    """
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}
    pieces = re.findall(r"\*\*/|\*\*|\[!?\]?[^\]/]*\]|\\.|.", glob.removeprefix("/"), re.DOTALL)
    depth, pattern = 0, ""
    for piece in pieces:
        depth += {"{": 1, "}": -1}.get(piece, 0)
        if piece in parts:
            pattern += parts[piece]
        elif piece == "," and depth:
            pattern += "|"
        elif piece[0] == "\\" and len(piece) > 1:
            pattern += re.escape(piece[1])
        elif len(piece) > 1:
            body = re.sub(r"[\[\\&|~]", r"\\\g<0>", piece[1:])
            pattern += "[" + body.replace("!", "^", 1 if body[0] == "!" else 0)
        else:
            pattern += re.escape(piece)
    prefix = "" if "/" in glob else "(?:.*/)?"
    return f"{prefix}{pattern}"


def iter_files(
    folder: int, only: str, prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, int]]:
    """Yield the path and descriptor of every regular file below an open folder, in order."""
    with os.scandir(folder) as entries:
        here = sorted(entries, key=lambda entry: entry.name)
    for entry in here:
        if only and entry.name != only:
            continue
        inner = entry.is_dir(follow_symlinks=False)
        if inner and (only or entry.name in SKIPPED_FOLDERS or depth >= _MAX_DEPTH):
            continue
        flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_DIRECTORY if inner else 0)
        try:
            opened = os.open(entry.name, flags, dir_fd=folder)
        except OSError:  # unreadable or gone
            continue
        try:
            if inner:
                yield from iter_files(opened, "", f"{prefix}{entry.name}/", depth + 1)
            else:
                yield f"{prefix}{entry.name}", opened
        finally:
            os.close(opened)


def matching_lines(descriptor: int, wanted: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    """Yield number, column and text of the matching lines of an open file, none if it is binary."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
        return
    with open(descriptor, "rb", closefd=False) as file:
        content = file.read(MAX_FILE_BYTES)
    head = content[:_BINARY_PROBE]
    if b"\0" in head and not (marked_codec(head) or wide_codec(head)):
        return
    for number, line in enumerate(decode(content)[0].split("\n"), start=1):
        if match := wanted.search(line):
            before = len(line[: match.start()].encode())
            yield number, before + 1, line


def search(folder: int, options: SearchOptions) -> Iterator[str]:
    """Yield the output lines.

    Raises:
        re.error: the pattern or the glob is not valid.
    """
    pattern = re.escape(options["pattern"]) if options["literal"] else options["pattern"]
    wanted = re.compile(pattern, re.IGNORECASE if options["ignore_case"] else 0)
    globs = [re.compile(glob_to_regex(glob), re.DOTALL) for glob in options["globs"] or ["**"]]
    only = None if "files" not in options else frozenset(options["files"])
    for path, descriptor in iter_files(folder, options["file"]):
        if only is not None and path not in only:
            continue
        if not any(glob.fullmatch(path) for glob in globs):
            continue
        for number, column, line in matching_lines(descriptor, wanted):
            yield f"{path}\0{number}:{column}:{line}"


def main() -> int:
    """Search the current folder and print the matches; return the exit code."""
    options: SearchOptions = json.load(sys.stdin.buffer)
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    code = 1
    try:
        for line in search(folder, options):
            sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")
            sys.stdout.buffer.flush()  # matches count even if the search times out
            code = 0
    except re.error as error:
        sys.stdout.write(f"{error}\n")
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
