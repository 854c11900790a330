"""Judging: what becomes of the calls of a reply, before any of them runs.

First the gates, then the permissions. What the Turn answers itself is answered here.
"""

import json
from collections.abc import Sequence

import msgspec

from internal.agent.domain import gates
from internal.agent.domain.clipping import clipped, fitted
from internal.agent.domain.diagnostics import DiagnosticError
from internal.agent.domain.event import Event
from internal.agent.domain.events import NodeCompleted, NodeStarted, PlanUpdated, ToolCompleted
from internal.agent.domain.gates import Clarified, Planned, Situation, StepMoved, UiCall
from internal.agent.domain.ids import question_id
from internal.agent.domain.messages import ToolCall, ToolResult
from internal.agent.domain.permissions import Allowed, Denied, Needed, call_hash, judge
from internal.agent.domain.plans import Plan, numbered
from internal.agent.domain.questions import Asking, Question
from internal.agent.domain.terms import Terms
from internal.agent.domain.tools import ToolSpec

MOST_ASKED = 16
"""So many calls fit into one approval question; the model is to call the others again."""

LONGEST_SENTENCE = 8000
"""Bytes of what the model and the event read of a call that is not run."""

NOBODY = (
    "Nobody can be asked in this run. Decide yourself, go on, and say in your answer what you"
    " assumed."
)


class Bench(msgspec.Struct, frozen=True):
    """The state of a Turn that a judgement starts from."""

    plan: Plan | None
    open_step: str | None
    corrections: dict[str, int]
    released: frozenset[str]
    questions: int


class Judgement(msgspec.Struct):
    """What became of the calls. Those without a result and without a need are to be run."""

    plan: Plan | None
    open_step: str | None
    corrections: dict[str, int]
    released: frozenset[str]
    results: dict[str, ToolResult] = {}
    needs: dict[str, Asking] = {}
    question: Question | None = None
    events: list[Event] = []


def judged(terms: Terms, bench: Bench, calls: Sequence[ToolCall]) -> Judgement:
    """Judge a reply's calls, in order."""
    judge_of = _Judge(terms, bench, calls)
    for call in calls:
        judge_of.take(call)
    return judge_of.finished()


