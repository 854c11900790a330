"""Unified diffs that preview a change to a file."""

import difflib
import itertools
import re

import msgspec

from internal.agent.domain.text import escape_invisible

MAX_PREVIEW_BYTES = 12_000
"""The largest preview as JSON, escapes included."""

_MAX_COMPARED = 4_000_000  # pairs of lines; beyond that difflib takes seconds
_CONTEXT = 3
_MAX_LINE_CHARS = 1_000
_NOTE_BYTES = 40
_HUNK = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


def unified_diff(name: str, before: str | None, after: str) -> str:
    """Return a unified diff, "" if nothing changed. `before` is None if the file is new.

    The common head and tail are not compared. Only line feeds separate lines, so that no other
    character can simulate a line break. If all lines end in CR LF before and after, CR is omitted.
    """
    old, new = _lines(before or "", after), _lines(after, before or "")
    start = _common_prefix(old, new)
    end = _common_prefix(old[start:][::-1], new[start:][::-1])
    first = max(start - _CONTEXT, 0)
    old = old[first : len(old) - max(end - _CONTEXT, 0)]
    new = new[first : len(new) - max(end - _CONTEXT, 0)]
    if len(old) * len(new) > _MAX_COMPARED:
        return f"[{len(old):,} lines became {len(new):,} lines]"
    origin = "/dev/null" if before is None else f"a/{name}"
    lines = difflib.unified_diff(old, new, origin, f"b/{name}", n=_CONTEXT, lineterm="")
    return "\n".join(_HUNK.sub(lambda hunk: _shift_hunk(hunk, first), line) for line in lines)


def truncate_diff(diff: str) -> str:
    """Return the beginning of a diff and the number of omitted lines, in `MAX_PREVIEW_BYTES`.

    An empty context line has no leading blank.
    """
    lines = diff.split("\n")
    remaining = MAX_PREVIEW_BYTES - _NOTE_BYTES
    kept: list[str] = []
    for line in map(_truncate_line, lines):
        remaining -= (
            len(msgspec.json.encode(escape_invisible(f"{line}\n"))) - 2
        )  # without the quotes around it
        if remaining < 0:
            return "\n".join((*kept, f"… {len(lines) - len(kept):,} more lines"))
        kept.append(line)
    return "\n".join(kept)


def _lines(text: str, other: str) -> list[str]:
    """Return the lines, without CR if both texts use CR LF throughout."""
    if _all_crlf(text) and _all_crlf(other):
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _all_crlf(text: str) -> bool:
    return 0 < text.count("\n") == text.count("\r\n")


def _common_prefix(old: list[str], new: list[str]) -> int:
    """Return the number of equal lines at the beginning."""
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _shift_hunk(hunk: re.Match[str], by: int) -> str:
    old, old_length, new, new_length = hunk.groups()
    return f"@@ -{int(old) + by}{old_length} +{int(new) + by}{new_length} @@"


def _truncate_line(line: str) -> str:
    if line == " ":
        return ""
    missing = len(line) - _MAX_LINE_CHARS
    return line if missing <= 0 else f"{line[:_MAX_LINE_CHARS]}… {missing:,} more characters"
