"""Review of the tool calls of a reply before any of them runs.

Gates come first, then permissions. Control tools are handled here.
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
    PLAN_NOT_APPROVED,
    CallReview,
    ReviewState,
    byte_budget,
    denied_event,
    display_call,
)
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.text import truncate, truncate_json
from internal.agent.domain.tools import ToolSpec


def review_calls(config: RunConfig, state: ReviewState, calls: Sequence[ToolCall]) -> CallReview:
    """Return what happens to the calls of a reply, reviewed in order."""
    reviewer = _Reviewer(config, state, calls)
    for call in calls:
        reviewer.review(call)
    return reviewer.finish()


class _Reviewer:
    """Reviews the calls of one reply."""

    def __init__(self, config: RunConfig, state: ReviewState, calls: Sequence[ToolCall]) -> None:
        self._config = config
        self._calls = calls
        self._specs = {tool.name: tool for tool in config.tools}
        self._corrected: set[str] = set()
        self._state = state
        self._review = CallReview(
            state.plan, state.open_step, dict(state.corrections), state.released_gates
        )
        self._control_tools = ControlToolHandler(config, state, self._review)

    def review(self, call: ToolCall) -> None:
        """Review one call."""
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
            self._check_permission(spec, call)

    def finish(self) -> CallReview:
        """Return the review. A gate that corrected nothing starts counting again."""
        review = self._review
        for gate in gates.GATES[self._config.gates]:
            if gate.name not in self._corrected:
                review.corrections.pop(gate.name, None)
                continue
            review.corrections[gate.name] = review.corrections.get(gate.name, 0) + 1
            if review.corrections[gate.name] >= gates.MAX_CORRECTIONS:
                review.released_gates |= {gate.name}
                limit = gates.MAX_CORRECTIONS
                message = f"the gate “{gate.name}” is off after {limit} corrections in a row"
                review.events.append(DiagnosticError(phase="gate", error=message))
        return review

    def _is_corrected(self, call: ToolCall) -> bool:
        context = GateContext(self._review.plan, self._review.open_step, self._calls)
        for gate in gates.GATES[self._config.gates]:
            if gate.name in self._state.released_gates:
                continue
            correction = gate.check(context, call)
            if correction is not None:
                self._corrected.add(gate.name)
                self._correct(call, correction.text)
                return True
        return False

    def _correct(self, call: ToolCall, text: str) -> None:
        self._review.results[call.call_id] = ToolResult(call.call_id, text)
        self._review.events.append(DiagnosticError(phase="gate", error=text, call_id=call.call_id))

    def _check_permission(self, spec: ToolSpec, call: ToolCall) -> None:
        if spec.risk == "ui":
            self._handle_control_call(call)
            return
        if not self._control_tools.is_plan_approved():
            self._deny(call, PLAN_NOT_APPROVED, ())
            return
        match evaluate_call(self._config.policy, spec, call.arguments):
            case Allowed():
                pass
            case Denied(reason):
                self._deny(call, reason, ())
            case ApprovalNeeded() as needed if self._config.people and self._config.approvals:
                self._add_approval(spec, call, needed)
            case ApprovalNeeded(reason) as needed:
                no = f"{reason} Nobody can be asked, so the answer is no."
                self._deny(call, no, needed.rules)

    def _add_approval(self, spec: ToolSpec, call: ToolCall, needed: ApprovalNeeded) -> None:
        """Add a call to the approval question; its texts share the size limit of an event."""
        share = byte_budget(len(self._calls))
        if len(self._review.pending_approvals) >= MAX_APPROVAL_ITEMS:
            self._correct(
                call,
                f"Not run: {MAX_APPROVAL_ITEMS} calls already wait for a person."
                " Call it again later.",
            )
            return
        self._review.pending_approvals[call.call_id] = ApprovalItem(
            call_id=call.call_id,
            tool=call.name,
            what=truncate_json(display_call(call, spec), share // 2),
            risk=spec.risk,
            reason=truncate_json(needed.reason_detail, share // 10),
            call_hash=call_hash(call.name, call.arguments, self._config.workspace),
            rules=needed.rules if _fitting_rule(needed.rule, share // 10) else (),
        )

    def _deny(self, call: ToolCall, reason: str, rules: tuple[str, ...]) -> None:
        rule = _fitting_rule(" and ".join(rules), MAX_SENTENCE_BYTES)
        hint = f" The rule that would allow it: {rule}" if rule else ""
        sentence = f"{truncate_json(reason, MAX_SENTENCE_BYTES)}{hint}"
        self._review.results[call.call_id] = ToolResult(call.call_id, sentence, failed=True)
        self._review.events.append(
            denied_event(call, self._specs.get(call.name), sentence, rules if rule else ())
        )

    def _fail(self, call: ToolCall, sentence: str) -> None:
        self._review.results[call.call_id] = ToolResult(call.call_id, sentence, failed=True)
        self._review.events.append(
            ToolCompleted(
                call_id=call.call_id,
                tool_name=truncate(call.name, 200),
                duration_ms=0,
                error=truncate_json(sentence),
            )
        )

    def _handle_control_call(self, call: ToolCall) -> None:
        """Handle a call of a control tool."""
        try:
            parsed = gates.parse_control_call(call.name, call.arguments)
        except msgspec.ValidationError as error:
            self._fail(call, f"Not done: {truncate_json(str(error), MAX_SENTENCE_BYTES)}.")
            return
        if parsed is not None:
            text = self._control_tools.handle(call, parsed)
            if text is not None:
                self._review.results[call.call_id] = ToolResult(call.call_id, text)


def _fitting_rule(rule: str, max_bytes: int) -> str:
    """Return the rule, or "" if it is too long: half a rule would allow something else."""
    return rule if truncate_json(rule, max_bytes) == rule else ""
