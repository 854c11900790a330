"""Reasoning that a model writes into the content of its reply, between tags.

`<think>…</think>` at the start of the content is reasoning. So is all text before a closing tag
alone: the template of such a model has opened the tag. A tag later in the text, in code or in
quotation marks, is text.
"""

import re
from typing import Literal, NamedTuple

from internal.llm.code_context import CodeContext

_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
}
_CLOSING = frozenset(_TAGS.values())
_TAG = re.compile("|".join(map(re.escape, (*_TAGS, *_CLOSING))))
_INTERESTING = re.compile(r"<(?:[/ts]|\Z)|\[(?:[/T]|\Z)")
_REACT = {"Thought:": "Final Answer:", "Final Answer:": ""}
_REACT_END = re.compile(r"^[ \t]*(?:Final Answer:|(?=Action:))", re.MULTILINE)
_MAX_MARK_LENGTH = max(map(len, (*_TAGS, *_CLOSING, "\n    Final Answer: ")))

_State = Literal["start", "inside", "react", "presumed", "answer", "done"]


class Segment(NamedTuple):
    """The next text of the content. `replaces`: all text before it was taken for the other kind.

    Then `text` is the whole text so far.
    """

    text: str
    reasoning: bool
    replaces: bool = False


class ThinkTags:
    """Splits streamed content into reasoning and answer, however it is cut.

    Args:
        begins_inside: the content is taken for reasoning until a closing tag comes, as in the last
            reply of this model.
        react: `Thought:` at the start is reasoning until `Final Answer:` or `Action:`.
    """

    def __init__(self, *, begins_inside: bool = False, react: bool = False) -> None:
        self.closed_alone: bool | None = None
        """True if a closing tag came alone, False if one was expected and did not come."""
        self._begins_inside, self._react = begins_inside, react
        self._state: _State = "start"
        self._closing = ""
        self._held = ""
        self._shown: list[str] = []
        self._is_after_block = False
        self._is_line_start = True
        self._mark = ""

    def passes(self, text: str) -> bool:
        """Take the next text if all of it is answer; almost all is. Otherwise it is to be fed."""
        if self._held or self._state not in {"done", "answer"}:
            return False
        if self._state == "answer":
            if _INTERESTING.search(text):
                return False
            self._shown.append(text)
        return True

    def feed(self, text: str) -> list[Segment]:
        """Take the next text and return the part of it that is certain."""
        self._held += text
        return self._advance(at_end=False)

    def end(self, *, is_cut: bool = False) -> list[Segment]:
        """Take the end of the content and return the text that was held back.

        Text that is taken for reasoning was the answer if nothing ended it, unless the reply
        `is_cut` at its limit.
        """
        segments = self._advance(at_end=True)
        if self._state in {"presumed", "react"} and not is_cut:
            whole = "".join((self._mark, *self._shown, self._held))
            self._held = ""
            if self._state == "presumed":
                self.closed_alone = False
            if whole:
                segments.append(Segment(whole, reasoning=False, replaces=True))
        elif self._held:
            is_reasoning = self._state in {"inside", "presumed", "react"}
            segments.append(self._release(len(self._held), reasoning=is_reasoning))
        return segments

    def _advance(self, *, at_end: bool) -> list[Segment]:
        segments: list[Segment] = []
        while True:
            state, held = self._state, self._held
            match state:
                case "start":
                    found = self._start(at_end=at_end)
                case "inside":
                    found = self._inside()
                case "react":
                    found = self._react_thought(at_end=at_end)
                case "presumed":
                    found = self._presumed()
                case "answer":
                    found = self._answer(at_end=at_end)
                case _:
                    found = [self._release(len(held), reasoning=False)] if held else []
            segments += found
            if (state, held) == (self._state, self._held) or not self._held:
                return segments

    def _start(self, *, at_end: bool) -> list[Segment]:
        """Determine the kind of the first text: reasoning or answer."""
        text = self._held.lstrip()
        marks = (*_TAGS, *_CLOSING, *(_REACT if self._react else ()))
        begun = next((mark for mark in marks if text.startswith(mark)), None)
        if begun is None:
            if not at_end and (not text or any(mark.startswith(text) for mark in marks)):
                return []
            if self._is_after_block:
                self._held, self._state = text, "done"
            else:
                self._state = "presumed" if self._begins_inside else "answer"
            return []
        self._held = text[len(begun) :]
        self._is_after_block = True
        if begun in _CLOSING:
            self.closed_alone = True
        elif begun in _TAGS:
            self._state, self._closing = "inside", _TAGS[begun]
        else:
            self._react = False
            self._mark = begun
            self._state = "react" if _REACT[begun] else "start"
        return []

    def _inside(self) -> list[Segment]:
        place = self._held.find(self._closing)
        if place < 0:
            safe = len(self._held) - _begun(self._held)
            return [self._release(safe, reasoning=True)] if safe else []
        found = [self._release(place, reasoning=True)] if place else []
        self._held = self._held[len(self._closing) :]
        self._state = "start"
        return found

    def _react_thought(self, *, at_end: bool) -> list[Segment]:
        held = self._held
        start = 0 if self._is_line_start else held.find("\n") + 1 or len(held)
        end = _REACT_END.search(held, start)
        if end is not None:
            found = [self._keep(end.start(), reasoning=True)] if end.start() else []
            self._held = held[end.end() :]
            self._state, self._is_after_block = "start", True
            return found
        safe = held.rfind("\n") + 1
        if at_end or len(held) - safe > _MAX_MARK_LENGTH:
            safe = len(held)
        if not safe:
            return []
        self._is_line_start = held[safe - 1] == "\n"
        return [self._keep(safe, reasoning=True)]

    def _presumed(self) -> list[Segment]:
        tag = next((each for each in _TAG.finditer(self._held) if each[0] in _CLOSING), None)
        if tag is None:
            safe = len(self._held) - _begun(self._held)
            return [self._keep(safe, reasoning=True)] if safe else []
        if self._is_literal(tag.start()):
            return [self._keep(tag.end(), reasoning=True)]
        found = [self._keep(tag.start(), reasoning=True)] if tag.start() else []
        self._held = self._held[len(tag[0]) :]
        self._close_alone()
        return found

    def _answer(self, *, at_end: bool) -> list[Segment]:
        tag = _TAG.search(self._held)
        if tag is None:
            safe = len(self._held) - _begun(self._held)
            return [self._keep(safe, reasoning=False)] if safe else []
        before, behind = self._held[: tag.start()], self._held[tag.end() :].lstrip(" \t\r")
        if tag[0] in _CLOSING and not behind and not at_end:
            return [self._keep(tag.start(), reasoning=False)] if tag.start() else []
        line = ("".join(self._shown[-_MAX_MARK_LENGTH:]) + before).rpartition("\n")[2]
        # in the middle of a line the tag is the subject of the text
        is_alone = not line.strip() or not behind or behind.startswith("\n")
        if tag[0] not in _CLOSING or not is_alone or self._is_literal(tag.start()):
            self._state = "done"
            self._shown.clear()
            return []
        whole = "".join((*self._shown, before))
        self._held = self._held[tag.end() :]
        self._close_alone()
        return [Segment(whole, reasoning=True, replaces=True)]

    def _close_alone(self) -> None:
        self._state, self._is_after_block = "start", True
        self.closed_alone = True
        self._shown.clear()

    def _is_literal(self, place: int) -> bool:
        context = CodeContext()
        context.feed("".join((*self._shown, self._held[:place])))
        return context.is_literal

    def _keep(self, length: int, *, reasoning: bool) -> Segment:
        """Release text whose kind may still turn out to be the other one."""
        segment = self._release(length, reasoning=reasoning)
        self._shown.append(segment.text)
        return segment

    def _release(self, length: int, *, reasoning: bool) -> Segment:
        text, self._held = self._held[:length], self._held[length:]
        return Segment(text, reasoning)


def split_thinking(
    text: str, *, begins_inside: bool = False, react: bool = False, is_cut: bool = False
) -> tuple[str, str]:
    """Return the reasoning and the answer in a whole content."""
    tags = ThinkTags(begins_inside=begins_inside, react=react)
    thoughts: list[str] = []
    answer: list[str] = []
    for segment in (*tags.feed(text), *tags.end(is_cut=is_cut)):
        if segment.replaces:
            thoughts, answer = [], []
        (thoughts if segment.reasoning else answer).append(segment.text)
    return "".join(thoughts).strip(), "".join(answer)


def _begun(text: str) -> int:
    """Return how many characters at the end may be the start of a tag."""
    tail = text[max(text.rfind("<"), text.rfind("[")) :]  # no tag has one of them inside
    return len(tail) if any(tag.startswith(tail) for tag in (*_TAGS, *_CLOSING)) else 0
