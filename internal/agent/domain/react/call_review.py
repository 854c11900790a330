"""Review of the tool calls of a reply before any of them runs.

Gates come first, then permissions. Control tools are handled here.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.events.types import (
    DiagnosticError,
    Event,
    NodeCompleted,
    NodeStarted,
    PlanUpdated,
    ToolCompleted,
    ToolStarted,
)
from internal.agent.domain.ids import question_id
from internal.agent.domain.messages import ToolCall, ToolResult
from internal.agent.domain.permissions.policy import (
    Allowed,
    ApprovalNeeded,
    Denied,
    call_hash,
    evaluate_call,
)
from internal.agent.domain.permissions.targets import MCP_PREFIX
from internal.agent.domain.plans import Author, Plan, needs_review, number_steps
from internal.agent.domain.questions import ApprovalItem, Question, plan_question
from internal.agent.domain.react import gates
from internal.agent.domain.react.call_subject import call_subject
from internal.agent.domain.react.deferred_tools import (
    argument_problem,
    find_tools,
    unusable_name,
)
from internal.agent.domain.react.gates import (
    ClarifyCall,
    ControlCall,
    Correction,
    FindToolsCall,
    Gate,
    GateContext,
    NotRunReason,
    PlanCall,
    RequestUserCall,
    SoloGate,
    UpdatePlanCall,
    UseToolCall,
    unplanned_cost,
)
from internal.agent.domain.react.hook_outcomes import NO_OUTCOME, HookOutcome, judge_outcome
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.text import (
    escape_invisible,
    truncate,
    truncate_arguments,
    truncate_json,
)
from internal.agent.domain.tools import ToolSpec

MAX_APPROVAL_ITEMS = 16
"""Calls in one approval question. The other calls are returned to the model for a later reply."""

MAX_SHOWN_CHARS = 60_000
"""Characters of a call that are processed for display; an event carries fewer."""

MAX_SHORT_CHARACTERS = 500
"""Characters of the arguments of calls that take up to a millisecond to review or to display."""

MAX_CRITERIA_BYTES = 10_000
"""Bytes of the success criteria of all steps, which an event carries with the plan."""

MAX_SENTENCE_BYTES = 8000
"""Bytes of the message about a call that is not run."""

MAX_SHOWN_SENT = 500
"""Characters of arguments that cannot be read, in the message about them."""

NOBODY_TO_ASK = (
    "Nobody can be asked in this run. Decide yourself, go on, and say in your answer what you"
    " assumed."
)
ONE_AT_A_TIME = "Not asked: one question at a time. Ask again when the first is answered."
PLAN_NOT_APPROVED = (
    "Not run: a person must agree to the plan before anything is done. Call plan alone, with your"
    " goal and steps."
)
PLAN_NOT_REVIEWED = (
    "A person must agree to the plan, and nobody can be asked in this run: nothing may be done. Say"
    " so in your answer."
)


_NOT_RUN: dict[NotRunReason, str] = {
    "plan": "Not run: the agent had not made a plan.",
    "step": "Not run: the agent had not opened the step of its plan.",
    "alone": "Not run: the agent sent it together with a call that must come alone.",
    "gate": "Not run: a rule about the order of calls was not kept.",
    "plan_review": "Not run: a person is asked about the plan first.",
    "question": "Not run: another question is open.",
    "approvals": "Not run: too many calls wait for an answer already.",
    "end": "Not run: only the answer of the run was asked for.",
}
"""Text of the event log; channels translate the reason."""


_BETWEEN_PARTS = re.compile(r"[\s;&|]+")


def byte_budget(calls: int) -> int:
    """Return how many bytes each call may take in an approval question of so many calls."""
    return min(48_000 // min(max(calls, 1), MAX_APPROVAL_ITEMS), 24_000)


def are_short(calls: Iterable[ToolCall]) -> bool:
    """Return True if the calls have no long arguments: they need no thread of their own."""
    values = [value for call in calls for value in call.arguments.values()]
    return not any(isinstance(value, list | dict) for value in values) and (
        sum(len(value) for value in values if isinstance(value, str)) <= MAX_SHORT_CHARACTERS
    )


class ReviewState(msgspec.Struct, frozen=True):
    """The part of a Turn's state that a review starts from."""

    plan: Plan | None
    open_step: str | None
    approved_plan: int
    """The version of the approved plan, 0 without one."""
    plan_reviewed: bool
    """True if a plan of this run was reviewed: every later one is reviewed as well."""
    corrections: dict[str, int]
    """The corrections of each gate in a row."""
    unplanned: int
    """Part of the allowance without a plan that the calls so far have used."""
    question_count: int
    cut_at: int | None = None
    """The output tokens at which the reply was cut, None if it was not."""
    iteration: int = 0
    task: str = ""
    """The text of the person."""


