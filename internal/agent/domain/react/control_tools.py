"""The answers of the Turn itself: to `plan`, `update_plan`, `clarify` and `request_user`."""

from internal.agent.domain.events.types import NodeCompleted, NodeStarted
from internal.agent.domain.ids import question_id
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.plans import Plan, needs_review, number_steps
from internal.agent.domain.questions import Question, plan_question
from internal.agent.domain.react.gates import (
    ClarifyCall,
    ControlCall,
    PlanCall,
    RequestUserCall,
    UpdatePlanCall,
)
from internal.agent.domain.react.review_state import (
    NOBODY,
    ONE_AT_A_TIME,
    UNREACHED,
    CallReview,
    ReviewState,
    plan_updated,
)
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.text import truncate_json


class ControlToolHandler:
    """Answers the calls of one reply that are the Turn's own, into its judgement."""

    def __init__(self, terms: RunConfig, bench: ReviewState, out: CallReview) -> None:
        self._terms = terms
        self._bench = bench
        self._out = out

    def answer(self, call: ToolCall, asked: ControlCall) -> str | None:
        """Return what the model reads, None when a person is asked."""
        match asked:
            case PlanCall():
                return self._plan(call, asked)
            case UpdatePlanCall():
                return self._move(asked)
            case ClarifyCall() if not asked.needs_user_input:
                return self._open(asked)
            case ClarifyCall():
                self._open(asked)
                words = asked.question or asked.goal
                return self._ask(call, words, asked)
            case RequestUserCall():
                return self._ask(call, asked.question, asked)

    def _plan(self, call: ToolCall, asked: PlanCall) -> str | None:
        """Note the plan; None when a person is asked about it first."""
        if self._out.question is not None:
            return ONE_AT_A_TIME
        version = 1 if self._out.plan is None else self._out.plan.version + 1
        room = min(44_000 // len(asked.steps) - 60, 4000)  # an event carries the whole plan
        steps = number_steps([truncate_json(step, room) for step in asked.steps])
        goal, title = truncate_json(asked.goal, 4000), truncate_json(asked.title, 500)
        plan = Plan(version, goal, asked.complexity, steps, title)
        self._out.open_step = None
        self._show(plan)
        if not self._is_reviewed(plan):
            return f"Plan {version} is noted. The steps and their ids:\n{plan.listed}"
        if not self._terms.people:
            return UNREACHED
        name = question_id(self._terms.run_id, self._bench.questions + 1)
        self._out.question = plan_question(name, plan, call.call_id)
        return None

    def _is_reviewed(self, plan: Plan) -> bool:
        return self._bench.reviewed or needs_review(self._terms.plan_review, plan.complexity)

    def is_agreed(self) -> bool:
        """Say whether something may be done: a plan that a person reviews is agreed to first."""
        plan = self._out.plan
        if plan is None:
            return self._terms.plan_review != "always"
        return plan.version == self._bench.approved or not self._is_reviewed(plan)

    def _move(self, asked: UpdatePlanCall) -> str:
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

    def _open(self, asked: ClarifyCall) -> str:
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

    def _ask(self, call: ToolCall, words: str, asked: ClarifyCall | RequestUserCall) -> str | None:
        if not self._terms.people:
            return NOBODY
        if self._out.question is not None:
            return ONE_AT_A_TIME
        name = question_id(self._terms.run_id, self._bench.questions + 1)
        title = truncate_json(words, 8000)
        shown_options = tuple(truncate_json(option, 1500) for option in asked.options)
        self._out.question = Question(
            name,
            "clarify",
            title,
            options=shown_options,
            call_id=call.call_id,
            multiple=asked.multiple and bool(shown_options),
        )
        return None

    def _show(self, plan: Plan) -> None:
        self._out.plan = plan
        self._out.events.append(plan_updated(plan))
