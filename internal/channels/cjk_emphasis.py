"""Emphasis beside Chinese, Japanese and Korean signs, which have no blanks around them.

CommonMark lets `*` and `~` next to punctuation open or close only beside a blank or another sign,
so that the two signs after a Chinese colon in bold text would be shown. Here a Chinese, Japanese or
Korean letter or sign on either side of the run is enough. The page has the same rule, see
web/src/lib/cjk_emphasis.ts. Texts without such letters are not affected.
Source: github.com/commonmark/commonmark-spec/issues/650.

This module imports markdown_it.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline.state_inline import Scanned, StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe6f"
    "\uff00-\uffef\U0001aff0-\U0001b16f\U00020000-\U0003ffff\U000e0100-\U000e01ef]"
)
"""Letters and signs, and the selectors of variants that follow a letter."""
_SEPARATORS = "separators"
_SEPARATOR = "\u200b"
"""Neither a blank nor a sign."""


class _Run(NamedTuple):
    """A run of marks, and the signs beside it."""

    start: int
    end: int
    tokens: slice
    before: str
    after: str

    def flanks(self, separators: AbstractSet[int]) -> tuple[bool, bool]:
        """Return whether the run can open, and close, emphasis with separators at these places."""
        before = _SEPARATOR if self.start in separators else self.before
        after = _SEPARATOR if self.end in separators else self.after
        left, right = _is_sign(before), _is_sign(after)
        is_begin, is_end = isWhiteSpace(ord(before)), isWhiteSpace(ord(after))
        return (
            not is_end and (not right or is_begin or left),
            not is_begin and (not left or is_end or right),
        )


class _State(StateInline):
    runs: list[_Run]

    # the names are markdown_it's
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803
        scanned = super().scanDelims(start, canSplitWord)
        mark, end = self.src[start], start + scanned.length
        before = self.src[start - 1] if start else " "
        after = self.src[end] if end < self.posMax else " "
        first = len(self.tokens) + bool(self.pending)
        count = (scanned.length + 1) // 2 if mark == "~" else scanned.length
        self.runs.append(_Run(start, end, slice(first, first + count), before, after))
        if mark == "_" or not (_CJK.match(before) or _CJK.match(after)):
            return scanned
        return Scanned(not isWhiteSpace(ord(after)), not isWhiteSpace(ord(before)), scanned.length)


class _InlineParser(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        state.runs = []
        self.tokenize(state)
        # the rules change the list of tokens
        runs = [(run, state.tokens[run.tokens]) for run in state.runs]
        for rule in self.ruler2.getRules(""):
            rule(state)
        env[_SEPARATORS] = _separators(runs)
        return state.tokens


def _separators(runs: Sequence[tuple[_Run, Sequence[Token]]]) -> set[int]:
    """Return the inner ends of the runs for which the rule of CommonMark does not suffice.

    A separator beside a run is no sign, so the run on its other side may need one as well.
    """
    beside: defaultdict[int, list[int]] = defaultdict(list)
    for n, (run, _) in enumerate(runs):
        beside[run.start].append(n)
        beside[run.end].append(n)
    separators: set[int] = set()
    waiting = list(range(len(runs)))
    while waiting:
        run, tokens = runs[waiting.pop()]
        can_open, can_close = run.flanks(separators)
        found = {run.end for token in tokens if token.nesting > 0 and not can_open}
        found |= {run.start for token in tokens if token.nesting < 0 and not can_close}
        for place in found - separators:
            separators.add(place)
            waiting += beside[place]
    return separators


def _is_sign(char: str) -> bool:
    return isMdAsciiPunct(ord(char)) or isPunctChar(char)


def find_separators(parser: MarkdownIt, text: str) -> list[int]:
    """Return where text that is neither a blank nor a sign makes CommonMark show the emphasis.

    `parser` has the rule of this module. The text is a paragraph; the places are ascending.
    """
    env: dict[str, Any] = {}
    parser.parseInline(text, env)
    return sorted(env[_SEPARATORS])


def use_cjk_emphasis(parser: MarkdownIt) -> MarkdownIt:
    """Return the parser, which from now on follows the rule of this module."""
    inline = _InlineParser()
    inline.ruler, inline.ruler2 = parser.inline.ruler, parser.inline.ruler2
    parser.inline = inline
    return parser