class CallReview(msgspec.Struct):
    """The result. A call without a result and without a pending approval may run.

    `calls` are the reviewed calls, with the arguments that hooks changed. `not_run` counts the
    calls that were returned to the model for another reply.
    """

    plan: Plan | None
    open_step: str | None
    corrections: dict[str, int]
    unplanned: int
    calls: tuple[ToolCall, ...] = ()
    results: dict[str, ToolResult] = {}
    pending_approvals: dict[str, ApprovalItem] = {}
    question: Question | None = None
    events: list[Event] = []
    not_run: int = 0


def plan_updated(plan: Plan) -> PlanUpdated:
    """Return the event for the current state of a plan."""
    return PlanUpdated(
        version=plan.version,
        goal=plan.goal,
        complexity=plan.complexity,
        steps=plan.steps,
        title=plan.title or msgspec.UNSET,
        made_by=plan.made_by,
    )


def denied_event(
    call: ToolCall, spec: ToolSpec | None, sentence: str, rules: tuple[str, ...] = ()
) -> ToolCompleted:
    """Return the event of a denied call; `rules` together would allow it."""
    return ToolCompleted(
        call_id=call.call_id,
        tool_name=call.name,
        duration_ms=0,
        error=truncate_json(sentence, 2 * MAX_SENTENCE_BYTES),
        metadata={
            "denied": True,
            **_shown_call(call, spec),
            "rules": list(rules),
        },
    )


def failed_event(call: ToolCall, error: str) -> ToolCompleted:
    """Return the event of a call that failed before it began."""
    return ToolCompleted(
        call_id=call.call_id,
        tool_name=truncate(call.name, 200),
        duration_ms=0,
        error=truncate_json(error),
    )


def not_run_event(call: ToolCall, spec: ToolSpec | None, reason: NotRunReason) -> ToolCompleted:
    """Return the event of a call that was not run; the model may send it again."""
    return ToolCompleted(
        call_id=call.call_id,
        tool_name=truncate(call.name, 200),
        duration_ms=0,
        error=_NOT_RUN[reason],
        metadata={"not_run": reason, **_shown_call(call, spec)},
    )


def _shown_call(call: ToolCall, spec: ToolSpec | None) -> dict[str, str]:
    """Return the call for display, in full and by its subject."""
    action, subject = ("use", "") if spec is None else call_subject(call, spec)
    title = "" if spec is None else spec.server_title
    return {
        "what": truncate_json(display_call(call, spec), MAX_SENTENCE_BYTES),
        "subject": "" if action == "use" else subject,
        **({"title": title} if title else {}),
    }


def display_call(call: ToolCall, spec: ToolSpec | None) -> str:
    """Return a call for display: the command, or the tool with its arguments.

    Invisible characters are escaped. Truncated first, because escaping megabytes takes seconds.
    """
    return escape_invisible(truncate(call_text(call, spec), MAX_SHOWN_CHARS))


def call_text(call: ToolCall, spec: ToolSpec | None) -> str:
    """Return the full text of a call: the command, or the tool and a line for each argument.

    The lines of longer values are indented, so that no value can look like another argument.
    """
    command = None if spec is None else spec.command(call.arguments)
    if command is not None:
        return command
    return "\n".join([_head(call, spec), *(_argument(*item) for item in call.arguments.items())])


