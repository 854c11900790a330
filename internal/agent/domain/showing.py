r"""Showing: text as a person can judge it, so that nothing in it hides, moves or only seems alike.

What is invisible, blank, or moves other text stands as an escape such as `\u202e`. A backslash
that would read like one is an escape itself, so an escape always means the character it names.
"""

import re
import unicodedata
from itertools import groupby

_ESCAPE = r"\\(?=u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_TRICKS = re.compile(rf"{_ESCAPE}|[ \t]+|\n{{9,}}|[^ -~\n\t\u4e00-\u9fff]")
_FOREIGN = re.compile(r"[^\x00-\x7f\u4e00-\u9fff]+")  # nothing else has two spellings
_WIDEST_GAP = 80  # blanks in a row; more of them push what follows out of sight
_MOST_MARKS = 4  # on one letter; more of them cover the lines above and below
_UNSEEN = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC),
            *(0x180B, 0x180C, 0x180D, 0x180F, 0x16FE4, 0x1D159),
            *range(0xFE00, 0xFE10),  # variation selectors
            *range(0xE0100, 0xE01F0),
        ),
    )
)
"""Letters, signs and marks by class that are drawn as nothing (Default_Ignorable_Code_Point)."""


def hidden(char: str) -> bool:
    """Whether a character other than space, tab and line feed cannot be seen, or moves others.

    That is: controls, format and bidi signs, blanks of all widths, halves of characters, and
    whatever Unicode gives no meaning or draws as nothing.
    """
    return unicodedata.category(char)[0] in "CZ" or char in _UNSEEN


def escaped(text: str) -> str:
    r"""Return a text as it may be shown to whoever must judge it. It keeps its lines and tabs.

    Two different texts never show alike: no two give the same result, and no result is a canonical
    equivalent of another (Unicode NFC), so that `e` with an accent put on it is not taken for `é`.
    Blanks at the end of a line, and gaps too wide to see across, are counted: `\u0020{3}`.
    """
    return _distinct(_TRICKS.sub(_shown, text))


def _shown(found: re.Match[str]) -> str:
    part = found[0]
    if part[0] in " \t":
        ends = found.end() == len(found.string) or found.string[found.end()] == "\n"
        if ends and len(part) == 1:
            return _escape(part)
        return _counted(part) if ends or len(part) > _WIDEST_GAP else part
    if part[0] == "\n":
        return _counted(part)
    return _escape(part) if part == "\\" or hidden(part) else part


def _counted(blanks: str) -> str:
    runs = ((blank, len(list(run))) for blank, run in groupby(blanks))
    return "".join(f"{_escape(blank)}{{{count}}}" for blank, count in runs)


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004  # \u has four digits


def _distinct(text: str) -> str:
    """Escape what another spelling of the text would show as, and marks piled on one letter."""
    return _FOREIGN.sub(_spelled_out, text)


def _spelled_out(found: re.Match[str]) -> str:
    shown: list[str] = []
    letter = found.string[
        max(found.start() - 1, 0) : found.start()
    ]  # the last letter with its marks
    for char in found[0]:
        is_mark = unicodedata.category(char)[0] == "M"
        if is_mark and len(letter) > _MOST_MARKS:
            shown.append(_escape(char))
        elif unicodedata.is_normalized("NFC", letter + char):
            letter = letter + char if is_mark else char
            shown.append(char)
        else:
            shown.append(_escape(char))
            letter = shown[-1][-1]
    return "".join(shown)
