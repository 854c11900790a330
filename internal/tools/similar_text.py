"""Places in a text that look the same as a wanted text, although their characters differ.

Models write straight quotes, plain blanks and composed accents for the characters that they read.
Runs of blanks of another length do not look the same: they are the indentation of programs.
"""

import re
import unicodedata
from bisect import bisect_left
from difflib import SequenceMatcher
from functools import lru_cache

from internal.normal_forms.names import fold_name

MAX_CHARS = 4_000_000
"""In a longer text no similar place is looked for: it would take seconds."""

_RUN = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]")
_TOKEN = re.compile(r"\w+|\s|.", re.DOTALL)


@lru_cache(maxsize=4_096)
def _look(sign: str) -> str:
    return unicodedata.normalize("NFD", fold_name(sign))


class _Folded:
    """A text as it looks. Its pieces begin at `starts`, and at `sources` in the original text."""

    def __init__(self, text: str) -> None:
        pieces: list[str] = []
        self.starts = [0]
        self.sources = [0]
        for run in _RUN.findall(text):
            piece = run if run.isascii() else _look(run)
            pieces.append(piece)
            self.starts.append(self.starts[-1] + len(piece))
            self.sources.append(self.sources[-1] + len(run))
        self.text = "".join(pieces)

    def source(self, at: int, *, is_end: bool) -> int | None:
        """Return the place in the original text, None within one of its characters.

        Invisible characters are before a beginning, and after an end.
        """
        piece = bisect_left(self.starts, at)
        if self.starts[piece] == at:
            if not is_end:
                while self.starts[piece + 1 : piece + 2] == [at]:
                    piece += 1
            return self.sources[piece]
        before = piece - 1
        length = self.starts[piece] - self.starts[before]
        if length != self.sources[piece] - self.sources[before]:
            return None
        return self.sources[before] + at - self.starts[before]


def find_similar(text: str, wanted: str) -> list[tuple[int, int]]:
    """Return the beginnings and ends of the places that look like the wanted text, in order."""
    if len(text) > MAX_CHARS:
        return []
    folded, look = _Folded(text), _Folded(wanted).text
    found: list[tuple[int, int]] = []
    at = folded.text.find(look) if look else -1
    while at >= 0:
        start = folded.source(at, is_end=False)
        end = folded.source(at + len(look), is_end=True)
        if start is not None and end is not None and start < end:
            found.append((start, end))
            at = folded.text.find(look, at + len(look))
        else:
            at = folded.text.find(look, at + 1)
    return found


def carry_over(found: str, old: str, new: str) -> str:
    """Return the new text with the characters of the found one wherever it equals the old one.

    `found` looks the same as `old`. So a change of one word does not change the quotes around it.
    """
    there, before, after = (_TOKEN.findall(text) for text in (found, old, new))
    if len(there) != len(before):
        return new
    parts: list[str] = []
    for kind, start, end, first, last in SequenceMatcher(None, before, after).get_opcodes():
        parts += there[start:end] if kind == "equal" else after[first:last]
    return "".join(parts)
