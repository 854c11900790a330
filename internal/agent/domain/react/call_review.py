"""Judging: what becomes of the calls of a reply, before any of them runs.

First the gates, then the permissions. What the Turn answers itself is answered here.
"""

from collections.abc import Sequence

import msgspec

from internal.agent.domain.events.types import DiagnosticError, ToolCompleted
from internal.agent.domain.messages import ToolCall, ToolResult
from internal.agent.domain.permissions.policy import (
    Allowed,
    ApprovalNeeded,
    Denied,
    call_hash,
    evaluate_call,
)
from internal.agent.domain.questions import ApprovalItem
from internal.agent.domain.react import gates
from internal.agent.domain.react.control_tools import ControlToolHandler
from internal.agent.domain.react.gates import GateContext
from internal.agent.domain.react.review_state import (
    MAX_APPROVAL_ITEMS,
    MAX_SENTENCE_BYTES,
    UNAGREED,
    CallReview,
    ReviewState,
    byte_budget,
    denied_event,
    display_call,
)
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.text import truncate, truncate_json
from internal.agent.domain.tools import ToolSpec


def review_calls(terms: RunConfig, bench: ReviewState, calls: Sequence[ToolCall]) -> CallReview:
    """Judge a reply's calls, in order."""
    judge_of = _Judge(terms, bench, calls)
    for call in calls:
        judge_of.take(call)
    return judge_of.finished()


class _Judge:
    """Looks at one reply."""

    def __init__(self, terms: RunConfig, bench: ReviewState, calls: Sequence[ToolCall]) -> None:
        self._terms = terms
        self._calls = calls
        self._specs = {tool.name: tool for tool in terms.tools}
        self._corrected: set[str] = set()
        self._bench = bench
        self._out = CallReview(bench.plan, bench.open_step, dict(bench.corrections), bench.released)
        self._ui = ControlToolHandler(terms, bench, self._out)

    def take(self, call: ToolCall) -> None:
        """Judge one call."""
        spec = self._specs.get(call.name)
        if spec is None:
            known = ", ".join(self._specs)
            self._fail(call, f"There is no tool {call.name[:80]!r}. The tools are: {known}.")
        elif call.malformed is not None:
            self._fail(
                call,
                "Not run: the arguments were not a JSON object. Call it again with valid JSON."
                f" You sent: {truncate(call.malformed, 500)}",
            )
        elif not self._is_corrected(call):
            self._permit(spec, call)

    def finished(self) -> CallReview:
        """Return the judgement; a gate that had nothing to correct starts counting afresh."""
        out = self._out
        for gate in gates.GATES[self._terms.gates]:
            if gate.name not in self._corrected:
                out.corrections.pop(gate.name, None)
                continue
            out.corrections[gate.name] = out.corrections.get(gate.name, 0) + 1
            if out.corrections[gate.name] >= gates.MAX_CORRECTIONS:
                out.released |= {gate.name}
                limit = gates.MAX_CORRECTIONS
                word = f"the gate “{gate.name}” is off after {limit} corrections in a row"
                out.events.append(DiagnosticError(phase="gate", error=word))
        return out

    def _is_corrected(self, call: ToolCall) -> bool:
        situation = GateContext(self._out.plan, self._out.open_step, self._calls)
        for gate in gates.GATES[self._terms.gates]:
            if gate.name in self._bench.released:
                continue
            correction = gate.check(situation, call)
            if correction is not None:
                self._corrected.add(gate.name)
                self._correct(call, correction.text)
                return True
        return False

    def _correct(self, call: ToolCall, text: str) -> None:
        self._out.results[call.call_id] = ToolResult(call.call_id, text)
        self._out.events.append(DiagnosticError(phase="gate", error=text, call_id=call.call_id))

    def _permit(self, spec: ToolSpec, call: ToolCall) -> None:
        if spec.risk == "ui":
            self._answer(call)
            return
        if not self._ui.is_agreed():
            self._refuse(call, UNAGREED, ())
            return
        match evaluate_call(self._terms.policy, spec, call.arguments):
            case Allowed():
                pass
            case Denied(reason):
                self._refuse(call, reason, ())
            case ApprovalNeeded() as needed if self._terms.people and self._terms.approvals:
                self._need(spec, call, needed)
            case ApprovalNeeded(reason) as needed:
                no = f"{reason} Nobody can be asked, so the answer is no."
                self._refuse(call, no, needed.rules)

    def _need(self, spec: ToolSpec, call: ToolCall, needed: ApprovalNeeded) -> None:
        """Put a call on the question; its text has a share of what an event can carry."""
        share = byte_budget(len(self._calls))
        if len(self._out.needs) >= MAX_APPROVAL_ITEMS:
            self._correct(
                call,
                f"Not run: {MAX_APPROVAL_ITEMS} calls already wait for a person."
                " Call it again later.",
            )
            return
        self._out.needs[call.call_id] = ApprovalItem(
            call_id=call.call_id,
            tool=call.name,
            what=truncate_json(display_call(call, spec), share // 2),
            risk=spec.risk,
            reason=truncate_json(needed.reason_detail, share // 10),
            call_hash=call_hash(call.name, call.arguments, self._terms.workspace),
            rules=needed.rules if _offered(needed.rule, share // 10) else (),
        )

    def _refuse(self, call: ToolCall, reason: str, rules: tuple[str, ...]) -> None:
        rule = _offered(" and ".join(rules), MAX_SENTENCE_BYTES)
        hint = f" The rule that would allow it: {rule}" if rule else ""
        sentence = f"{truncate_json(reason, MAX_SENTENCE_BYTES)}{hint}"
        self._out.results[call.call_id] = ToolResult(call.call_id, sentence, failed=True)
        self._out.events.append(
            denied_event(call, self._specs.get(call.name), sentence, rules if rule else ())
        )

    def _fail(self, call: ToolCall, sentence: str) -> None:
        self._out.results[call.call_id] = ToolResult(call.call_id, sentence, failed=True)
        self._out.events.append(
            ToolCompleted(
                call_id=call.call_id,
                tool_name=truncate(call.name, 200),
                duration_ms=0,
                error=truncate_json(sentence),
            )
        )

    def _answer(self, call: ToolCall) -> None:
        """Answer a tool of the Turn's own."""
        try:
            asked = gates.parse_control_call(call.name, call.arguments)
        except msgspec.ValidationError as error:
            self._fail(call, f"Not done: {truncate_json(str(error), MAX_SENTENCE_BYTES)}.")
            return
        if asked is not None:
            text = self._ui.answer(call, asked)
            if text is not None:
                self._out.results[call.call_id] = ToolResult(call.call_id, text)


def _offered(rule: str, most_bytes: int) -> str:
    """Return the rule, or none: half a rule would allow something else."""
    return rule if truncate_json(rule, most_bytes) == rule else ""
