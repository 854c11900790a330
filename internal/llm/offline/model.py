"""The offline demo model: a handful of rules that drive the real plan, tools and answers.

It needs no key and no network, keeps nothing between calls, and says the same to the same messages.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from internal.agent.domain.messages import Message, Part, Text, ToolCall, ToolResult
from internal.agent.domain.text import replace_surrogates, replace_surrogates_in
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelRequest, ModelResponse, ModelStreamEvent, TextDelta
from internal.llm.offline.jobs import (
    Errand,
    Job,
    catalogue,
    chat,
    errands,
    label,
    language_of,
    report,
    understand,
    understood,
)
from internal.llm.registry import OFFLINE_MODEL

_PIECE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]|\S+?(?=[\u3000-\u9fff\uff00-\uffef])|\S+\s*|\s+")
_WISH = re.compile(r"<user_feedback>(.*)</user_feedback>", re.DOTALL)
_STEP = re.compile(r"^(\w+)\. (.+)$", re.MULTILINE)
_LONGEST_LINE = 300
_COMPLEX = 3  # so many errands make a plan complex: each step is then opened with `clarify`


class OfflineModel:
    """The demo model as a ModelClient. Its replies carry the model name `offline-demo`."""

    provider = "offline"

    def check_key(self) -> None:
        """Return: it needs no key."""

    def warm(self) -> None:
        """Read the catalogue now."""
        catalogue()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the reply word by word, then one Reply."""
        parts = tuple(_Conversation(request).reply())
        for part in parts:
            for piece in _PIECE.findall(part.text) if isinstance(part, Text) else ():
                yield TextDelta(piece)
                await asyncio.sleep(0)  # others take their turn, as with a model far away
        called = any(isinstance(part, ToolCall) for part in parts)
        yield ModelResponse(
            parts=parts,
            usage=Usage(
                input_tokens=_tokens(request.system) + _tokens(request.messages),
                output_tokens=_tokens(parts),
            ),
            stop="tools" if called else "end",
            model=OFFLINE_MODEL,
        )

    async def close(self) -> None:
        """Return: there is nothing to close."""


@dataclass(frozen=True)
class _Move:
    """A tool call that belongs to the job; `words` are said with it."""

    tool: str
    arguments: Mapping[str, Any]
    words: str = ""


