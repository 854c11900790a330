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

from internal.agent.domain.budgets import Usage
from internal.agent.domain.messages import Message, Part, Text, ToolCall, ToolResult
from internal.agent.ports.llm import ModelPiece, ModelRequest, Reply, Words
from internal.llm.offline_jobs import (
    Errand,
    catalogue,
    chat,
    errand,
    label,
    language_of,
    report,
    understand,
    understood,
)
from internal.llm.text import whole, whole_values

MODEL = "offline-demo"
_PIECE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]|\S+?(?=[\u3000-\u9fff\uff00-\uffef])|\S+\s*|\s+")
_COMPLEX = 3  # so many errands make a plan complex: each step is then opened with `clarify`


class OfflineModel:
    """The demo model as a ModelClient. Its replies carry the model name `offline-demo`."""

    provider = "offline"

    def check_key(self) -> None:
        """Return: it needs no key."""

    def warm(self) -> None:
        """Read the catalogue now."""
        catalogue()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelPiece, None]:
        """Yield the reply word by word, then one Reply."""
        parts = tuple(_Conversation(request).reply())
        for part in parts:
            for piece in _PIECE.findall(part.text) if isinstance(part, Text) else ():
                yield Words(piece)
                await asyncio.sleep(0)  # others take their turn, as with a model far away
        called = any(isinstance(part, ToolCall) for part in parts)
        yield Reply(
            parts=parts,
            usage=Usage(
                input_tokens=_tokens(request.system) + _tokens(request.messages),
                output_tokens=_tokens(parts),
            ),
            stop="tools" if called else "end",
            model=MODEL,
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
        ask, since = _last_ask(request.messages)
        self._messages = request.messages
        self._language = language_of(ask)
        self._tools = {tool.name for tool in request.tools}
        self._may_call = request.tool_choice != "none"
        self._jobs = understand(ask) or understand(ask.strip().rpartition("\n")[2])
        self._done = list(_answered_calls(since))

    def reply(self) -> Iterator[Part]:
        """Give the parts of the next reply: words and at most one call."""
        errands = [found for job in self._jobs if (found := errand(job, self._language))]
        if not self._jobs:
            yield self._final(understood("unknown", self._language))
        elif not errands:
            yield self._final("\n\n".join(chat(job, self._language) for job in self._jobs))
        else:
            yield from self._work(errands)

    def _work(self, errands: Sequence[Errand]) -> Iterator[Part]:
        told: list[str] = []
        move = self._next(errands, told)
        if move is None:
            yield self._final("\n\n".join(told))
        elif self._may_call:
            if move.words:
                yield Text(move.words)
            yield ToolCall(self._call_id(), move.tool, dict(move.arguments))
        else:
            left = self._say("stopped", label=", ".join(map(self._label, errands)))
            yield self._final("\n\n".join((*told, left)))

    def _next(self, errands: Sequence[Errand], told: list[str]) -> _Move | None:
        """Return the first call without a result, None when all is done; tell what came of it."""
        plan = self._plan(errands)
        if (planned := self._outcome(plan)) is None:
            return plan
        if planned.failed and "plan" in self._tools:
            told.append(self._say("refused", reason=planned.text))
            return None
        return self._next_step(errands, told)

    def _next_step(self, errands: Sequence[Errand], told: list[str]) -> _Move | None:
        for n, this in enumerate(errands, 1):
            *openings, action = self._start(n, this, is_complex=len(errands) >= _COMPLEX)
            for opening in openings:
                if self._outcome(opening) is None:
                    return opening
            if (result := self._outcome(action)) is None:
                return action
            closing = self._close(n, result)
            if self._outcome(closing) is None:
                return closing
            told.append(self._told(this, result))
            if result.failed:
                told.extend(self._say("left", label=self._label(left)) for left in errands[n:])
                break
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

    def _plan(self, errands: Sequence[Errand]) -> _Move:
        steps = [self._label(this) for this in errands]
        goal = steps[0] if len(steps) == 1 else self._say("one_by_one", count=len(steps))
        complexity = "complex" if len(steps) >= _COMPLEX else "simple"
        plan = {"goal": goal, "complexity": complexity, "steps": steps, "title": steps[0][:60]}
        return _Move("plan", plan)

    def _start(self, n: int, this: Errand, *, is_complex: bool) -> Iterator[_Move]:
        """Give the calls that carry out step `n`; those of a complex plan are opened first."""
        if is_complex:
            goal = {"step_id": str(n), "goal": self._label(this), "needs_user_input": False}
            yield _Move("clarify", {**goal, "success_criteria": self._say("criteria")})
        yield _Move(this.tool, this.arguments, self._label(this) + "…")

    def _close(self, n: int, result: ToolResult) -> _Move:
        status = "failed" if result.failed else "completed"
        return _Move("update_plan", {"step_id": str(n), "status": status})

    def _told(self, this: Errand, result: ToolResult) -> str:
        if result.failed:
            return self._say("failed", label=self._label(this), reason=result.text)
        return report(this.job, result.text, self._language)

    def _label(self, this: Errand) -> str:
        return label(this.job, self._language)

    def _say(self, name: str, **named: object) -> str:
        return catalogue().say(self._language, name, **named)

    def _final(self, text: str) -> Text:
        return Text(whole(f"{text}\n\n{self._say('signature')}"))

    def _call_id(self) -> str:
        """Return an id that no earlier call has, the same for the same conversation."""
        said = msgspec.json.encode(_whole(self._messages))
        return "offline_" + hashlib.blake2s(said, digest_size=8).hexdigest()


def _last_ask(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """Return the words of the last user message that has any, and the messages after it."""
    for n in range(len(messages) - 1, -1, -1):
        if messages[n].role == "user" and messages[n].text.strip():
            return whole(messages[n].text), messages[n + 1 :]
    return "", ()


def _answered_calls(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, ToolResult]]:
    given = {
        part.call_id: part for m in messages for part in m.parts if isinstance(part, ToolResult)
    }
    for message in messages:
        for call in message.calls:
            if call.call_id in given:
                yield call, given[call.call_id]


def _whole(value: object) -> Any:
    return whole_values(msgspec.to_builtins(value))


def _tokens(value: object) -> int:
    """Estimate: four bytes of UTF-8 are about a token."""
    return len(msgspec.json.encode(_whole(value))) // 4
