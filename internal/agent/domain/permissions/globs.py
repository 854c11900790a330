"""Globs for paths: `*` and `?` within one segment, `**` across segments, `[*]` for the character.

A glob is a state machine whose states are the bits of one number. Matching always takes one pass
over the path: a regular expression with several stars would backtrack.
"""

import re
from functools import lru_cache

_TOKEN = re.compile(r"\*\*/?|\[[*?]\]|.", re.DOTALL)


class Glob:
    """A glob that is matched against normalized paths."""

    def __init__(self, text: str) -> None:
        self._literals: dict[str, int] = {}  # the states that each character leaves
        self._one = self._star = self._any = self._folders = self._inside = 0
        state = 1
        runs = [""]
        for token in _TOKEN.findall(text):
            char = token[1] if len(token) == len("[*]") and token[0] == "[" else token
            if token in {"*", "**", "**/", "?"}:
                runs.append("")
                state = self._add_wildcard(token, state)
            else:
                runs[-1] += char
                self._literals[char] = self._literals.get(char, 0) | state
                state <<= 1
        self._accepted = state
        self._required = max(runs, key=len)
        self._start = self._close(1)

    def _add_wildcard(self, token: str, state: int) -> int:
        """Add the states of a wildcard and return the state after it."""
        match token:
            case "?":
                self._one |= state
            case "*":
                self._star |= state
            case "**":
                self._any |= state
            case _:  # nothing, or any text that ends with a slash
                self._folders |= state
                self._inside |= state << 1
                return state << 2
        return state << 1

    def matches(self, path: str, *, tails: bool = False) -> bool:
        """Return True if the path matches; with `tails` also if one of its ends does.

        An end of `a/b/c` is the part after a slash: `b/c` and `c`.
        """
        if self._required not in path:
            return False
        states = self._start
        begins = False
        for char in path:
            if begins:
                states |= self._start
            states = self._step(states, char)
            begins = tails and char == "/"
        return bool(states & self._accepted)

    def _step(self, states: int, char: str) -> int:
        left = self._literals.get(char, 0)
        kept = self._any | self._inside
        if char == "/":
            left |= self._inside
        else:
            left |= self._one
            kept |= self._star
        return self._close((states & left) << 1 | states & kept)

    def _close(self, states: int) -> int:
        """Return the states with all that are reached without a character."""
        skipped = self._star | self._any | self._folders
        while states & skipped:
            wider = states | (states & skipped) << 1 | (states & self._folders) << 2
            if wider == states:
                break
            states = wider
        return states


@lru_cache(maxsize=1024)
def compile_glob(text: str) -> Glob:
    """Return the glob of a normalized text."""
    return Glob(text)
