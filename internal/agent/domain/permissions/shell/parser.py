"""Parse a shell command into its parts: every command and redirection that running it would reach.

The parts come from the parse tree of tree-sitter-bash: pipelines, lists, subshells, loops,
conditions, functions, substitutions, here-documents. Unknown nodes, the text between tokens and
every token are checked again; any doubt becomes `Script.problem`. A long command has thousands of
parts: they contain no reference cycles, and the garbage collector does not visit them (`gc=False`).
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice, pairwise
from typing import ClassVar

import msgspec
import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point, Tree

from internal.agent.domain.permissions.shell.plain_lines import plain_lines
from internal.agent.domain.permissions.shell.programs import changes_directory
from internal.agent.domain.permissions.shell.words import (
    EXPANSIONS,
    Word,
    decode_from_parser,
    encode_for_parser,
    node_source,
    parse_word,
)
from internal.agent.domain.text import find_invisible

MAX_DEPTH = 60
MAX_BYTES = 64 * 1024
MAX_MARKS = 4_000  # punctuation and blanks; beyond that the parser's error recovery takes seconds
MAX_BARS = 1_000  # the recovery from an error after a pipeline takes quadratic time
MAX_PARSER_READS = 4_000
"""Maximum number of 1 KB reads of the text: the parser may scan the whole rest for every token."""

_ARITHMETIC = "arithmetic can hide commands"
_TOO_LONG = "it is too long to be checked"
_READ_BYTES = 1024
_MARK = re.compile(r"[^\w\s]|\s+")
_BAR = re.compile(r"\|")
_DELIMITER = re.compile(r"(\\?)(['\"]?)(\w+)\2")
_BLANKS = re.compile(rb"[ \t]+")
_ANY_BLANKS = re.compile(rb"[ \t]*")
_SPACE = re.compile(rb"[ \t\n]*")
_NAMED_DESCRIPTOR = re.compile(rb"\{\w+\}")
_MAX_DESCRIPTOR_BYTES = 64
_NUMBER_AT_END = re.compile(rb"(?:^|[\s;&|(){}<>])\d+$")
_DIGITS = frozenset(
    b"%d" % digit for digit in range(10)
)  # a POSIX shell reads two digits as a word
# programs read names in capitals, and those of proxies
_OWN_VARIABLE = re.compile(r"(?!\w*_proxy$|histchars$)[a-z_][a-z0-9_]*")
_FUNCTION = re.compile(r"[A-Za-z_][\w-]*")
# POSIX shells find these before functions
_SPECIAL_BUILTINS = frozenset(
    {"break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift"}
    | {"source", "times", "trap", "unset"}
)
_ARITHMETIC_TESTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_NUMBER = re.compile(r"-?\d+|\$[#?]|\$\{#\w+\}|\"\$[#?]\"")
# a variable in arithmetic is evaluated again: its value may be `a[$(rm x)]`
_EVALUATED = re.compile(
    r"\$\(\(.*(?:[A-Za-z_]|\$[\d@*]).*|\$\{[#!]?\w+(?:\[(?!\d+\]|[@*]\])|:(?![-+=?\d ]|$)).*",
    re.DOTALL,
)
_SETTERS = frozenset({"read", "mapfile", "readarray", "printf", "getopts"})
_VARIABLE_TESTS = frozenset({"-v", "-R"})
_MAX_QUOTED_CHARS = 60
_RESERVED = re.compile(
    r"if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|coproc|in"
    r"|[{}!]|\[\[|\]\]"
)
_TRANSPARENT = frozenset(
    {"program", "list", "pipeline", "subshell", "if_statement", "elif_clause", "else_clause"}
    | {"while_statement", "do_group", "negated_command", "case_item", "redirected_statement"}
    | {"case_statement", "herestring_redirect"}
)
_WORDS = frozenset({"word", "number", "string", "raw_string", "concatenation", "extglob_pattern"})
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_TEST_NODES = frozenset(
    {"unary_expression", "binary_expression", "negation_expression", "parenthesized_expression"}
)
_STRUCTURES = (
    _TRANSPARENT
    | EXPANSIONS
    | _TEST_NODES
    | {"postfix_expression", "ternary_expression", "subscript"}
)


class ParsedCommand(msgspec.Struct, frozen=True, gc=False):
    """A simple command. `no_rule` is the reason why no rule can cover it, "" if one can.

    `is_inert`: it starts no program and has no effect beyond the shell, such as a test. Its
    substitutions, and the body of a function that it calls, are other parts.
    """

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    no_rule: str = ""
    is_inert: bool = False


class Redirect(msgspec.Struct, frozen=True, gc=False):
    """A file that the shell itself opens, for writing or for reading only.

    `folder_unknown`: the path is relative and another part of the command may change the folder.
    """

    writes: bool
    target: Word
    folder_unknown: bool = False


class Script(msgspec.Struct, frozen=True, gc=False):
    """The parts of a command text. With a `problem` they may be incomplete."""

    parts: tuple[ParsedCommand | Redirect, ...]
    problem: str


@cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())


class ReadLimit:
    """The number of times that the parser may still fetch a piece of a text; shared by texts."""

    def __init__(self) -> None:
        self.left = MAX_PARSER_READS


def parse_script(text: str, limit: ReadLimit | None = None) -> Script:
    """Return the parts of a command text. Never raises; the time is bounded by the limits above."""
    limit = limit or ReadLimit()
    plain = plain_lines(text[:MAX_BYTES])
    problem = _text_problem(text, is_continued=plain is None and "\\\n" in text)
    main = _read_parts(text if plain is None else plain.text, limit)
    documents = () if plain is None else plain.documents
    inner = [_read_parts(f": <<<{document}", limit) for document in documents]
    parts = main.parts
    for each in inner:
        parts += each.parts[1:]  # after the colon
    evaluates = any(each.evaluates for each in (main, *inner))
    if evaluates and any(each.sets_variables for each in (main, *inner)):
        parts.append(ParsedCommand((), (), _ARITHMETIC))
    if plain is not None and plain.runs_cat:
        parts.append(ParsedCommand((Word("cat", "plain", "cat"),), is_inert=True))
    problems = (problem, *(each.problem for each in (main, *inner)))
    return Script(tuple(_mark_unknown_folders(parts)), next(filter(None, problems), ""))


def _read_parts(text: str, limit: ReadLimit) -> "_Reader":
    """Return the parts of a text without here-documents."""
    readable = _truncate(text)
    raw = encode_for_parser(readable)
    reader = _Reader(raw)
    tree = _parse_tree(raw, limit)
    if tree is None:
        reader.problem = "it is too complex to be checked"
    else:
        reader.read(tree.root_node)
    if readable != text:
        reader.problem = _TOO_LONG
    return reader


def _parse_tree(raw: bytes, limit: ReadLimit) -> Tree | None:
    """Return the parse tree, None beyond the limit."""

    def read(offset: int, _: Point) -> bytes:
        limit.left -= 1
        return raw[offset : offset + _READ_BYTES]

    def is_over(_: int, __: bool) -> bool:  # the signature of the library
        return limit.left < 0

    try:
        return Parser(_language()).parse(read, progress_callback=is_over)
    except ValueError:  # is_over ended it
        return None


def _mark_unknown_folders(parts: list[ParsedCommand | Redirect]) -> list[ParsedCommand | Redirect]:
    """Return the parts, with relative paths marked if one part changes the folder."""
    moved = any(isinstance(part, ParsedCommand) and changes_directory(part.words) for part in parts)
    return [_mark_unknown_folder(part) for part in parts] if moved else parts


def _mark_unknown_folder(part: ParsedCommand | Redirect) -> ParsedCommand | Redirect:
    if isinstance(part, Redirect):
        return msgspec.structs.replace(part, folder_unknown=not part.target.text.startswith("/"))
    program = part.words[0].text if part.words else ""
    if "/" not in program.lstrip("/") or program.startswith("/"):
        return part
    return msgspec.structs.replace(part, no_rule="which program that is depends on the folder")


class _Reader:
    """Walks a parse tree with an explicit stack: a deep tree must not exhaust the Python stack."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.parts: list[ParsedCommand | Redirect] = []
        self.problem = ""
        self.evaluates = False
        """Arithmetic in it evaluates variables."""
        self.sets_variables = False
        self._stack: list[tuple[Node, int]] = []
        self._depth = 0
        self._functions: set[str] = set()  # that are certainly defined from here on

    def read(self, root: Node) -> None:
        """Fill `parts` and `problem` from the whole tree."""
        if root.has_error:
            self._add_problem("it is not valid shell syntax", _first_error(root))
        covered = self.raw[: root.start_byte] + self.raw[root.end_byte :]
        if not _SPACE.fullmatch(covered):
            self._add_problem("the parser skipped a part of it")
        self._stack.append((root, 0))
        while self._stack:
            node, self._depth = self._stack.pop()
            if self._depth > MAX_DEPTH:
                self._add_problem("it is nested too deep")
                continue
            self._visit(node)

    def _visit(self, node: Node) -> None:
        if node.type in _WORDS:
            self._word(node)
            return
        if node.type in {"arithmetic_expansion", "expansion"}:
            self.evaluates = self.evaluates or bool(_EVALUATED.fullmatch(node_source(node)))
        children = node.children
        if children and not self._is_covered(node, children):
            self._add_problem("the parser skipped a part of it")
        if node.type in _REDIRECTS and self._follows_number(node):
            self._add_problem("a redirection is ambiguous")
        if node.type == "command_substitution" and children[0].type == "`":
            self._check_backquotes(node)
        if handler := self._HANDLERS.get(node.type):
            handler(self, node)
        else:
            if children and node.is_named and node.type not in _STRUCTURES:
                syntax = node.type.replace("_", " ")
                self._add_problem(f"the syntax {syntax} is not supported", node)
            self._push(children)

    def _check_backquotes(self, node: Node) -> None:
        """Check backquotes: a shell removes backslashes from the text before it parses it."""
        if self.raw.find(b"\\", node.start_byte, node.end_byte) >= 0:
            self._add_problem("a backslash inside backquotes is ambiguous; write $(…)")

    def _is_covered(self, node: Node, children: list[Node]) -> bool:
        """Return True if there are only blanks between the children of a node."""
        head = self.raw[node.start_byte : children[0].start_byte]
        tail = self.raw[children[-1].end_byte : node.end_byte]
        edges_match = _SPACE.fullmatch(head) and _SPACE.fullmatch(tail)
        return bool(edges_match) and self._gaps_match(children, _SPACE)

    def _add_problem(self, reason: str, node: Node | None = None) -> None:
        """Keep the first problem, with the beginning of the part that has it."""
        if self.problem:
            return
        source = "" if node is None else " ".join(node_source(node).split())
        if source == " ".join(decode_from_parser(self.raw).split()):
            source = ""
        part = f"{source[:_MAX_QUOTED_CHARS]}…" if len(source) > _MAX_QUOTED_CHARS else source
        self.problem = f"{reason}: {part}" if part else reason

    def _push(self, nodes: list[Node] | tuple[Node, ...]) -> None:
        self._stack.extend((node, self._depth + 1) for node in reversed(nodes))

    def _gaps_match(self, nodes: list[Node], pattern: re.Pattern[bytes]) -> bool:
        return all(
            pattern.fullmatch(self.raw[left.end_byte : right.start_byte])
            for left, right in pairwise(nodes)
        )

    def _word(self, node: Node) -> Word:
        reading = parse_word(node)
        if reading.problem:
            self._add_problem(reading.problem)
        self._push(reading.expansions)
        return reading.word

    def _command(self, node: Node) -> None:
        words: list[Word] = []
        assignments: list[Word] = []
        children = node.children
        for child in children:
            if child.type in _REDIRECTS:
                self._push([child])
            elif child.type == "variable_assignment":
                assignments.append(self._assignment(child))
            else:
                words.append(self._word(child))
        for left, right in pairwise(children):
            redirected = left.type in _REDIRECTS or right.type in _REDIRECTS
            gap = self.raw[left.end_byte : right.start_byte]
            if not (_ANY_BLANKS if redirected else _BLANKS).fullmatch(gap):
                self._add_problem("the parser skipped a part of it")
        if words and _RESERVED.fullmatch(words[0].source):
            self._add_problem(f"{words[0].source} is a reserved word of the shell")
        self.sets_variables |= bool(words) and words[0].text in _SETTERS
        calls_function = bool(words) and words[0].kind == "plain" and not assignments
        is_inert = calls_function and words[0].text in self._functions
        part = ParsedCommand(tuple(words), tuple(assignments), is_inert=is_inert)
        self.parts.append(part)

    def _assignment(self, node: Node) -> Word:
        value = node.children[-1]
        if node.child_count == len(("name", "=", "value")) and value.type in _WORDS:
            known = self._word(value)
        elif value.type == "array":
            known = self._array(value)
        else:
            self._push(node.children)
            known = Word("", "plain" if value.type == "=" else "unknown", "")
        if node.children[0].type == "subscript":
            self._push(node.children[0].children)
        name = node_source(node).partition("=")[0]
        return Word(f"{name}={known.text}", known.kind, node_source(node))

    def _array(self, node: Node) -> Word:
        """Read the words of an array; of its value nothing is known."""
        if not self._gaps_match(node.children, _SPACE):
            self._add_problem("the parser skipped a part of it", node)
        for child in node.named_children:
            if child.type in _WORDS or child.type in EXPANSIONS:
                self._word(child)
            else:
                self._push([child])
        return Word("", "unknown", node_source(node))

    def _lone_assignment(self, node: Node) -> None:
        nodes = [node] if node.type == "variable_assignment" else node.children
        found = tuple(self._assignment(child) for child in nodes)
        self.sets_variables = True
        is_inert = all(map(_is_own_variable, nodes))
        reason = "" if is_inert else "it sets a variable for what follows"
        self.parts.append(ParsedCommand((), found, reason, is_inert))

    def _declaration(self, node: Node) -> None:
        words = tuple(
            self._assignment(child) if child.type == "variable_assignment" else self._word(child)
            for child in node.children[1:]
        )
        name = node_source(node.children[0])
        first = Word(name, "plain", name)
        self.parts.append(
            ParsedCommand((first, *words), (), f"{name} changes the shell's variables")
        )

    def _test(self, node: Node) -> None:
        leaves = _leaves(node)
        if not self._gaps_match(leaves, _BLANKS):
            self._add_problem("the parser skipped a part of it")
        words = tuple(self._test_word(leaf) for leaf in leaves)
        if words[0].text == "[" and any(leaf.type in {"<", ">"} for leaf in leaves):
            self._add_problem("< and > in [ ] are redirections")
        is_extended = words[0].text == "[["
        no_rule = "[[ evaluates what it compares" if is_extended and _evaluates(words) else ""
        is_inert = is_extended and not no_rule
        self.parts.append(ParsedCommand(words, (), no_rule, is_inert))

    def _test_word(self, leaf: Node) -> Word:
        if leaf.is_named:
            return self._word(leaf)
        source = node_source(leaf)
        return Word(source, "plain", source)

    def _for(self, node: Node) -> None:
        self.sets_variables = True
        name = next((node_source(c) for c in node.children if c.type == "variable_name"), "")
        if node.children[0].type == "select" or not _OWN_VARIABLE.fullmatch(name):
            loop = Word(f"{name}=", "unknown", name)
            self.parts.append(ParsedCommand((), (loop,), "it sets a variable for what follows"))
        self._push(node.children)

    def _compound(self, node: Node) -> None:
        if node.children[0].type == "((":
            self.parts.append(ParsedCommand((), (), _ARITHMETIC))
            self._add_problem("(( is arithmetic in bash and starts commands in other shells")
        self._push(node.children)

    def _function(self, node: Node) -> None:
        """Read a function. The commands of its body are judged here, not where it is called."""
        name, following = node.child_by_field_name("name"), node.next_sibling
        is_certain = (
            node.parent is not None
            and node.parent.type == "program"
            and node.children[0].type != "function"  # other shells run it as a command
            and (following is None or following.type != "&")
        )
        text = "" if name is None else node_source(name)
        if is_certain and _FUNCTION.fullmatch(text) and text not in _SPECIAL_BUILTINS:
            self._functions.add(text)
        self.parts.append(ParsedCommand((), (), is_inert=True))
        self._push(node.children)

    def _negation(self, node: Node) -> None:
        after = node.children[0].end_byte
        if self.raw[after : after + 1] not in b" \t(":  # the shell reads a word that begins with !
            self._add_problem("a blank is missing after !", node)
        self._push(node.children)

    def _comment(self, node: Node) -> None:
        if b"\n" in (node.text or b"") or self._byte_before(node) not in b" \t\n;&|()":
            self._add_problem("a comment is ambiguous")

    def _file_redirect(self, node: Node) -> None:
        children = list(node.children)
        if children[0].type == "file_descriptor":
            descriptor = children.pop(0)
            is_digit = descriptor.text in _DIGITS
            is_separate = self._byte_before(descriptor) in b" \t\n;&|(){}"
            if not is_digit or not is_separate or descriptor.end_byte != children[0].start_byte:
                self._add_problem("a redirection is ambiguous")
        if self._byte_before(node) == b"}":
            self._check_named_descriptor(node)
        operator, *targets = children
        words = [self._word(target) for target in targets]
        closes = operator.type.endswith("-")  # the text after `<&-` is a word of the command
        following = tuple(words if closes else words[1:])
        if following:
            self._add_problem("words follow a redirection; put the redirection last")
            self.parts.append(ParsedCommand(following))
            words = words[: -len(following)]
        duplicates = operator.type in {">&", "<&"} and _is_descriptor(words)
        if operator.type == ">&" and not duplicates:  # bash expands the word twice
            self._add_problem("the target of >& is a number; write > FILE 2>&1")
        is_file = bool(targets) and targets[0].type != "process_substitution"
        if words and not duplicates and is_file:
            self.parts.append(Redirect(operator.type != "<", words[0]))

    def _check_named_descriptor(self, redirect: Node) -> None:
        start = redirect.start_byte
        brace = self.raw.rfind(b"{", max(start - _MAX_DESCRIPTOR_BYTES, 0), start)
        if brace < 0 or _NAMED_DESCRIPTOR.fullmatch(self.raw, brace, start):
            self._add_problem("a redirection sets a variable")

    def _follows_number(self, redirect: Node) -> bool:
        """Return True if the shell reads the word before a redirection as its descriptor."""
        start = redirect.start_byte
        before = self.raw[max(start - _MAX_DESCRIPTOR_BYTES, 0) : start]
        return bool(_NUMBER_AT_END.search(before))

    def _byte_before(self, node: Node) -> bytes:
        """Return the byte before a node, empty at the beginning."""
        return self.raw[max(node.start_byte - 1, 0) : node.start_byte]

    def _heredoc(self, node: Node) -> None:
        start = next(child for child in node.children if child.type == "heredoc_start")
        body = [child for child in node.children if child.type == "heredoc_body"]
        others = [c for c in node.children if c.type in _WORDS]
        # once there is a problem, documents may end at the same line, and each would be searched
        is_known = bool(self.problem) or _is_heredoc_unambiguous(self.raw, node, start)
        if others or not is_known:
            self._add_problem("a here-document is ambiguous", start)
        inert = node_source(start)[:1] in "'\"\\"
        if not inert and any(mark in node_source(part) for part in body for mark in "$`"):
            self._add_problem("a here-document substitutes; quote its delimiter")
        self._push([c for c in node.children if c.type not in _WORDS and c.type != "heredoc_body"])
        self._push(
            [
                expansion
                for part in body
                for expansion in part.children
                if expansion.type in EXPANSIONS
            ]
        )

    # not made by each reader: its methods would refer to it, and only a garbage collection, which
    # stops everything, would free the parts
    _HANDLERS: ClassVar[Mapping[str, Callable[["_Reader", Node], None]]] = {
        "command": _command,
        "declaration_command": _declaration,
        "unset_command": _declaration,
        "variable_assignment": _lone_assignment,
        "variable_assignments": _lone_assignment,
        "test_command": _test,
        "for_statement": _for,
        "file_redirect": _file_redirect,
        "heredoc_redirect": _heredoc,
        "comment": _comment,
        "compound_statement": _compound,
        "function_definition": _function,
        "negated_command": _negation,
    }