class _Conversation:
    """What was asked last, and what was done about it since."""

    def __init__(self, request: ModelRequest) -> None:
        self._messages = request.messages
        self._tools = {tool.name for tool in request.tools}
        self._may_call = request.tool_choice != "none"
        # last words are asked for in words of their own, which stand after the request
        ask, since = _last_ask(request.messages, is_understood=not self._may_call)
        self._language = language_of(ask)
        self._jobs = _jobs_in(ask)
        self._done = list(_answered_calls(since))

    def reply(self) -> Iterator[Part]:
        """Give the parts of the next reply: words and at most one call."""
        work = [each for job in self._jobs for each in errands(job, self._language)]
        if not self._jobs:
            yield self._final(understood("unknown", self._language))
        elif not work:
            yield self._final("\n\n".join(chat(job, self._language) for job in self._jobs))
        else:
            yield from self._work(work)

    def _work(self, work: Sequence[Errand]) -> Iterator[Part]:
        told: list[str] = []
        move = self._next(work, told)
        if move is None:
            yield self._final("\n\n".join(told))
        elif self._may_call:
            if move.words:
                yield Text(move.words)
            yield ToolCall(self._call_id(), move.tool, dict(move.arguments))
        else:
            left = self._say("stopped", label=", ".join(map(self._label, work)))
            yield self._final("\n\n".join((*told, left)))

    def _next(self, work: Sequence[Errand], told: list[str]) -> _Move | None:
        """Return the first call without a result, None when all is done; tell what came of it."""
        wishes: list[str] = []
        while True:
            plan = self._plan(work, wishes)
            if (planned := self._outcome(plan)) is None:
                return plan
            if (wish := _WISH.search(planned.text)) is None:
                break
            wishes.append(self._say("wish", wish=_line(wish[1])))
        if planned.failed and "plan" in self._tools:
            told.append(self._say("refused", reason=planned.text))
            return None
        mine, others = self._agreed(work, planned.text, told)
        move = self._next_step(mine, told, is_complex=len(work) >= _COMPLEX)
        return move or self._next_closing(others, wishes, told)

    def _agreed(
        self, work: Sequence[Errand], planned: str, told: list[str]
    ) -> tuple[list[tuple[str, Errand]], list[tuple[str, str]]]:
        """Return the errands with the ids of their steps, and the steps that are none of them.

        What a person took out of the plan is not done.
        """
        listed = _STEP.findall(planned)
        listed = listed or [(str(n), self._label(this)) for n, this in enumerate(work, 1)]
        mine: list[tuple[str, Errand]] = []
        for this in work:
            found = next((step for step in listed if step[1] == self._label(this)), None)
            if found is None:
                told.append(self._say("removed", label=self._label(this)))
            else:
                listed.remove(found)
                mine.append((found[0], this))
        return mine, listed

    def _next_step(
        self, work: Sequence[tuple[str, Errand]], told: list[str], *, is_complex: bool
    ) -> _Move | None:
        for n, (step, this) in enumerate(work, 1):
            *openings, action = self._start(step, this, is_complex=is_complex)
            for opening in openings:
                if self._outcome(opening) is None:
                    return opening
            if (result := self._outcome(action)) is None:
                return action
            closing = _close(step, "failed" if _is_failed(result) else "completed")
            if self._outcome(closing) is None:
                return closing
            told.append(self._told(this, result))
            if _is_failed(result):
                told.extend(self._say("left", label=self._label(left)) for _, left in work[n:])
                break
        return None

    def _next_closing(
        self, steps: Sequence[tuple[str, str]], wishes: Sequence[str], told: list[str]
    ) -> _Move | None:
        """Close the steps that a person added: a wish is kept, the rest is beyond a demo."""
        for step, words in steps:
            closing = _close(step, "completed" if words in wishes else "skipped")
            if self._outcome(closing) is None:
                return closing
            if words not in wishes:
                told.append(self._say("beyond", label=words))
        return None

    def _outcome(self, move: _Move) -> ToolResult | None:
        """Return what a call gave, None when it is still to be made."""
        if move.tool not in self._tools:
            return ToolResult("", self._say("no_tool", tool=move.tool), failed=True)
        for n, (call, result) in enumerate(self._done):
            if (call.name, call.arguments) == (move.tool, move.arguments):
                del self._done[n]  # the same call may be wanted once more
                return result
        return None

    def _plan(self, work: Sequence[Errand], wishes: Sequence[str]) -> _Move:
        steps = [self._label(this) for this in work]
        goal = steps[0] if len(steps) == 1 else self._say("one_by_one", count=len(steps))
        complexity = "complex" if len(steps) >= _COMPLEX else "simple"
        plan = {"goal": goal, "complexity": complexity, "title": steps[0][:60]}
        return _Move("plan", {**plan, "steps": [*steps, *wishes]})

    def _start(self, step: str, this: Errand, *, is_complex: bool) -> Iterator[_Move]:
        """Give the calls that carry out a step; those of a complex plan are opened first."""
        if is_complex:
            goal = {"step_id": step, "goal": self._label(this), "needs_user_input": False}
            yield _Move("clarify", {**goal, "success_criteria": self._say("criteria")})
        yield _Move(this.tool, this.arguments, self._label(this) + "…")

    def _told(self, this: Errand, result: ToolResult) -> str:
        if _is_failed(result):
            return self._say("failed", label=self._label(this), reason=result.text)
        return report(this.job, result.text, self._language)

    def _label(self, this: Errand) -> str:
        return _line(label(this.job, self._language))

    def _say(self, name: str, **named: object) -> str:
        return catalogue().say(self._language, name, **named)

    def _final(self, text: str) -> Text:
        return Text(replace_surrogates(f"{text}\n\n{self._say('signature')}"))

    def _call_id(self) -> str:
        """Return an id that no earlier call has, the same for the same conversation."""
        said = msgspec.json.encode(_whole(self._messages))
        return "offline_" + hashlib.blake2s(said, digest_size=8).hexdigest()


def _jobs_in(ask: str) -> list[Job]:
    return understand(ask) or understand(ask.strip().rpartition("\n")[2])


def _last_ask(messages: Sequence[Message], *, is_understood: bool) -> tuple[str, Sequence[Message]]:
    """Return the words of the last user message that has any, and the messages after it.

    Of those that are understood, if any is and that is wanted.
    """
    asks = [n for n, each in enumerate(messages) if each.role == "user" and each.text.strip()]
    known = [n for n in asks if is_understood and _jobs_in(replace_surrogates(messages[n].text))]
    if not asks:
        return "", ()
    n = (known or asks)[-1]
    return replace_surrogates(messages[n].text), messages[n + 1 :]


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"


def _close(step: str, status: str) -> _Move:
    return _Move("update_plan", {"step_id": step, "status": status})


def _is_failed(result: ToolResult) -> bool:
    """Whether nothing came of a call; a correction by a gate is no failure, but no result."""
    return result.failed or result.text.startswith("Not run")


def _answered_calls(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, ToolResult]]:
    given = {
        part.call_id: part for m in messages for part in m.parts if isinstance(part, ToolResult)
    }
    for message in messages:
        for call in message.calls:
            if call.call_id in given:
                yield call, given[call.call_id]


def _whole(value: object) -> Any:
    return replace_surrogates_in(msgspec.to_builtins(value))


def _tokens(value: object) -> int:
    """Estimate: four bytes of UTF-8 are about a token."""
    return len(msgspec.json.encode(_whole(value))) // 4
