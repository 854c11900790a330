"""Names of files that look the same, although their characters differ.

macOS decomposes accents and puts narrow blanks into the names of screenshots, input methods write
full-width signs, and models write straight quotes and plain blanks for the characters that they
read.
"""

import unicodedata
from collections.abc import Iterable

_FOLDED = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011", "-"),
    }
)
_SAME_SIGN = ("<wide>", "<narrow>", "<noBreak>")
_VARIATION_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))


def fold_name(name: str) -> str:
    """Return the form that is common to all names that look the same; also for a path or a glob.

    Letters keep their case, and signs that merely resemble others, such as circled digits or
    letters of other scripts, are kept.
    """
    if name.isascii():
        return name
    signs = "".join(map(_fold, unicodedata.normalize("NFC", name)))
    return unicodedata.normalize("NFC", signs).translate(_FOLDED)


def _fold(sign: str) -> str:
    if sign.isascii():
        return sign
    category = unicodedata.category(sign)
    if category == "Zs":
        return " "
    if category == "Cf" or sign in _VARIATION_SELECTORS:
        return ""
    kind, _, signs = unicodedata.decomposition(sign).partition(" ")
    return "".join(chr(int(each, 16)) for each in signs.split()) if kind in _SAME_SIGN else sign


def names_like(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that look like the given one, in order."""
    wanted = fold_name(name)
    return sorted(each for each in names if fold_name(each) == wanted)


def spell_name(name: str) -> str:
    """Return a name with every sign escaped that is not ASCII, so that no other looks the same."""
    return name.encode("unicode_escape").decode("ascii") if not name.isascii() else name
