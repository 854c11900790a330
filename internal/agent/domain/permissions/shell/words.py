"""Words of a shell command and their values after quote removal, as far as they are known.

Each leaf of the parse tree is checked again against the lexical rules of the shell: a word that the
parser and the shell split differently could bypass a permission rule.
"""

import re
from typing import Literal, NamedTuple

import msgspec
from tree_sitter import Node

WordKind = Literal["plain", "glob", "open", "unknown"]

EXPANSIONS = frozenset(
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
# the pattern behind =~; a dollar sign that begins no expansion ends a line
_REGEX_TEXT = re.compile(r"(?:[^\s'\"`$\\&;<>]|\\[^\n]|\$(?=\)|$|\|))+")
_PLAIN = frozenset({"word", "number", "command_name"})
_PLAIN_TEXT = re.compile(r"[\w./:@%+,=-]+", re.ASCII)
_RAW_TEXT = re.compile(r"'[^']*'")
_QUOTED_TEXT = re.compile(r'(?:[^"\\`$]|\\[^\n])*')
_QUOTED_END = re.compile(_QUOTED_TEXT.pattern + r"\$?")  # "foo$" ends in a dollar sign
_QUOTED_ESCAPE = re.compile(r'\\([$`"\\])')
_BARE_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SIMPLE_EXPANSION = re.compile(r"\$\w+|\$\{\w+\}|\$\(.*\)|`.*`", re.DOTALL)
_GLOB = re.compile(r"[*?\[]|^~|[=:]~")
_UNKNOWN = "\0"  # marks an unknown value in a mask; a word never contains NUL
_QUOTED_UNKNOWN = "\1"


class Word(msgspec.Struct, frozen=True, gc=False):
    """One word. `text` is its value if `kind` is "plain", else the known part of it.

    plain: exactly `text`. glob: file names that start like `text` (never with `-`). open: one
    quoted word that starts with `text` (never with `-`) and continues with an unknown value.
    unknown: any value, also several words or an option.
    """

    text: str
    kind: WordKind
    source: str


class WordReading(NamedTuple):
    """A word, the expansions inside it, and why it is ambiguous ("" if it is not)."""

    word: Word
    expansions: tuple[Node, ...] = ()
    problem: str = ""


class _Piece(NamedTuple):
    text: str
    mask: str  # per character: itself if bare, `x` if quoted, a mark if unknown
    expansions: tuple[Node, ...] = ()
    is_consistent: bool = True


def encode_for_parser(text: str) -> bytes:
    """Return the text for the parser, with every UTF-8 byte as one character below 256.

    The grammar's lookup table has 256 entries and is read out of bounds for other characters, which
    can crash the process. 0x85 and 0xA0 would count as blanks and are replaced by two bytes that
    never occur in UTF-8.
    """
    return text.encode("utf-8", "replace").translate(_TO_PARSER).decode("latin-1").encode("utf-8")


def decode_from_parser(raw: bytes) -> str:
    """Return the original text of bytes from `encode_for_parser`; invalid UTF-8 becomes U+FFFD."""
    if raw.isascii():
        return raw.decode()
    signs = raw.decode("utf-8", "replace").encode("latin-1", "replace")
    return signs.translate(_FROM_PARSER).decode("utf-8", "replace")


_TO_PARSER = bytes.maketrans(b"\x85\xa0", b"\xf5\xf6")
_FROM_PARSER = bytes.maketrans(b"\xf5\xf6", b"\x85\xa0")


def node_source(node: Node) -> str:
    """Return the text of a node; invalid UTF-8 becomes U+FFFD."""
    return decode_from_parser(node.text or b"")


def parse_word(node: Node) -> WordReading:
    """Read a node in the position of a word. Never raises; doubts are reported as `problem`."""
    source = node_source(node)
    if _PLAIN_TEXT.fullmatch(source) and node.type in _PLAIN:
        return WordReading(Word(source, "plain", source))
    if node.type == "process_substitution":  # the shell puts a path in its place
        return WordReading(Word("/dev/fd/", "open", source), (node,))
    pieces = [_piece(child) for child in _pieces_of(node)]
    text = "".join(piece.text for piece in pieces)
    mask = "".join(piece.mask for piece in pieces)
    expansions = tuple(expansion for piece in pieces for expansion in piece.expansions)
    is_consistent = all(piece.is_consistent for piece in pieces) and not mask.startswith("#")
    problem = "" if is_consistent else f"the word {source[:40]!a} is ambiguous"
    return WordReading(Word(text, _kind(text, mask), source), expansions, problem)


def _pieces_of(node: Node) -> list[Node]:
    inner = node.children if node.type in {"concatenation", "command_name"} else [node]
    flat: list[Node] = []
    for child in inner:
        flat.extend(child.children if child.type == "concatenation" else [child])
    return flat


def _kind(text: str, mask: str) -> WordKind:
    braced = mask.partition("{")[2]
    if _UNKNOWN in mask or "," in braced or ".." in braced:
        return "unknown"
    globbed = bool(_GLOB.search(mask))
    if not globbed and _QUOTED_UNKNOWN not in mask:
        return "plain"
    if mask[0] in f"*?[{_QUOTED_UNKNOWN}" or text[0] == "-":
        return "unknown"  # it may expand to an option
    return "open" if _QUOTED_UNKNOWN in mask else "glob"


def _piece(node: Node) -> _Piece:
    source = node_source(node)
    if node.type == "regex" and _REGEX_TEXT.fullmatch(source):
        return _Piece(source, "x" * len(source))
    if node.type in _BARE:
        text = _BARE_ESCAPE.sub(r"\1", source)
        return _Piece(text, _BARE_ESCAPE.sub("x", source), (), bool(_BARE_TEXT.fullmatch(source)))
    if node.type == "raw_string":
        text = source[1:-1]
        return _Piece(text, "x" * len(text) or "", (), bool(_RAW_TEXT.fullmatch(source)))
    if node.type == "string":
        return _string(node)
    if node.type == "ansi_c_string":
        # a POSIX shell does not know $'…': there the quote of `\'` ends the word
        return _Piece(_ansi_c(source), _UNKNOWN, (), "\\'" not in source)
    return _Piece("", _UNKNOWN, (node,), node.type in EXPANSIONS)


def _string(node: Node) -> _Piece:
    raw = node.text or b""
    texts: list[str] = []
    masks: list[str] = []
    is_consistent, at = raw[:1] == b'"' == raw[-1:] and len(raw) > 1, 1
    expansions = tuple(child for child in node.children if child.type in EXPANSIONS)
    for expansion in expansions:
        start, end = expansion.start_byte - node.start_byte, expansion.end_byte - node.start_byte
        part = decode_from_parser(raw[at:start])
        is_consistent = is_consistent and bool(_QUOTED_TEXT.fullmatch(part))
        if expansion.type == "expansion" and b"'" in (expansion.text or b""):
            is_consistent = False  # inside double quotes they do not quote, but the parser says so
        value = _QUOTED_ESCAPE.sub(r"\1", part)
        simple = _SIMPLE_EXPANSION.fullmatch(node_source(expansion))
        texts.append(value)
        masks.append("x" * len(value) + (_QUOTED_UNKNOWN if simple else _UNKNOWN))
        at = end
    last = decode_from_parser(raw[at:-1])
    is_consistent = is_consistent and bool(_QUOTED_END.fullmatch(last))
    texts.append(_QUOTED_ESCAPE.sub(r"\1", last))
    masks.append("x" * len(texts[-1]))
    return _Piece("".join(texts), "".join(masks), expansions, is_consistent)


def _ansi_c(source: str) -> str:
    inner = _ESCAPE.sub(_known_escape, source[2:-1])
    try:
        return inner.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return inner


def _known_escape(escape: re.Match[str]) -> str:
    """Return an escape in Python syntax; one that the shell does not know is kept verbatim."""
    sign = escape[1]
    if sign[0] in "01234567":
        return f"\\x{int(sign, 8) & 0xFF:02x}"
    return escape[0] if sign in _SPELLED_ALIKE else f"\\{escape[0]}"


_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_SPELLED_ALIKE = frozenset("\\'\"abfnrtvxuU\n")