def _first_error(root: Node) -> Node | None:
    """Return the first part that the parser could not read; None stands for the whole text."""
    cursor = root.walk()
    while True:
        node = cursor.node
        if node is not None and node.is_error:
            return node
        if node is not None and node.has_error and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return None


def _is_own_variable(assignment: Node) -> bool:
    """Return True for an assignment to a variable that only the text itself reads."""
    name, value = assignment.children[0], assignment.children[-1]
    elements = value.named_children if value.type == "array" else []
    # a subscript is evaluated
    has_subscripts = any((element.text or b"").startswith(b"[") for element in elements)
    return bool(_OWN_VARIABLE.fullmatch(node_source(name))) and not has_subscripts


def _evaluates(words: tuple[Word, ...]) -> bool:
    """Return True if a test evaluates arithmetic, which can start commands, or may do so."""
    for at, word in enumerate(words):
        around = words[max(at - 1, 0)], words[min(at + 1, len(words) - 1)]
        if word.text in _ARITHMETIC_TESTS and not all(
            _NUMBER.fullmatch(operand.source) for operand in around
        ):
            return True
        if word.text in _VARIABLE_TESTS and not re.fullmatch(r"\w+", around[1].source):
            return True
    return False


def _is_descriptor(words: list[Word]) -> bool:
    return all(word.kind == "plain" and re.fullmatch(r"[0-9]+", word.text) for word in words)


