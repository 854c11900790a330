"""A command text without here-documents and continued lines, for the parser.

The grammar of tree-sitter-bash misreads here-documents in many positions. A shell finds them by
simple rules on lines, so they are found here and taken out; here-documents with substitutions are
returned as quoted words. `"$(cat <<'E' …)"`, the way to write a text of several lines as one word,
becomes that text.

Unknown syntax ends the attempt: the text is then parsed unchanged, and the checks of the parser
decide. This reader never removes anything that a shell could read as a command.
"""

import re
from typing import NamedTuple

_BLANKS = " \t"
_BORDERS = " \t\n;&|<>()"
_ARITHMETIC = re.compile(r"\$\(\((?:[\w\s+*/%<>=!&|^~?:,.-]|\$\w++|\$\{\w++\})*+\)\)")
_PARAMETER = re.compile(r"\$\{(?:[^{}\"'`\\$()\n]|\$\w++)*+\}")
_BACKQUOTED = re.compile(r"`[^`\\\"'#<$\n]*`")
_PLAIN_DELIMITER = re.compile(r"[^\s;&|<>()\"'`\\$]+")
_QUOTED_DELIMITER = re.compile(r"'([^'\n]*)'|\"([^\"\\$`\n]*)\"|\\([^\n])")
_LITERAL_WORD = re.compile(r"\$\(cat[ \t]+<<(-?)[ \t]*(?:'(\w+)'|\"(\w+)\"|\\(\w+))[ \t]*\n")
_SUBSCRIPT_OR_PATTERN = re.compile(r"\[(?:[^\s<>()|&;\"'`\\$#\]]|\$\w++)*+\]")
_TEST = re.compile(r"\[\[?(?=[ \t])")
_BEFORE_OPERATOR = re.compile(
    r"(?:^|[\s;&|()'\"])(?!\d+$)[\w./-]*$"
)  # not a number of a descriptor
_MAX_WORD_CHARS = 64
# could form one operator with a sign on the next line
_JOINABLE = "<$(\\#`"
_END_OF_SUBSTITUTION = re.compile(r"[ \t\n]*\)")
_UNKNOWN_IN_SUBSTITUTION = re.compile(r"\bcase\b|\besac\b|\[\[|\(\(")
_MAX_DEPTH = 20


class _Unknown(Exception):
    """Something that this reader does not know."""


class _Document(NamedTuple):
    """A here-document whose lines follow."""

    delimiter: str
    strips_tabs: bool
    is_literal: bool


class PlainLines(NamedTuple):
    """A text without here-documents and continued lines.

    `documents` are the quoted words that have the substitutions of its here-documents. `runs_cat`:
    a text was written as `"$(cat <<'E' …)"`.
    """

    text: str
    documents: tuple[str, ...] = ()
    runs_cat: bool = False


def plain_lines(text: str) -> PlainLines | None:
    """Return the text without here-documents and continued lines, None if that is not possible."""
    if "<<" not in text and "\\\n" not in text:
        return PlainLines(text)
    reader = _Reader(text)
    try:
        reader.read_commands(is_inner=False)
    except _Unknown:
        return None
    return PlainLines("".join(reader.result), tuple(reader.documents), reader.runs_cat)