class _Judge:
    """Looks at one reply."""

    def __init__(self, terms: Terms, bench: Bench, calls: Sequence[ToolCall]) -> None:
        self._terms = terms
        self._calls = calls
        self._questions = bench.questions
        self._specs = {tool.name: tool for tool in terms.tools}
        self._corrected: set[str] = set()
        self._bench = bench
        self._out = Judgement(bench.plan, bench.open_step, dict(bench.corrections), bench.released)

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
                f" You sent: {clipped(call.malformed, 500)}",
            )
        elif not self._is_corrected(call):
            self._permit(spec, call)

    def finished(self) -> Judgement:
        """Return the judgement; a gate that had nothing to correct starts counting afresh."""
        out = self._out
        for gate in gates.GATES[self._terms.gates]:
            if gate.name not in self._corrected:
                out.corrections.pop(gate.name, None)
                continue
            out.corrections[gate.name] = out.corrections.get(gate.name, 0) + 1
            if out.corrections[gate.name] >= gates.PATIENCE:
                out.released |= {gate.name}
                word = f"the gate “{gate.name}” lets go after {gates.PATIENCE} corrections in a row"
                out.events.append(DiagnosticError(phase="gate", error=word))
        return out

    def _is_corrected(self, call: ToolCall) -> bool:
        situation = Situation(self._out.plan, self._out.open_step, self._calls)
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
        match judge(self._terms.policy, call.name, spec.risk, call.arguments):
            case Allowed():
                pass
            case Denied(reason):
                self._refuse(call, reason, ())
            case Needed() as needed if self._terms.people:
                self._need(spec, call, needed)
            case Needed(reason) as needed:
                no = f"{reason} Nobody can be asked, so the answer is no."
                self._refuse(call, no, needed.rules)

    def _need(self, spec: ToolSpec, call: ToolCall, needed: Needed) -> None:
        """Put a call on the question; its text has a share of what an event can carry."""
        share = min(48_000 // min(len(self._calls), MOST_ASKED), 12_000)
        if len(self._out.needs) >= MOST_ASKED:
            self._correct(
                call, f"Not run: {MOST_ASKED} calls wait for a person already. Call it again later."
            )
            return
        self._out.needs[call.call_id] = Asking(
            call_id=call.call_id,
            tool=call.name,
            what=fitted(_shown(call), share * 2 // 3),
            risk=spec.risk,
            reason=fitted(needed.reason, share // 5),
            call_hash=call_hash(call.name, call.arguments, self._terms.workspace),
            rules=needed.rules if _offered(needed.rule, share // 8) else (),
        )

    def _refuse(self, call: ToolCall, reason: str, rules: tuple[str, ...]) -> None:
        rule = _offered(" and ".join(rules), LONGEST_SENTENCE)
        hint = f" The rule that would allow it: {rule}" if rule else ""
        sentence = f"{fitted(reason, LONGEST_SENTENCE)}{hint}"
        self._out.results[call.call_id] = ToolResult(call.call_id, sentence, failed=True)
        self._out.events.append(denial(call, sentence, rules if rule else ()))

    def _fail(self, call: ToolCall, sentence: str) -> None:
        self._out.results[call.call_id] = ToolResult(call.call_id, sentence, failed=True)
        self._out.events.append(
            ToolCompleted(
                call_id=call.call_id,
                tool_name=clipped(call.name, 200),
                duration_ms=0,
                error=fitted(sentence),
            )
        )

    def _answer(self, call: ToolCall) -> None:
        """Answer a tool of the Turn's own."""
        try:
            asked = gates.ui_call(call.name, call.arguments)
        except msgspec.ValidationError as error:
            self._fail(call, f"Not done: {fitted(str(error), LONGEST_SENTENCE)}.")
            return
        if asked is not None:
            text = self._done(call, asked)
            if text is not None:
                self._out.results[call.call_id] = ToolResult(call.call_id, text)

    def _done(self, call: ToolCall, asked: UiCall) -> str | None:
        """Return what the model reads, None when a person is asked."""
        match asked:
            case Planned():
                return self._plan(asked)
            case StepMoved():
                return self._move(asked)
            case Clarified() if not asked.needs_user_input:
                return self._open(asked)
            case Clarified():
                self._open(asked)
                words = asked.question or asked.goal
                return self._ask(call, words, asked.options)
            case _:
                return self._ask(call, asked.question, asked.options)

    def _plan(self, asked: Planned) -> str:
        version = 1 if self._out.plan is None else self._out.plan.version + 1
        room = min(48_000 // len(asked.steps) - 60, 4000)  # an event carries the whole plan
        steps = numbered([fitted(step, room) for step in asked.steps])
        goal, title = fitted(asked.goal, 4000), fitted(asked.title, 500)
        plan = Plan(version, goal, asked.complexity, steps, title)
        self._out.open_step = None
        self._show(plan)
        listed = "\n".join(f"{step.id}. {step.description}" for step in plan.steps)
        return f"Plan {version} is noted. The steps and their ids:\n{listed}"

    def _move(self, asked: StepMoved) -> str:
        plan = self._out.plan
        step = plan.step(asked.step_id) if plan else None
        if plan is None or step is None:
            known = ", ".join(each.id for each in plan.steps) if plan else "none, there is no plan"
            return f"There is no step “{asked.step_id[:80]}”. The steps are: {known}."
        self._show(plan.marked(step.id, asked.status))
        if asked.status != "in_progress" and self._out.open_step == step.id:
            self._out.open_step = None
            self._out.events.append(NodeCompleted(node_id=f"step:{step.id}", duration_ms=0))
        return f"Step {step.id} is {asked.status}."

    def _open(self, asked: Clarified) -> str:
        plan = self._out.plan
        step = plan.step(asked.step_id) if plan else None
        if plan is None or step is None:
            known = ", ".join(each.id for each in plan.steps) if plan else "none, there is no plan"
            return f"There is no step “{asked.step_id[:80]}”. The steps are: {known}."
        self._out.open_step = step.id
        self._out.events.append(
            NodeStarted(
                node_id=f"step:{step.id}",
                step_index=plan.steps.index(step) + 1,
                step_description=step.description,
            )
        )
        self._show(plan.marked(step.id, "in_progress"))
        return f"Step {step.id} is open: go on."

    def _ask(self, call: ToolCall, words: str, options: tuple[str, ...]) -> str | None:
        if not self._terms.people:
            return NOBODY
        if self._out.question is not None:
            return "Not asked: one question at a time. Ask again when the first is answered."
        name = question_id(self._terms.run_id, self._questions + 1)
        title = fitted(words, 8000)
        shown_options = tuple(fitted(option, 1500) for option in options)
        self._out.question = Question(
            name, "clarify", title, options=shown_options, call_id=call.call_id
        )
        return None

    def _show(self, plan: Plan) -> None:
        self._out.plan = plan
        self._out.events.append(
            PlanUpdated(
                version=plan.version,
                goal=plan.goal,
                complexity=plan.complexity,
                steps=plan.steps,
                title=plan.title or msgspec.UNSET,
            )
        )


def denial(call: ToolCall, sentence: str, rules: tuple[str, ...] = ()) -> ToolCompleted:
    """Return the event of a call that may not run; `rules` together would allow it."""
    return ToolCompleted(
        call_id=call.call_id,
        tool_name=call.name,
        duration_ms=0,
        error=fitted(sentence, 2 * LONGEST_SENTENCE),
        metadata={
            "denied": True,
            "what": fitted(_shown(call), LONGEST_SENTENCE),
            "rules": list(rules),
        },
    )


def _offered(rule: str, most_bytes: int) -> str:
    """Return the rule, or none: half a rule would allow something else."""
    return rule if fitted(rule, most_bytes) == rule else ""


def _shown(call: ToolCall) -> str:
    """Return a call as a person reads it: the command itself, or the tool with its arguments."""
    command = call.arguments.get("command")
    if call.name == "shell" and isinstance(command, str):
        return command
    return f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}"
