"""The replies of the demo model, from the request and the calls that were answered since."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from internal.agent.domain.messages import Message, Part, Text, ToolCall, ToolResult
from internal.agent.domain.text import replace_surrogates, replace_surrogates_in
from internal.agent.ports.llm import ModelRequest
from internal.llm.offline.catalog import Job, detect_language, load_catalog, preload_catalog
from internal.llm.offline.delegation import ended_tasks, is_end_message
from internal.llm.offline.jobs import (
    ToolJob,
    answer_job,
    describe_job,
    describe_result,
    fill_in,
    find_unknown_part,
    introduction,
    parse_jobs,
    tool_jobs,
    with_attachments,
)

_FEEDBACK = re.compile(r"<user_feedback>(.*)</user_feedback>", re.DOTALL)
_BACKGROUND = re.compile(
    r"<(quoted_message|recent_messages|forwarded_messages|attachment)\b[^>]*>.*?</\1>\s*", re.DOTALL
)
_ATTACHMENT = re.compile(r'^<attachment name="([^"\n]*)" path="([^"\n]*)"', re.MULTILINE)
_MESSAGE_TAG = re.compile(r"^</?message\b[^>\n]*>$", re.MULTILINE)
_STEP = re.compile(r"^(\w+)\. (.+)$", re.MULTILINE)
_MAX_LINE_CHARACTERS = 300
_COMPLEX = 3  # with tool_job many tool jobs a plan is complex: each step is opened with `clarify`


@dataclass(frozen=True)
class _PlannedCall:
    """A tool call that belongs to a job; `text` precedes it in the reply."""

    tool: str
    arguments: Mapping[str, Any]
    text: str = ""


class Conversation:
    """The last request of the user and the calls that were answered since."""

    def __init__(self, request: ModelRequest) -> None:
        self._messages = request.messages
        self._tools = {tool.name for tool in request.tools}
        self._may_call = request.tool_choice != "none"
        # a closing prompt follows the request in a message of its own
        request_text, since = _last_request(request.messages, is_understood=not self._may_call)
        self._language = detect_language(request_text)
        attached = _attached(request.messages)
        jobs = _jobs_in(request_text) if request_text else []
        if not jobs and (attached or not request_text):  # files are quoted, whatever is asked
            jobs = [Job("summary", {})]
        self._jobs = with_attachments(jobs, attached)
        self._request_text = request_text
        self._done = list(_answered_calls(since))

    @staticmethod
    def read_rules() -> None:
        """Read the rules of every conversation, if that was not done yet."""
        preload_catalog()

    def reply(self) -> Iterator[Part]:
        """Return the parts of the next response: text and at most one call."""
        work = [each for job in self._jobs for each in tool_jobs(job, self._language)]
        if not self._jobs:
            yield self._answer_text(self._not_understood())
        elif not work:
            yield self._answer_text("\n\n".join(self._answers()))
        else:
            yield from self._carry_out(work)

    def _answers(self) -> Iterator[str]:
        """Yield the answers to the jobs that take no tool."""
        for job in self._jobs:
            if not tool_jobs(job, self._language):
                yield answer_job(job, self._language)

    def _not_understood(self) -> str:
        part = _line(find_unknown_part(self._request_text))
        opening = "partly" if part else "unknown"
        return introduction(opening, self._language, part=part)

    def _carry_out(self, work: Sequence[ToolJob]) -> Iterator[Part]:
        outcomes: list[str] = []
        call = self._next_call(work, outcomes)
        if call is None:
            yield self._answer_text("\n\n".join((*outcomes, *self._answers())))
        elif self._may_call:
            if call.text:
                yield Text(call.text)
            yield ToolCall(self._call_id(), call.tool, dict(call.arguments))
        else:
            left = self._phrase("stopped", label=", ".join(map(self._label, work)))
            yield self._answer_text("\n\n".join((*outcomes, left)))

    def _next_call(self, work: Sequence[ToolJob], outcomes: list[str]) -> _PlannedCall | None:
        """Return the first call without a result, or None; collect the outcomes so far."""
        notes: list[str] = []
        while True:
            plan = self._plan(work, notes)
            if (plan_result := self._outcome(plan)) is None:
                return plan
            if (feedback := _FEEDBACK.search(plan_result.text)) is None:
                break
            notes.append(self._phrase("note", note=_line(feedback[1])))
        if plan_result.failed and "plan" in self._tools:
            outcomes.append(self._phrase("refused", reason=plan_result.text))
            return None
        matched, added = self._match_steps(work, plan_result.text, outcomes)
        call = self._next_step_call(matched, outcomes, is_complex=len(work) >= _COMPLEX)
        return call or self._next_closing_call(added, notes, outcomes)

    def _match_steps(
        self, work: Sequence[ToolJob], plan_result: str, outcomes: list[str]
    ) -> tuple[list[tuple[str, ToolJob]], list[tuple[str, str]]]:
        """Return the tool jobs with the ids of their steps, and the steps that belong to none.

        Steps that a person removed from the plan are not executed.
        """
        listed = _STEP.findall(plan_result)
        listed = listed or [(str(n), self._label(tool_job)) for n, tool_job in enumerate(work, 1)]
        matched: list[tuple[str, ToolJob]] = []
        for tool_job in work:
            found = next((step for step in listed if step[1] == self._label(tool_job)), None)
            if found is None:
                outcomes.append(self._phrase("removed", label=self._label(tool_job)))
            else:
                listed.remove(found)
                matched.append((found[0], tool_job))
        return matched, listed

    def _next_step_call(
        self, work: Sequence[tuple[str, ToolJob]], outcomes: list[str], *, is_complex: bool
    ) -> _PlannedCall | None:
        before = ""
        for n, (step, planned) in enumerate(work, 1):
            tool_job = fill_in(planned, before, self._language)
            *openings, action = self._step_calls(step, tool_job, is_complex=is_complex)
            for opening in openings:
                if self._outcome(opening) is None:
                    return opening
            if (result := self._outcome(action)) is None:
                return action
            closing = _close(step, "failed" if _is_failed(result) else "completed")
            if self._outcome(closing) is None:
                return closing
            outcomes.append(self._describe(tool_job, result))
            before = result.text
            if _is_failed(result):
                outcomes.extend(
                    self._phrase("skipped", label=self._label(left)) for _, left in work[n:]
                )
                break
        return None

    def _next_closing_call(
        self, steps: Sequence[tuple[str, str]], notes: Sequence[str], outcomes: list[str]
    ) -> _PlannedCall | None:
        """Close the steps that a person added; the demo cannot execute them."""
        for step, description in steps:
            closing = _close(step, "completed" if description in notes else "skipped")
            if self._outcome(closing) is None:
                return closing
            if description not in notes:
                outcomes.append(self._phrase("unsupported_step", label=description))
        return None

    def _outcome(self, call: _PlannedCall) -> ToolResult | None:
        """Return the result of a call, or None if it was not made yet."""
        if call.tool not in self._tools:
            return ToolResult("", self._phrase("no_tool", tool=call.tool), failed=True)
        for n, (done, result) in enumerate(self._done):
            if (done.name, done.arguments) == (call.tool, call.arguments):
                del self._done[n]  # the same call may be needed again
                return result
        return None

    def _plan(self, work: Sequence[ToolJob], notes: Sequence[str]) -> _PlannedCall:
        steps = [self._label(tool_job) for tool_job in work]
        goal = steps[0] if len(steps) == 1 else self._phrase("one_by_one", count=len(steps))
        complexity = "complex" if len(steps) >= _COMPLEX else "simple"
        plan = {"goal": goal, "complexity": complexity, "title": steps[0][:60]}
        return _PlannedCall("plan", {**plan, "steps": [*steps, *notes]})

    def _step_calls(
        self, step: str, tool_job: ToolJob, *, is_complex: bool
    ) -> Iterator[_PlannedCall]:
        """Return the calls that carry out a step; steps of a complex plan are opened first."""
        if is_complex:
            goal = {"step_id": step, "goal": self._label(tool_job), "needs_user_input": False}
            yield _PlannedCall("clarify", {**goal, "success_criteria": self._phrase("criteria")})
        yield _PlannedCall(tool_job.tool, tool_job.arguments, self._label(tool_job) + "…")

    def _describe(self, tool_job: ToolJob, result: ToolResult) -> str:
        if _is_failed(result):
            return self._phrase("failed", label=self._label(tool_job), reason=result.text)
        return describe_result(tool_job.job, result.text, self._language)

    def _label(self, tool_job: ToolJob) -> str:
        return _line(describe_job(tool_job.job, self._language))

    def _phrase(self, name: str, **named: object) -> str:
        return load_catalog().phrase(self._language, name, **named)

    def _answer_text(self, text: str) -> Text:
        return Text(replace_surrogates(f"{text}\n\n{self._phrase('signature')}"))

    def _call_id(self) -> str:
        """Return an id that no earlier call has; the same conversation gives the same id."""
        encoded = msgspec.json.encode(replace_surrogates_in(msgspec.to_builtins([*self._messages])))
        return "offline_" + hashlib.blake2s(encoded, digest_size=8).hexdigest()


def _jobs_in(request_text: str) -> list[Job]:
    if results := ended_tasks(request_text):
        return [Job("ended", {"results": results})]
    return parse_jobs(request_text) or parse_jobs(request_text.strip().rpartition("\n")[2])


def _attached(messages: Sequence[Message]) -> dict[str, str]:
    """Return the paths of the files that the user attached, by name, the newest last."""
    found: dict[str, str] = {}
    for message in messages:
        for name, path in _ATTACHMENT.findall(message.text) if message.role == "user" else ():
            found.pop(name, None)
            found[name] = path
    return found


def read_words(message: Message) -> str:
    """Return the person's own text, without speakers and quoted messages."""
    text = replace_surrogates(message.text).strip()
    while block := _BACKGROUND.match(text):
        text = text[block.end() :]
    if text.startswith("<message from="):
        text = _MESSAGE_TAG.sub("", text)
    return text.strip()


def _last_request(
    messages: Sequence[Message], *, is_understood: bool
) -> tuple[str, Sequence[Message]]:
    """Return the text of the last user message, and the messages after it.

    If a message that the demo understands is wanted and there is one, the last such message counts.
    """
    requests = [
        n
        for n, each in enumerate(messages)
        if each.role == "user" and each.text.strip() and not is_end_message(each.text)
    ]
    known = [n for n in requests if is_understood and _jobs_in(read_words(messages[n]))]
    if not requests:
        return "", ()
    n = (known or requests)[-1]
    return read_words(messages[n]), messages[n + 1 :]


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LINE_CHARACTERS else f"{line[:_MAX_LINE_CHARACTERS]}…"


def _close(step: str, status: str) -> _PlannedCall:
    return _PlannedCall("update_plan", {"step_id": step, "status": status})


def _is_failed(result: ToolResult) -> bool:
    """Return True if a call produced no result; a gate's correction counts neither way."""
    return result.failed or result.text.startswith("Not run")


def _answered_calls(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, ToolResult]]:
    results = {
        part.call_id: part for m in messages for part in m.parts if isinstance(part, ToolResult)
    }
    for message in messages:
        for call in message.calls:
            if call.call_id in results:
                yield call, results[call.call_id]
