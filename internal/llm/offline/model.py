"""The offline demo model: a few rules that drive the real plan, tools and answers.

It needs no key and no network, keeps no state, and gives the same messages the same response.
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
    Job,
    ToolJob,
    answer_job,
    describe_job,
    describe_result,
    detect_language,
    greeting,
    load_catalog,
    parse_jobs,
    tool_jobs,
)
from internal.llm.registry import OFFLINE_MODEL

_PIECE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]|\S+?(?=[\u3000-\u9fff\uff00-\uffef])|\S+\s*|\s+")
_WISH = re.compile(r"<user_feedback>(.*)</user_feedback>", re.DOTALL)
_STEP = re.compile(r"^(\w+)\. (.+)$", re.MULTILINE)
_MAX_LINE_CHARACTERS = 300
_COMPLEX = 3  # with this many tool jobs a plan is complex: each step is opened with `clarify`


class OfflineModel:
    """The demo model as a `ModelClient`. Its responses carry the model name `offline-demo`."""

    provider = "offline"

    def check_key(self) -> None:
        """Do nothing: no key is needed."""

    def preload(self) -> None:
        """Read the catalog."""
        load_catalog()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the text word by word, then one `ModelResponse`."""
        parts = tuple(_Conversation(request).reply())
        for part in parts:
            for piece in _PIECE.findall(part.text) if isinstance(part, Text) else ():
                yield TextDelta(piece)
                await asyncio.sleep(0)  # let other tasks run, as a remote model would
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
        """Do nothing: there is nothing to close."""


@dataclass(frozen=True)
class _Move:
    """A tool call that belongs to the job; `words` are said with it."""

    tool: str
    arguments: Mapping[str, Any]
    words: str = ""


class _Conversation:
    """The last request of the user and what was done about it since."""

    def __init__(self, request: ModelRequest) -> None:
        self._messages = request.messages
        self._tools = {tool.name for tool in request.tools}
        self._may_call = request.tool_choice != "none"
        # a closing prompt follows the request in a message of its own
        ask, since = _last_ask(request.messages, is_understood=not self._may_call)
        self._language = detect_language(ask)
        self._jobs = _jobs_in(ask)
        self._done = list(_answered_calls(since))

    def reply(self) -> Iterator[Part]:
        """Return the parts of the next response: text and at most one call."""
        work = [each for job in self._jobs for each in tool_jobs(job, self._language)]
        if not self._jobs:
            yield self._final(greeting("unknown", self._language))
        elif not work:
            yield self._final("\n\n".join(answer_job(job, self._language) for job in self._jobs))
        else:
            yield from self._work(work)

    def _work(self, work: Sequence[ToolJob]) -> Iterator[Part]:
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

    def _next(self, work: Sequence[ToolJob], told: list[str]) -> _Move | None:
        """Return the first call without a result, or None; collect the outcomes so far."""
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
        self, work: Sequence[ToolJob], planned: str, told: list[str]
    ) -> tuple[list[tuple[str, ToolJob]], list[tuple[str, str]]]:
        """Return the tool jobs with the ids of their steps, and the steps that belong to none.

        Steps that a person removed from the plan are not executed.
        """
        listed = _STEP.findall(planned)
        listed = listed or [(str(n), self._label(this)) for n, this in enumerate(work, 1)]
        mine: list[tuple[str, ToolJob]] = []
        for this in work:
            found = next((step for step in listed if step[1] == self._label(this)), None)
            if found is None:
                told.append(self._say("removed", label=self._label(this)))
            else:
                listed.remove(found)
                mine.append((found[0], this))
        return mine, listed

    def _next_step(
        self, work: Sequence[tuple[str, ToolJob]], told: list[str], *, is_complex: bool
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
        """Close the steps that a person added; the demo cannot execute them."""
        for step, words in steps:
            closing = _close(step, "completed" if words in wishes else "skipped")
            if self._outcome(closing) is None:
                return closing
            if words not in wishes:
                told.append(self._say("beyond", label=words))
        return None

    def _outcome(self, move: _Move) -> ToolResult | None:
        """Return the result of a call, or None if it was not made yet."""
        if move.tool not in self._tools:
            return ToolResult("", self._say("no_tool", tool=move.tool), failed=True)
        for n, (call, result) in enumerate(self._done):
            if (call.name, call.arguments) == (move.tool, move.arguments):
                del self._done[n]  # the same call may be needed again
                return result
        return None

    def _plan(self, work: Sequence[ToolJob], wishes: Sequence[str]) -> _Move:
        steps = [self._label(this) for this in work]
        goal = steps[0] if len(steps) == 1 else self._say("one_by_one", count=len(steps))
        complexity = "complex" if len(steps) >= _COMPLEX else "simple"
        plan = {"goal": goal, "complexity": complexity, "title": steps[0][:60]}
        return _Move("plan", {**plan, "steps": [*steps, *wishes]})

    def _start(self, step: str, this: ToolJob, *, is_complex: bool) -> Iterator[_Move]:
        """Return the calls that carry out a step; steps of a complex plan are opened first."""
        if is_complex:
            goal = {"step_id": step, "goal": self._label(this), "needs_user_input": False}
            yield _Move("clarify", {**goal, "success_criteria": self._say("criteria")})
        yield _Move(this.tool, this.arguments, self._label(this) + "…")

    def _told(self, this: ToolJob, result: ToolResult) -> str:
        if _is_failed(result):
            return self._say("failed", label=self._label(this), reason=result.text)
        return describe_result(this.job, result.text, self._language)

    def _label(self, this: ToolJob) -> str:
        return _line(describe_job(this.job, self._language))

    def _say(self, name: str, **named: object) -> str:
        return load_catalog().say(self._language, name, **named)

    def _final(self, text: str) -> Text:
        return Text(replace_surrogates(f"{text}\n\n{self._say('signature')}"))

    def _call_id(self) -> str:
        """Return an id that no earlier call has; the same conversation gives the same id."""
        said = msgspec.json.encode(_whole(self._messages))
        return "offline_" + hashlib.blake2s(said, digest_size=8).hexdigest()


def _jobs_in(ask: str) -> list[Job]:
    return parse_jobs(ask) or parse_jobs(ask.strip().rpartition("\n")[2])


def _last_ask(messages: Sequence[Message], *, is_understood: bool) -> tuple[str, Sequence[Message]]:
    """Return the text of the last user message, and the messages after it.

    If a message that the demo understands is wanted and there is one, the last such message counts.
    """
    asks = [n for n, each in enumerate(messages) if each.role == "user" and each.text.strip()]
    known = [n for n in asks if is_understood and _jobs_in(replace_surrogates(messages[n].text))]
    if not asks:
        return "", ()
    n = (known or asks)[-1]
    return replace_surrogates(messages[n].text), messages[n + 1 :]


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LINE_CHARACTERS else f"{line[:_MAX_LINE_CHARACTERS]}…"


def _close(step: str, status: str) -> _Move:
    return _Move("update_plan", {"step_id": step, "status": status})


def _is_failed(result: ToolResult) -> bool:
    """Return True if a call produced no result; a gate's correction counts neither way."""
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
    """Estimate tokens: four bytes of UTF-8 per token."""
    return len(msgspec.json.encode(_whole(value))) // 4
