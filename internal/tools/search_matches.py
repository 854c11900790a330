"""Output of a search engine: matching lines, each with the text around its match.

An engine prints `path NUL number:column:text` for each matching line, where the column of the first
match counts bytes from 1, and messages otherwise. A line may have megabytes: only the part of its
text around the match is kept.
"""

import codecs
import os
from collections import Counter
from collections.abc import Callable, Collection

from internal.agent.domain.errors import ToolError
from internal.agent.ports.sandbox import SandboxResult
from internal.agent.ports.tools import ToolOutcome
from internal.tools.filesystem import escape_name
from internal.tools.tool import MAX_RESULT_CHARS

MAX_LINE_CHARS = 400
"""Maximum shown part of a line."""
MAX_MATCHES = 200
"""Maximum number of shown lines."""

_BEFORE_CHARS = 100
_KEPT_BYTES = 4 * MAX_LINE_CHARS  # on each side of the beginning of the match
_MAX_PATH_BYTES = 65_536
_MAX_NUMBER_BYTES = 64
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_ERROR_EXIT_CODE = 2


class MatchedLine:
    """The text of a matching line while it arrives: the part around a column, and its length."""

    def __init__(self, column: int) -> None:
        self._start = max(column - 1 - _KEPT_BYTES, 0)
        self._end = column - 1 + _KEPT_BYTES
        self._match = column - 1 - self._start
        self._read = 0
        self._kept = bytearray()
        self._skipped = 0
        self._total = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.is_utf8 = True

    def write(self, piece: bytes) -> None:
        """Add a piece of the line."""
        self._check(piece)
        at, self._read = self._read, self._read + len(piece)
        self._total += _count_characters(piece)
        if at < self._start:
            self._skipped += _count_characters(piece[: self._start - at])
        if at < self._end:
            self._kept += piece[max(self._start - at, 0) : self._end - at]

    def end(self) -> None:
        """End the line; then it is known whether it is UTF-8."""
        self._check(b"", is_end=True)

    def _check(self, piece: bytes, *, is_end: bool = False) -> None:
        if self.is_utf8:
            try:
                self._decoder.decode(piece, is_end)
            except UnicodeDecodeError:
                self.is_utf8 = False

    def text(self) -> str:
        """Return the line; of a long one the part around the match, and where in it that is."""
        head = bytes(self._kept[: self._match])
        if self._start:  # it may begin within a character, which is counted as skipped
            head = head.lstrip(_CONTINUATION_BYTES)
        before, after = (
            part.decode("utf-8", "replace") for part in (head, self._kept[self._match :])
        )
        if self._total <= MAX_LINE_CHARS:
            return (before + after).rstrip("\r")
        match = self._skipped + len(before)
        first = match - _BEFORE_CHARS if match > MAX_LINE_CHARS - _BEFORE_CHARS else 0
        shown = (before + after)[first - self._skipped :][:MAX_LINE_CHARS]
        onward = "…" if first + len(shown) < self._total else ""
        if not first:
            return f"{shown}{onward}"
        return f"…{shown}{onward} [from character {first + 1:,} of {self._total:,} in this line on]"


def _count_characters(piece: bytes) -> int:
    return len(piece.translate(None, _CONTINUATION_BYTES))


class SearchMatches:
    """Collects the output of an engine: the first lines, and the number of all.

    Args:
        folder: the prefix of the path of each file.
        is_dropped: whether the lines of a file are left out, given its path in the folder.
    """

    def __init__(self, folder: str, is_dropped: Callable[[str], bool]) -> None:
        self._folder = folder
        self._is_dropped = is_dropped
        self._rest = b""
        self._path: bytes | None = None
        self._number = b""
        self._line: MatchedLine | None = None
        self.lines: list[tuple[bytes, str]] = []
        """The first lines as they are shown, each with its file."""
        self.totals: Counter[bytes] = Counter()
        """The number of matching lines of each file."""
        self.files: dict[bytes, bool] = {}
        """Of each file with a match, whether its lines are dropped."""
        self.undecoded: set[bytes] = set()
        """The files with a matching line that is not UTF-8."""

    def write(self, chunk: bytes) -> None:
        """Add a chunk of output."""
        rest = self._rest + chunk
        while rest:
            if self._line is not None:
                piece, end, rest = rest.partition(b"\n")
                self._line.write(piece)
                if end:
                    self._end_line(self._line)
            elif self._path is None:
                # a name may contain a line end
                path, end, after = rest.partition(b"\0")
                if not end:
                    break
                self._path, rest = path, after
            else:
                number, first, after = rest.partition(b":")
                column, second, after = after.partition(b":")
                if not (first and second):
                    break
                self._number, rest = number, after
                self._line = MatchedLine(int(column))
        is_bounded = self._path is None
        self._rest = rest[: _MAX_PATH_BYTES if is_bounded else _MAX_NUMBER_BYTES]

    def _end_line(self, line: MatchedLine) -> None:
        path, self._path, self._line = (self._path or b"").removeprefix(b"./"), None, None
        name = os.fsdecode(path)
        if path not in self.files:
            self.files[path] = self._is_dropped(name)
        if self.files[path]:
            return
        line.end()
        if not line.is_utf8:
            self.undecoded.add(path)
        self.totals[path] += 1
        if len(self.lines) < MAX_MATCHES:
            where = f"{self._folder}{escape_name(name)}:{self._number.decode()}"
            self.lines.append((path, f"{where}: {line.text()}"))

    def without_lines(self) -> "SearchMatches":
        """Return an empty collection for another search of the same files."""
        return SearchMatches(self._folder, self._is_dropped)

    def replace(self, files: Collection[bytes], found: "SearchMatches") -> None:
        """Replace the matches in some of the files by the matches of another search."""
        kept = [(path, line) for path, line in self.lines if path not in files]
        self.lines = [*kept, *found.lines][:MAX_MATCHES]
        for path in files:
            self.files.pop(path, None)
            self.totals.pop(path, None)
        self.files |= found.files
        self.totals += found.totals

    def has_failed(self, finished: SandboxResult) -> bool:
        """Return True if the engine did not understand the search; then it has said why."""
        return finished.exit_code == _ERROR_EXIT_CODE and not self.files

    def outcome(self, finished: SandboxResult, *, timeout_seconds: float) -> ToolOutcome:
        """Return the result.

        Raises:
            ToolError: the pattern is not valid.
        """
        if self.has_failed(finished):
            message = self._rest.decode("utf-8", "replace").strip().split("\n")[-1]
            raise ToolError(f"the search failed: {message or 'the pattern is not valid'}")
        kept = list(_fitting([line for _, line in self.lines]))
        total = self.totals.total()
        notes = []
        if len(kept) < total:
            notes.append(f"[{len(kept):,} of {total:,} lines are shown: narrow the search]")
        if finished.timed_out:
            notes.append(f"[the search was ended after {timeout_seconds:g} s: there may be more]")
        elif not total:
            notes.append("[nothing was found]")
        return ToolOutcome(
            "\n".join([*kept, *notes]),
            metadata={
                "matches": total,
                "files": sum(not is_dropped for is_dropped in self.files.values()),
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
