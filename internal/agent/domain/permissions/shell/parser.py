"""A shell command as parts: every command and every file redirection that running it would touch.

Read from the parse tree of tree-sitter-bash, wherever they stand: pipelines, lists, subshells,
loops, conditions, functions, substitutions, here-documents. What the parser does not know, what
stands between its tokens, and each token itself is checked again; any doubt is `Script.trouble`.
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import msgspec
import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from internal.agent.domain.permissions.shell.programs import changes_folder
from internal.agent.domain.permissions.shell.raw_text import cut, heredoc_holds, odd_text
from internal.agent.domain.permissions.shell.words import (
    HOLES,
    Word,
    for_parser,
    read_word,
    source_of,
)

MAX_DEPTH = 60
_BLANKS = re.compile(rb"[ \t]+")
_ANY_BLANKS = re.compile(rb"[ \t]*")
_SPACE = re.compile(rb"[ \t\n]*")
_NAMED_DESCRIPTOR = re.compile(rb"\{\w+\}$")
_DIGITS = frozenset(b"%d" % digit for digit in range(10))  # two are a word to a POSIX shell
_LOOP_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = re.compile(
    r"if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|coproc|in"
    r"|[{}!]|\[\[|\]\]"
)
_TRANSPARENT = frozenset(
    {"program", "list", "pipeline", "subshell", "if_statement", "elif_clause", "else_clause"}
    | {"while_statement", "do_group", "negated_command", "case_item", "redirected_statement"}
    | {"case_statement"}
)
_WORDS = frozenset({"word", "number", "string", "raw_string", "concatenation", "extglob_pattern"})
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_TEST_SHAPES = frozenset(
    {"unary_expression", "binary_expression", "negation_expression", "parenthesized_expression"}
)
_SUMS = _TEST_SHAPES | {"postfix_expression", "ternary_expression", "subscript"}


class ParsedCommand(msgspec.Struct, frozen=True):
    """A simple command. `asks` says why no rule can ever cover it ("" = one can)."""

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    asks: str = ""


class Redirect(msgspec.Struct, frozen=True):
    """A file opened by the shell itself, for writing or only for reading.

    `adrift`: by a path from a folder that another part of the command may have changed.
    """

    writes: bool
    target: Word
    adrift: bool = False


class Script(msgspec.Struct, frozen=True):
    """All parts of a command text. With `trouble` they are a best effort, not the whole."""

    parts: tuple[ParsedCommand | Redirect, ...]
    trouble: str


@cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())


def read_script(text: str) -> Script:
    """Take a command text apart. Never raises and never runs anything; linear in the text."""
    trouble = odd_text(text)
    raw = for_parser(cut(text))
    reader = _Reader(raw)
    reader.read(Parser(_language()).parse(raw).root_node)
    return Script(tuple(_settled(reader.parts)), trouble or reader.trouble)


def _settled(parts: list[ParsedCommand | Redirect]) -> list[ParsedCommand | Redirect]:
    """Return the parts; once one of them changes the folder, relative paths mean nothing known."""
    moved = any(isinstance(part, ParsedCommand) and changes_folder(part.words) for part in parts)
    return [_adrift(part) for part in parts] if moved else parts


def _adrift(part: ParsedCommand | Redirect) -> ParsedCommand | Redirect:
    if isinstance(part, Redirect):
        return msgspec.structs.replace(part, adrift=not part.target.text.startswith("/"))
    program = part.words[0].text if part.words else ""
    if "/" not in program.lstrip("/") or program.startswith("/"):
        return part
    return msgspec.structs.replace(part, asks="which program that is depends on the folder")


class _Reader:
    """Walks a tree with its own stack, so that depth costs no Python frames."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.parts: list[ParsedCommand | Redirect] = []
        self.trouble = ""
        self._stack: list[tuple[Node, int]] = []
        self._depth = 0
        self._shapes: dict[str, Callable[[Node], None]] = {
            "command": self._command,
            "declaration_command": self._declaration,
            "unset_command": self._declaration,
            "variable_assignment": self._lone_assignment,
            "variable_assignments": self._lone_assignment,
            "test_command": self._test,
            "for_statement": self._for,
            "file_redirect": self._file_redirect,
            "heredoc_redirect": self._heredoc,
            "herestring_redirect": self._structure,
            "comment": self._comment,
            "compound_statement": self._compound,
            "function_definition": self._function,
        }

    def read(self, root: Node) -> None:
        """Read the whole tree into `parts` and `trouble`."""
        if root.has_error:
            self._doubt("it is not valid shell syntax")
        covered = self.raw[: root.start_byte] + self.raw[root.end_byte :]
        if not _SPACE.fullmatch(covered):
            self._doubt("the parser passed over a part of it")
        self._stack.append((root, 0))
        while self._stack:
            node, self._depth = self._stack.pop()
            if self._depth > MAX_DEPTH:
                self._doubt("it is nested too deep")
            self._visit(node)

    def _visit(self, node: Node) -> None:
        if node.type in _WORDS:
            self._word(node)
        elif shape := self._shapes.get(node.type):
            shape(node)
        elif node.type in _TRANSPARENT or node.type in HOLES:
            self._structure(node)
        elif node.type in _SUMS:
            self._push(node.children)
        elif node.is_named and node.child_count:
            self._doubt(f"the shape {node.type.replace('_', ' ')} has no rule")
            self._push(node.children)

    def _structure(self, node: Node) -> None:
        if node.type not in HOLES and not self._gaps_hold(node.children, _SPACE):
            self._doubt("the parser passed over a part of it")
        self._push(node.children)

    def _doubt(self, reason: str) -> None:
        self.trouble = self.trouble or reason

    def _push(self, nodes: list[Node] | tuple[Node, ...]) -> None:
        self._stack.extend((node, self._depth + 1) for node in reversed(nodes))

    def _gaps_hold(self, nodes: list[Node], pattern: re.Pattern[bytes]) -> bool:
        return all(
            pattern.fullmatch(self.raw[left.end_byte : right.start_byte])
            for left, right in pairwise(nodes)
        )

    def _word(self, node: Node) -> Word:
        reading = read_word(node)
        if reading.trouble:
            self._doubt(reading.trouble)
        self._push(reading.holes)
        return reading.word

    def _command(self, node: Node) -> None:
        words: list[Word] = []
        assignments: list[Word] = []
        for child in node.children:
            if child.type in _REDIRECTS:
                self._push([child])
            elif child.type == "variable_assignment":
                assignments.append(self._assignment(child))
            else:
                words.append(self._word(child))
        for pair in pairwise(node.children):
            redirected = any(child.type in _REDIRECTS for child in pair)
            if not self._gaps_hold(list(pair), _ANY_BLANKS if redirected else _BLANKS):
                self._doubt("the parser passed over a part of it")
        if words and _RESERVED.fullmatch(words[0].source):
            self._doubt(f"{words[0].source} is a word of the shell's own grammar")
        self.parts.append(ParsedCommand(tuple(words), tuple(assignments)))

    def _assignment(self, node: Node) -> Word:
        value = node.children[-1]
        if node.child_count == len(("name", "=", "value")) and value.type in _WORDS:
            known = self._word(value)
        else:
            self._push(node.children)
            known = Word("", "plain" if value.type == "=" else "unknown", "")
        if node.children[0].type == "subscript":
            self._push(node.children[0].children)
        name = source_of(node).partition("=")[0]
        return Word(f"{name}={known.text}", known.kind, source_of(node))

    def _lone_assignment(self, node: Node) -> None:
        nodes = [node] if node.type == "variable_assignment" else node.children
        found = tuple(self._assignment(child) for child in nodes)
        reason = "it sets a variable for what follows"
        self.parts.append(ParsedCommand((), found, reason))

    def _declaration(self, node: Node) -> None:
        words = tuple(
            self._assignment(child) if child.type == "variable_assignment" else self._word(child)
            for child in node.children[1:]
        )
        name = source_of(node.children[0])
        first = Word(name, "plain", name)
        self.parts.append(
            ParsedCommand((first, *words), (), f"{name} changes the shell's variables")
        )

    def _test(self, node: Node) -> None:
        leaves = _flat(node)
        if not self._gaps_hold(leaves, _BLANKS):
            self._doubt("the parser passed over a part of it")
        words = tuple(self._test_word(leaf) for leaf in leaves)
        asks = "" if words[0].text == "[" else f"{words[0].text} evaluates what it compares"
        self.parts.append(ParsedCommand(words, (), asks))

    def _test_word(self, leaf: Node) -> Word:
        if leaf.is_named:
            return self._word(leaf)
        source = source_of(leaf)
        return Word(source, "plain", source)

    def _for(self, node: Node) -> None:
        name = next((source_of(c) for c in node.children if c.type == "variable_name"), "")
        if node.children[0].type == "select" or not _LOOP_VARIABLE.fullmatch(name):
            self.parts.append(ParsedCommand((), (), "it sets a variable for what follows"))
        self._structure(node)

    def _compound(self, node: Node) -> None:
        if node.children[0].type == "((":
            self.parts.append(ParsedCommand((), (), "arithmetic can hide commands"))
        self._structure(node)

    def _function(self, node: Node) -> None:
        self.parts.append(ParsedCommand((), (), "it defines a function"))
        self._push(node.children)

    def _comment(self, node: Node) -> None:
        before = self.raw[: node.start_byte]
        if b"\n" in (node.text or b"") or (before and before[-1:] not in b" \t\n;&|()"):
            self._doubt("a comment can be read in two ways")

    def _file_redirect(self, node: Node) -> None:
        children = list(node.children)
        if children[0].type == "file_descriptor":
            descriptor = children.pop(0)
            before = self.raw[: descriptor.start_byte][-1:]
            sound = descriptor.text in _DIGITS and (not before or before in b" \t\n;&|(){}")
            if not sound or descriptor.end_byte != children[0].start_byte:
                self._doubt("a redirection can be read in two ways")
        if _NAMED_DESCRIPTOR.search(self.raw[: node.start_byte]):
            self._doubt("a redirection sets a variable")
        operator, *targets = children
        words = [self._word(target) for target in targets]
        if len(words) > 1:
            self._doubt("words follow a redirection; put the redirection last")
            self.parts.append(ParsedCommand(tuple(words[1:])))
        duplicates = operator.type in {">&", "<&"} and _is_descriptor(words)
        if words and not duplicates:
            self.parts.append(Redirect(operator.type != "<", words[0]))

    def _heredoc(self, node: Node) -> None:
        start = next(child for child in node.children if child.type == "heredoc_start")
        body = [child for child in node.children if child.type == "heredoc_body"]
        others = [c for c in node.children if c.type in _WORDS]
        if others or not heredoc_holds(self.raw, node, start):
            self._doubt("a here-document can be read in two ways")
        inert = source_of(start)[:1] in "'\"\\"
        if not inert and any(mark in source_of(part) for part in body for mark in "$`"):
            self._doubt("a here-document substitutes; quote its delimiter")
        self._push([c for c in node.children if c.type not in _WORDS and c.type != "heredoc_body"])
        self._push([hole for part in body for hole in part.children if hole.type in HOLES])


def _is_descriptor(words: list[Word]) -> bool:
    return all(word.kind == "plain" and re.fullmatch(r"[0-9]+", word.text) for word in words)


def _flat(node: Node) -> list[Node]:
    leaves: list[Node] = []
    stack = [*reversed(node.children)]
    while stack:
        child = stack.pop()
        if child.type in _TEST_SHAPES:
            stack.extend(reversed(child.children))
        else:
            leaves.append(child)
    return leaves
