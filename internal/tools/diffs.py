"""Diffs: what a change to a text does to its lines, exactly."""

import difflib
import itertools
import re

import msgspec

from internal.agent.domain.text import escape_invisible

MAX_PREVIEW_BYTES = 12_000
"""A preview takes so much as JSON, also when all in it has to be escaped."""

_MOST_COMPARED = 4_000_000  # pairs of lines: difflib takes seconds beyond
_CONTEXT = 3
_LONGEST_LINE = 1_000
_NOTE_BYTES = 40
_HUNK = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


def unified_diff(name: str, before: str | None, after: str) -> str:
    """Return a unified diff, "" when nothing changed; `before` None is a file that is new.

    What is the same at both ends is never compared. Only line feeds end a line, so that nothing
    else can pass for two lines; where all lines end in CR LF before and after, no CR is shown.
    """
    old, new = _lines(before or "", after), _lines(after, before or "")
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    first = max(start - _CONTEXT, 0)
    old = old[first : len(old) - max(end - _CONTEXT, 0)]
    new = new[first : len(new) - max(end - _CONTEXT, 0)]
    if len(old) * len(new) > _MOST_COMPARED:
        return f"[{len(old):,} lines became {len(new):,} lines]"
    origin = "/dev/null" if before is None else f"a/{name}"
    lines = difflib.unified_diff(old, new, origin, f"b/{name}", n=_CONTEXT, lineterm="")
    return "\n".join(_HUNK.sub(lambda hunk: _moved(hunk, first), line) for line in lines)


def truncate_diff(diff: str) -> str:
    """Return the beginning of a diff and how many lines more there are, in `MAX_PREVIEW_BYTES`.

    A line of context that is empty is an empty line, not a blank.
    """
    lines = diff.split("\n")
    room = MAX_PREVIEW_BYTES - _NOTE_BYTES
    kept: list[str] = []
    for line in map(_cut, lines):
        room -= (
            len(msgspec.json.encode(escape_invisible(f"{line}\n"))) - 2
        )  # without the quotes around it
        if room < 0:
            return "\n".join((*kept, f"… {len(lines) - len(kept):,} more lines"))
        kept.append(line)
    return "\n".join(kept)


def _lines(text: str, other: str) -> list[str]:
    """Return the lines; a line end that both texts have throughout is not shown."""
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


def _common(old: list[str], new: list[str]) -> int:
    """Return how many lines the two have in common at their beginning."""
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _moved(hunk: re.Match[str], by: int) -> str:
    old, old_length, new, new_length = hunk.groups()
    return f"@@ -{int(old) + by}{old_length} +{int(new) + by}{new_length} @@"


def _cut(line: str) -> str:
    if line == " ":
        return ""
    missing = len(line) - _LONGEST_LINE
    return line if missing <= 0 else f"{line[:_LONGEST_LINE]}… {missing:,} more characters"