def _head(call: ToolCall, spec: ToolSpec | None) -> str:
    """Return the tool of a call; of an MCP server its title and its name there."""
    if spec is None or not spec.server_title:
        return call.name
    own = call.name.removeprefix(MCP_PREFIX).partition("__")[2]
    return f"{spec.server_title} · {own}"


def _argument(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    label = name.replace("\n", " ")
    return f"{label}: {text}" if "\n" not in text else "\n  ".join([f"{label}:", *text.split("\n")])


class ControlToolHandler:
    """Handles the control calls of one reply and records the effects in its review."""

    def __init__(self, config: RunConfig, state: ReviewState, review: CallReview) -> None:
        self._config = config
        self._state = state
        self._review = review

    def handle(self, call: ToolCall, parsed: ControlCall, by: Author = "agent") -> str | None:
        """Return the result for the model, None if a person is asked about the call.

        `by` Larkspur is a control call that stands in for one of the model.

        Raises:
            ToolError: the call failed; the message is for the model.
        """
        match parsed:
            case PlanCall():
                return self._plan(call, parsed, by)
            case UpdatePlanCall():
                return self._update_step(parsed)
            case ClarifyCall() if not parsed.needs_user_input:
                return self._open_step(parsed, by)
            case ClarifyCall():
                self._open_step(parsed, by)
                words = parsed.question or parsed.goal
                return self._ask(call, words, parsed)
            case RequestUserCall():
                return self._ask(call, parsed.question, parsed)
            case FindToolsCall():
                return self._find_tools(call, parsed)
            case UseToolCall():  # a valid one was replaced by the call that it stands for
                config = self._config
                raise ToolError(unusable_name(parsed, config.tools, config.deferred))

    def _find_tools(self, call: ToolCall, parsed: FindToolsCall) -> str:
        """Search the deferred tools; people see the call like one that runs."""
        text = find_tools(self._config.deferred, parsed)
        started = ToolStarted(
            call_id=call.call_id,
            tool_name=call.name,
            arguments=truncate_arguments(call.arguments),
            iteration=self._state.iteration,
            risk="ui",
        )
        completed = ToolCompleted(
            call_id=call.call_id, tool_name=call.name, duration_ms=0, result=truncate_json(text)
        )
        self._review.events += (started, completed)
        return text

    def _plan(self, call: ToolCall, parsed: PlanCall, by: Author) -> str | None:
        """Set the plan; return None if a person reviews it first."""
        if self._review.question is not None:
            return self._refuse_question(call)
        version = 1 if self._review.plan is None else self._review.plan.version + 1
        max_bytes = min(
            44_000 // len(parsed.steps) - 60, 4000
        )  # the whole plan must fit into an event
        steps = number_steps([truncate_json(step, max_bytes) for step in parsed.steps])
        goal, title = truncate_json(parsed.goal, 4000), truncate_json(parsed.title, 500)
        plan = Plan(version, goal, parsed.complexity, steps, title, by)
        self._review.open_step = None
        self._set_plan(plan)
        if not self._needs_review(plan):
            return f"Plan {version} is noted. The steps and their ids:\n{plan.listed}"
        if not self._config.people:
            return PLAN_NOT_REVIEWED
        new_id = question_id(self._config.run_id, self._state.question_count + 1)
        self._review.question = plan_question(new_id, plan, call.call_id)
        return None

    def _needs_review(self, plan: Plan) -> bool:
        return self._state.plan_reviewed or needs_review(self._config.plan_review, plan.complexity)

    def is_plan_approved(self) -> bool:
        """Return True if calls may run: a plan that needs review is approved."""
        plan = self._review.plan
        if plan is None:
            return self._config.plan_review != "always"
        return plan.version == self._state.approved_plan or not self._needs_review(plan)

    def _update_step(self, parsed: UpdatePlanCall) -> str:
        plan = self._review.plan
        step = plan.step(parsed.step_id) if plan else None
        if plan is None or step is None:
            known = ", ".join(each.id for each in plan.steps) if plan else "none, there is no plan"
            return f"There is no step “{parsed.step_id[:80]}”. The steps are: {known}."
        self._set_plan(plan.marked(step.id, parsed.status))
        if parsed.status != "in_progress" and self._review.open_step == step.id:
            self._review.open_step = None
            self._review.events.append(NodeCompleted(node_id=f"step:{step.id}", duration_ms=0))
        return f"Step {step.id} is {parsed.status}."

    def _open_step(self, parsed: ClarifyCall, by: Author) -> str:
        plan = self._review.plan
        step = plan.step(parsed.step_id) if plan else None
        if plan is None or step is None:
            known = ", ".join(each.id for each in plan.steps) if plan else "none, there is no plan"
            return f"There is no step “{parsed.step_id[:80]}”. The steps are: {known}."
        self._review.open_step = step.id
        self._review.events.append(
            NodeStarted(
                node_id=f"step:{step.id}",
                step_index=plan.steps.index(step) + 1,
                step_description=step.description,
            )
        )
        given = parsed.success_criteria
        lines = "\n".join([given] if isinstance(given, str) else given).strip()
        criteria = truncate_json(lines, min(MAX_CRITERIA_BYTES // len(plan.steps), 2_000))
        self._set_plan(plan.opened(step.id, criteria, by))
        return f"Step {step.id} is open: go on."

    def _refuse_question(self, call: ToolCall) -> str:
        """Refuse to ask two questions at once."""
        self._review.not_run += 1
        self._review.events.append(not_run_event(call, self._config.tool(call.name), "question"))
        return ONE_AT_A_TIME

    def _ask(self, call: ToolCall, words: str, parsed: ClarifyCall | RequestUserCall) -> str | None:
        if not self._config.people:
            return NOBODY_TO_ASK
        if self._review.question is not None:
            return self._refuse_question(call)
        new_id = question_id(self._config.run_id, self._state.question_count + 1)
        title = truncate_json(words, 8000)
        shown_options = tuple(truncate_json(option, 1500) for option in parsed.options)
        self._review.question = Question(
            new_id,
            "clarify",
            title,
            options=shown_options,
            call_id=call.call_id,
            multiple=parsed.multiple and bool(shown_options),
        )
        return None

    def _set_plan(self, plan: Plan) -> None:
        self._review.plan = plan
        self._review.events.append(plan_updated(plan))


def review_calls(
    config: RunConfig,
    state: ReviewState,
    calls: Sequence[ToolCall],
    hooks: Mapping[str, HookOutcome] | None = None,
) -> CallReview:
    """Return the result of reviewing the calls of a reply in order.

    `hooks` are the outcomes of hooks by call_id.
    """
    reviewer = _Reviewer(config, state, calls, hooks or {})
    for part in reviewer.parts():
        # behind a question the other calls of the reply wait for its answer
        reply = calls if reviewer.has_asked else part
        for call in part:
            reviewer.review(call, reply)
    return reviewer.finish()


class _Reviewer:
    """Reviews the calls of one reply."""

    def __init__(
        self,
        config: RunConfig,
        state: ReviewState,
        calls: Sequence[ToolCall],
        hooks: Mapping[str, HookOutcome],
    ) -> None:
        self._config = config
        self._calls = calls
        self._hooks = hooks
        self._specs = {tool.name: tool for tool in config.all_tools}
        self._deferred = {tool.name for tool in config.deferred}
        self._broken: set[str] = set()
        self._state = state
        self._review = CallReview(
            state.plan, state.open_step, dict(state.corrections), state.unplanned, tuple(calls)
        )
        self._control_tools = ControlToolHandler(config, state, self._review)

    def parts(self) -> Sequence[Sequence[ToolCall]]:
        """Return the calls as the gates see them: in one reply, or in two if they ended so."""
        solo = next((each for each in self._gates if isinstance(each, SoloGate)), None)
        if solo is None or not self._stands_in(solo):
            return (self._calls,)
        parts = solo.split_reply(self._calls)
        if len(parts) > 1:
            self._broken.add(solo.name)
        return parts

    @property
    def has_asked(self) -> bool:
        """True if a call asked a person something."""
        return self._review.question is not None

    @property
    def _gates(self) -> Sequence[Gate]:
        return gates.GATES[self._config.gates]

    def _stands_in(self, gate: Gate) -> bool:
        """Return True if Larkspur itself does the work that a gate asks for."""
        return self._state.corrections.get(gate.name, 0) >= gates.MAX_CORRECTIONS

    def review(self, call: ToolCall, reply: Sequence[ToolCall]) -> None:
        """Review one call of a reply."""
        spec = self._specs.get(call.name)
        if spec is None:
            known = ", ".join(tool.name for tool in self._config.tools)
            self._fail(call, f"There is no tool {call.name[:80]!r}. The tools are: {known}.")
        elif call.malformed is not None:
            self._fail(call, self._malformed(call.malformed))
        elif call.name in self._deferred and (problem := argument_problem(spec, call.arguments)):
            self._fail(call, problem)
        elif not self._is_corrected(spec, call, reply):
            self._check_permission(spec, call)
            if self._review.plan is None and call.call_id not in self._review.results:
                cost = unplanned_cost(spec, call.arguments, isolated=self._config.isolated)
                self._review.unplanned += cost or 0

    def finish(self) -> CallReview:
        """Return the review. A gate whose rule was kept starts counting again."""
        review = self._review
        for gate in self._gates:
            if gate.name in self._broken:
                review.corrections[gate.name] = review.corrections.get(gate.name, 0) + 1
            else:
                review.corrections.pop(gate.name, None)
        return review

    def _is_corrected(self, spec: ToolSpec, call: ToolCall, reply: Sequence[ToolCall]) -> bool:
        """Correct a call that breaks a rule, or make the required call in the model's place."""
        for gate in self._gates:
            review = self._review
            context = GateContext(
                review.plan,
                review.open_step,
                reply,
                spec,
                self._config.isolated,
                review.unplanned,
                self._state.task,
            )
            correction = gate.check(context, call)
            if correction is None:
                continue
            self._broken.add(gate.name)
            if correction.substitute is None or not self._stands_in(gate):
                self._correct(call, correction)
                return True
            if self._substitute(call, correction.substitute):
                return True
        return False

    def _substitute(self, call: ToolCall, made: PlanCall | ClarifyCall) -> bool:
        """Make a control call in the model's place; return True if a person is asked about it."""
        if self._control_tools.handle(call, made, by="larkspur") is not None:
            return False
        self._note_not_run(call, "plan_review")  # its result is the answer of the person
        return True

    def _correct(self, call: ToolCall, correction: Correction) -> None:
        text = correction.text
        self._review.results[call.call_id] = ToolResult(call.call_id, text)
        self._review.events.append(DiagnosticError(phase="gate", error=text, call_id=call.call_id))
        self._note_not_run(call, correction.reason)

    def _note_not_run(self, call: ToolCall, reason: NotRunReason) -> None:
        self._review.not_run += 1
        self._review.events.append(not_run_event(call, self._specs.get(call.name), reason))

    def _check_permission(self, spec: ToolSpec, call: ToolCall) -> None:
        if spec.risk == "ui":
            self._handle_control_call(call)
            return
        if not self._control_tools.is_plan_approved():
            self._deny(call, PLAN_NOT_APPROVED, ())
            return
        config, outcome = self._config, self._hooks.get(call.call_id, NO_OUTCOME)
        evaluate = partial(evaluate_call, config.policy, spec, isolated=config.isolated)
        verdict = evaluate(call.arguments)
        if outcome is not NO_OUTCOME and not isinstance(verdict, Denied):
            verdict = judge_outcome(outcome, verdict, evaluate, mode=config.policy.mode)
            call = self._note_outcome(call, outcome)
        match verdict:
            case Allowed():
                pass
            case Denied(reason):
                self._deny(call, reason, ())
            case ApprovalNeeded() as needed if config.people and config.approvals:
                self._add_approval(spec, call, needed)
            case ApprovalNeeded(reason) as needed:
                no = f"{reason} Nobody can be asked, so the answer is no."
                self._deny(call, no, needed.rules)

    def _note_outcome(self, call: ToolCall, outcome: HookOutcome) -> ToolCall:
        """Record the effects of hooks on a call; return the call with its current arguments."""
        review = self._review
        review.events += [
            DiagnosticError(
                phase="hook", error=truncate_json(note, MAX_SENTENCE_BYTES), call_id=call.call_id
            )
            for note in outcome.notes
        ]
        if outcome.arguments is None:
            return call
        changed = msgspec.structs.replace(call, arguments=outcome.arguments)
        review.calls = tuple(changed if each is call else each for each in review.calls)
        return changed

    def _add_approval(self, spec: ToolSpec, call: ToolCall, needed: ApprovalNeeded) -> None:
        """Add a call to the approval question; its texts share the size limit of an event."""
        share = byte_budget(len(self._calls))
        if len(self._review.pending_approvals) >= MAX_APPROVAL_ITEMS:
            text = (
                f"Not run: {MAX_APPROVAL_ITEMS} calls already wait for a person."
                " Call it again later."
            )
            self._correct(call, Correction(text, "approvals"))
            return
        action, subject = call_subject(call, spec)
        if needed.code == "no_rule" and _same_words(needed.about, call_text(call, spec)):
            # the question shows the command
            needed = msgspec.structs.replace(needed, reason_detail="", code="", about="")
        self._review.pending_approvals[call.call_id] = ApprovalItem(
            call_id=call.call_id,
            tool=call.name,
            what=truncate_json(display_call(call, spec), share // 2),
            risk=spec.risk,
            reason=truncate_json(needed.reason_detail, share // 10),
            call_hash=call_hash(call.name, call.arguments, self._config.workspace),
            rules=needed.rules if _fitting_rule(needed.rule, share // 10) else (),
            action=action,
            subject=subject,
            reason_code=needed.code,
            reason_about=truncate_json(needed.about, share // 10),
            title=spec.server_title,
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
        self._review.events.append(failed_event(call, sentence))

    def _malformed(self, sent: str) -> str:
        if self._state.cut_at is not None:
            return (
                f"Not run: your reply was cut at {self._state.cut_at} tokens, before this call was"
                " complete. Send less in one call: write a long file in parts. "
                + (
                    f"This arrived: {truncate(sent, MAX_SHOWN_SENT)}"
                    if sent
                    else "Nothing arrived."
                )
            )
        return (
            "Not run: the arguments were not a JSON object. Call it again with valid JSON."
            f" You sent: {truncate(sent, MAX_SHOWN_SENT)}"
        )

    def _handle_control_call(self, call: ToolCall) -> None:
        """Handle a call of a control tool."""
        try:
            parsed = gates.parse_control_call(call.name, call.arguments)
        except msgspec.ValidationError as error:
            self._fail(call, f"Not done: {truncate_json(str(error), MAX_SENTENCE_BYTES)}.")
            return
        if parsed is None:
            return
        try:
            text = self._control_tools.handle(call, parsed)
        except ToolError as error:
            self._fail(call, str(error))
            return
        if text is not None:
            self._review.results[call.call_id] = ToolResult(call.call_id, text)


def _same_words(parts: str, command: str) -> bool:
    """Return True if the parts of a command are all of it."""
    return _BETWEEN_PARTS.sub("", parts) == _BETWEEN_PARTS.sub("", command[:MAX_SHOWN_CHARS])


def _fitting_rule(rule: str, max_bytes: int) -> str:
    """Return the rule, or "" if it is too long: half a rule would allow something else."""
    return rule if truncate_json(rule, max_bytes) == rule else ""