class _Reader:
    def __init__(self, text: str, depth: int = 0) -> None:
        self.result: list[str] = []
        self.documents: list[str] = []
        self.runs_cat = False
        self._text = text
        self._at = 0
        self._depth = depth
        self._pending: list[_Document] = []
        # for each open parenthesis, whether it begins an array
        self._arrays: list[bool] = []

    def read_commands(self, *, is_inner: bool) -> None:
        """Read commands up to the end of the text, with `is_inner` up to the closing parenthesis.

        Raises:
            _Unknown: something is not known to this reader.
        """
        text, starts_word = self._text, True
        outer, self._arrays = self._arrays, []
        while self._at < len(text):
            sign = text[self._at]
            if sign == ")" and is_inner and not self._arrays:
                break
            if sign == "(":
                self._arrays.append(text[self._at - 1 : self._at] == "=")
            elif sign == ")":
                self._arrays = self._arrays[:-1]
            starts_word = self._read_sign(sign, starts_word=starts_word)
        self._arrays = outer
        if self._pending:
            raise _Unknown

    def _read_sign(self, sign: str, *, starts_word: bool) -> bool:
        """Read the element that begins with a sign; return True if a word may begin after it."""
        text, at = self._text, self._at
        if sign == "\\":
            joined = text.startswith("\\\n", at)
            self._read_escape()
            return starts_word and joined
        match sign:
            case "'":
                self._copy(self._end_of("'", at + 1))
            case '"':
                self._read_quoted()
            case "$":
                self._read_expansion(is_quoted=False)
            case "`":
                self._copy_match(_BACKQUOTED)
            case "#" if starts_word:
                end = text.find("\n", at)
                self._copy(end if end >= 0 else len(text))
            case "-" if starts_word and text[at + 1 : at + 2] in {"", *_BORDERS}:
                self.result.append("'-'")  # the parser joins it with the following text
                self._at += 1
            case "<" | "(" | "[" | "\n":
                self._read_operator(sign, starts_word=starts_word)
            case _:
                self._copy(at + 1)
        return sign in _BORDERS and text[self._at - 1] in _BORDERS

    def _read_operator(self, sign: str, *, starts_word: bool) -> None:
        text, at = self._text, self._at
        if sign == "<" and text.startswith("<<", at) and not text.startswith("<<<", at):
            self._read_document_operator()
        elif sign == "[":
            self._read_bracket(starts_word=starts_word)
        elif sign == "(" and (text.startswith("((", at) or text[at - 1 : at] in set("?*+@!")):
            raise _Unknown  # arithmetic or a pattern, in which << is no operator
        else:
            self._copy(at + (3 if sign == "<" and text.startswith("<<<", at) else 1))
            if sign == "\n":
                self._read_documents()

    def _read_bracket(self, *, starts_word: bool) -> None:
        """Read the beginning of a test, or all of a pattern or subscript."""
        test = _TEST.match(self._text, self._at) if starts_word else None
        if test is not None and not any(self._arrays):
            self._copy(test.end())
        else:  # << in it may be no operator
            self._copy_match(_SUBSCRIPT_OR_PATTERN)

    def _copy(self, end: int) -> None:
        piece = self._text[self._at : end]
        if self._pending and "\n" in piece[:-1]:
            raise _Unknown
        self.result.append(piece)
        self._at = end

    def _copy_match(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise _Unknown
        self._copy(found.end())

    def _end_of(self, sign: str, start: int) -> int:
        found = self._text.find(sign, start)
        if found < 0:
            raise _Unknown
        return found + 1

    def _read_escape(self) -> None:
        if not self._text.startswith("\\\n", self._at):
            self._copy(self._at + 2)
            return
        before = self._text[self._at - 1 : self._at]
        is_apart = before == "" or before in _BLANKS
        if self._pending or (before and before in _JOINABLE):
            raise _Unknown
        if self._depth and not is_apart:  # a divided word may be `case`
            raise _Unknown
        self._at += 2

    def _read_quoted(self) -> None:
        self._copy(self._at + 1)
        while self._at < len(self._text):
            sign = self._text[self._at]
            match sign:
                case '"':
                    self._copy(self._at + 1)
                    return
                case "\\":
                    self._read_escape()
                case "$":
                    if not self._read_literal_word():
                        self._read_expansion(is_quoted=True)
                case "`":
                    self._copy_match(_BACKQUOTED)
                case _:
                    if self._pending and sign == "\n":
                        raise _Unknown
                    self._copy(self._at + 1)
        raise _Unknown

    def _read_expansion(self, *, is_quoted: bool) -> None:
        text, at = self._text, self._at
        if text.startswith("$((", at):
            self._copy_match(_ARITHMETIC)
        elif text.startswith("$(", at):
            self._read_substitution()
        elif text.startswith("${", at):
            self._copy_match(_PARAMETER)
        elif text.startswith("$[", at):
            raise _Unknown
        elif text.startswith("$'", at) and not is_quoted:
            end = self._end_of("'", at + 2)
            if "\\" in text[at:end]:  # whether \' ends it depends on the shell
                raise _Unknown
            self._copy(end)
        else:
            self._copy(at + 1)

    def _read_substitution(self) -> None:
        start = self._at
        if self._depth >= _MAX_DEPTH or self._pending:
            raise _Unknown
        self._copy(start + 2)
        self._depth += 1
        self.read_commands(is_inner=True)
        self._depth -= 1
        if not self._text.startswith(")", self._at):
            raise _Unknown
        if _UNKNOWN_IN_SUBSTITUTION.search(self._text, start, self._at):
            raise _Unknown  # it may have parentheses that close nothing
        self._copy(self._at + 1)

    def _read_literal_word(self) -> bool:
        """Read `$(cat <<'E' …)` within quotes as the text that it stands for."""
        found = _LITERAL_WORD.match(self._text, self._at)
        if found is None:
            return False
        if self._pending:
            raise _Unknown
        delimiter = found[2] or found[3] or found[4]
        document = _Document(delimiter, bool(found[1]), is_literal=True)
        lines, end = self._lines_of(document, found.end(), is_inner=True)
        closing = _END_OF_SUBSTITUTION.match(self._text, end)
        if closing is None:
            return False
        body = "".join(lines).rstrip("\n")
        self.runs_cat = True
        self.result.append(re.sub(r'[\\"$`]', r"\\\g<0>", body))
        self._at = closing.end()
        return True

    def _read_document_operator(self) -> None:
        text, at = self._text, self._at + 2
        word = text[max(self._at - _MAX_WORD_CHARS, 0) : self._at]
        if not _BEFORE_OPERATOR.search(word):
            raise _Unknown
        strips_tabs = text.startswith("-", at)
        at += strips_tabs
        while text[at : at + 1] in _BLANKS and at < len(text):
            at += 1
        delimiter, is_literal, start = "", False, at
        while at < len(text) and text[at] not in _BORDERS:
            if plain := _PLAIN_DELIMITER.match(text, at):
                delimiter += plain[0]
                at = plain.end()
            elif quoted := _QUOTED_DELIMITER.match(text, at):
                delimiter += quoted[1] or quoted[2] or quoted[3] or ""
                is_literal, at = True, quoted.end()
            else:
                raise _Unknown
        if not delimiter or text[start] == "#":
            raise _Unknown
        self._pending.append(_Document(delimiter, strips_tabs, is_literal))
        self._at = at

    def _read_documents(self) -> None:
        pending, self._pending = self._pending, []
        for document in pending:
            lines, self._at = self._lines_of(document, self._at, is_inner=self._depth > 0)
            if not document.is_literal:
                self._keep_substitutions("".join(lines))

    def _lines_of(self, document: _Document, at: int, *, is_inner: bool) -> tuple[list[str], int]:
        """Return the lines of a document, and where the text goes on after its delimiter.

        Raises:
            _Unknown: it has no end, or shells differ in where it ends.
        """
        lines: list[str] = []
        while at < len(self._text):
            end = self._text.find("\n", at)
            line = self._text[at : end if end >= 0 else len(self._text)]
            after = at + len(line)
            line = line.lstrip("\t") if document.strips_tabs else line
            if line == document.delimiter:
                return lines, after
            if is_inner and line.startswith(document.delimiter):  # as old shells end it
                raise _Unknown
            if line.endswith("\\") and not document.is_literal:
                raise _Unknown
            lines.append(f"{line}\n")
            at = after + 1
        raise _Unknown

    def _keep_substitutions(self, body: str) -> None:
        """Keep a text as a quoted word if something in it is substituted."""
        if "$" in body or "`" in body:
            inner = _Reader(body, self._depth + 1)
            inner.read_body()
            self.runs_cat |= inner.runs_cat
            self.documents += ('"' + "".join(inner.result) + '"', *inner.documents)

    def read_body(self) -> None:
        """Read the text of a here-document, in which quotes are ordinary signs.

        Raises:
            _Unknown: something is not known to this reader.
        """
        while self._at < len(self._text):
            sign, following = self._text[self._at], self._text[self._at + 1 : self._at + 2]
            if sign == "\\":
                is_escape = following in set("\\$`")
                self.result.append(f"\\{following}" if is_escape else "\\\\")
                self._at += 2 if is_escape else 1
            elif sign == '"':
                self.result.append('\\"')
                self._at += 1
            elif sign == "$":
                self._read_expansion(is_quoted=True)
            elif sign == "`":
                self._copy_match(_BACKQUOTED)
            else:
                self._copy(self._at + 1)
