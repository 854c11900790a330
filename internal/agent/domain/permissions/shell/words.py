"""Words of a shell command: what a word is once the shell has removed its quotes, if that is known.

The parser's leaves are checked a second time here, against the shell's own lexical rules, because a
word that the parser and the shell cut differently is how a permission rule is fooled.
"""

import re
from typing import Literal, NamedTuple

import msgspec
from tree_sitter import Node

WordKind = Literal["plain", "glob", "open", "unknown"]

HOLES = frozenset(
    {
        "simple_expansion",
        "expansion",
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
        "brace_expression",
        "ansi_c_string",
    }
)
_BARE = frozenset(
    {"word", "number", "test_operator", "extglob_pattern", "regex", "variable_name"}
    | {"special_variable_name", "heredoc_start", "file_descriptor"}
)
_BARE_TEXT = re.compile(r"(?:[^\s'\"`$\\|&;()<>]|\\[^\n])+")
_RAW_TEXT = re.compile(r"'[^']*'")
_QUOTED_TEXT = re.compile(r'(?:[^"\\`$]|\\[^\n])*')
_QUOTED_END = re.compile(_QUOTED_TEXT.pattern + r"\$?")  # "foo$" ends in a dollar sign
_QUOTED_ESCAPE = re.compile(r'\\([$`"\\])')
_BARE_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SIMPLE_HOLE = re.compile(r"\$\w+|\$\{\w+\}|\$\(.*\)|`.*`", re.DOTALL)
_BRACES = re.compile(r"\{.*(?:,|\.\.)", re.DOTALL)
_GLOB = re.compile(r"[*?\[]|^~")
_HOLE = "\0"  # stands in a mask for a value nobody knows; NUL never reaches this point in a word
_QUOTED_HOLE = "\1"


class Word(msgspec.Struct, frozen=True):
    """One word. `text` is its value if `kind` is plain, else the part of it that is known.

    plain: exactly `text`. glob: file names that begin like `text` (never with `-`).
    open: one quoted word that begins with the known `text` (never with `-`) and goes on unknown.
    unknown: anything, also several words or an option.
    """

    text: str
    kind: WordKind
    source: str


class WordReading(NamedTuple):
    """A word, the nodes inside it that hold further commands, and why it may be misread ("")."""

    word: Word
    holes: tuple[Node, ...] = ()
    trouble: str = ""


class _Piece(NamedTuple):
    text: str
    mask: str  # one mark a character: itself when bare, `x` when quoted, a hole mark when unknown
    holes: tuple[Node, ...] = ()
    sound: bool = True


def for_parser(text: str) -> bytes:
    """Return a text as the parser may see it: every byte of UTF-8 is a sign of its own below 256.

    The grammar looks signs up in a table that ends at 255 and reads past it for higher ones, which
    may end the process. 0x85 and 0xA0 would count as blanks; two bytes that UTF-8 never has stand
    for them.
    """
    return text.encode("utf-8", "replace").translate(_SEEN).decode("latin-1").encode("utf-8")


def from_parser(raw: bytes) -> str:
    """Return what a piece of such bytes was in the text; what is no UTF-8 shows as U+FFFD."""
    signs = raw.decode("utf-8", "replace").encode("latin-1", "replace")
    return signs.translate(_MEANT).decode("utf-8", "replace")


_SEEN = bytes.maketrans(b"\x85\xa0", b"\xf5\xf6")
_MEANT = bytes.maketrans(b"\xf5\xf6", b"\x85\xa0")


def source_of(node: Node) -> str:
    """The text under a node; bytes that are no UTF-8 show as U+FFFD."""
    return from_parser(node.text or b"")


def read_word(node: Node) -> WordReading:
    """Read a node that stands where a word stands. Never raises; an odd node is trouble."""
    pieces = [_piece(child) for child in _pieces_of(node)]
    text = "".join(piece.text for piece in pieces)
    mask = "".join(piece.mask for piece in pieces)
    holes = tuple(hole for piece in pieces for hole in piece.holes)
    sound = all(piece.sound for piece in pieces) and not mask.startswith("#")
    source = source_of(node)
    trouble = "" if sound else f"the word {source[:40]!a} can be read in two ways"
    return WordReading(Word(text, _kind(text, mask), source), holes, trouble)


def _pieces_of(node: Node) -> list[Node]:
    inner = node.children if node.type in {"concatenation", "command_name"} else [node]
    flat: list[Node] = []
    for child in inner:
        flat.extend(child.children if child.type == "concatenation" else [child])
    return flat


def _kind(text: str, mask: str) -> WordKind:
    if _HOLE in mask or _BRACES.search(mask):
        return "unknown"
    globbed = bool(_GLOB.search(mask))
    if not globbed and _QUOTED_HOLE not in mask:
        return "plain"
    if mask[0] in f"*?[{_QUOTED_HOLE}" or text[0] == "-":
        return "unknown"  # it may turn out to be an option
    return "open" if _QUOTED_HOLE in mask else "glob"


def _piece(node: Node) -> _Piece:
    source = source_of(node)
    if node.type in _BARE:
        text = _BARE_ESCAPE.sub(r"\1", source)
        return _Piece(text, _BARE_ESCAPE.sub("x", source), (), bool(_BARE_TEXT.fullmatch(source)))
    if node.type == "raw_string":
        text = source[1:-1]
        return _Piece(text, "x" * len(text) or "", (), bool(_RAW_TEXT.fullmatch(source)))
    if node.type == "string":
        return _string(node)
    if node.type == "ansi_c_string":
        return _Piece(_ansi_c(source), _HOLE)
    return _Piece("", _HOLE, (node,), node.type in HOLES)


def _string(node: Node) -> _Piece:
    raw = node.text or b""
    text, mask, sound, place = "", "", raw[:1] == b'"' == raw[-1:] and len(raw) > 1, 1
    holes = tuple(child for child in node.children if child.type in HOLES)
    for hole in holes:
        start, end = hole.start_byte - node.start_byte, hole.end_byte - node.start_byte
        part = from_parser(raw[place:start])
        sound = sound and bool(_QUOTED_TEXT.fullmatch(part))
        value = _QUOTED_ESCAPE.sub(r"\1", part)
        simple = _SIMPLE_HOLE.fullmatch(source_of(hole))
        text, mask, place = text + value, mask + "x" * len(value), end
        mask += _QUOTED_HOLE if simple else _HOLE
    last = from_parser(raw[place:-1])
    sound = sound and bool(_QUOTED_END.fullmatch(last))
    value = _QUOTED_ESCAPE.sub(r"\1", last)
    return _Piece(text + value, mask + "x" * len(value), holes, sound)


def _ansi_c(source: str) -> str:
    inner = _ESCAPE.sub(_known_escape, source[2:-1])
    try:
        return inner.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return inner


def _known_escape(escape: re.Match[str]) -> str:
    """Return an escape as Python spells it; one that the shell does not know stays as it is."""
    sign = escape[1]
    if sign[0] in "01234567":
        return f"\\x{int(sign, 8) & 0xFF:02x}"
    return escape[0] if sign in _SPELLED_ALIKE else f"\\{escape[0]}"


_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_SPELLED_ALIKE = frozenset("\\'\"abfnrtvxuU\n")