def _leaves(node: Node) -> list[Node]:
    leaves: list[Node] = []
    stack = [*reversed(node.children)]
    while stack:
        child = stack.pop()
        if child.type in _TEST_NODES:
            stack.extend(reversed(child.children))
        else:
            leaves.append(child)
    return leaves


def _text_problem(text: str, *, is_continued: bool) -> str:
    """Return why a text cannot be checked at all, or ""."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        return _TOO_LONG
    if char := find_invisible(text):
        return f"it contains the invisible character {char!a}"
    if is_continued:
        return "it continues a line with a backslash; write it on one line"
    return ""


def _truncate(text: str) -> str:
    """Return the beginning of the text that can be parsed in bounded time, or all of it."""
    text = text[:MAX_BYTES]
    mark = next(islice(_MARK.finditer(text), MAX_MARKS, None), None)
    bar = next(islice(_BAR.finditer(text), MAX_BARS, None), None)
    return text[: min(found.start() if found else len(text) for found in (mark, bar))]


def _is_heredoc_unambiguous(raw: bytes, node: Node, start: Node) -> bool:
    """Return True if the parser ends the document at the line where the shell ends it."""
    delimiter = _DELIMITER.fullmatch(node_source(start))
    ends = [child for child in node.children if child.type == "heredoc_end"]
    at = raw.find(b"\n", start.end_byte) + 1
    if not delimiter or len(ends) != 1 or b"<<" in raw[start.end_byte : at] or not at:
        return False
    tabs = b"\t" if raw.startswith(b"<<-", node.start_byte) else b""
    while at < len(raw):
        end = raw.find(b"\n", at)
        line = raw[at : end if end >= 0 else len(raw)]
        text = line.lstrip(tabs) if tabs else line
        if decode_from_parser(text) == delimiter[3]:
            return ends[0].start_byte == at + len(line) - len(text)
        at += len(line) + 1
    return False
