"""The control tools that the Turn handles itself: plan, update_plan, clarify, request_user."""

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
    NOBODY_TO_ASK,
    ONE_AT_A_TIME,
    PLAN_NOT_REVIEWED,
    CallReview,
    ReviewState,
    plan_updated,
)
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.text import truncate_json


class ControlToolHandler:
    """Handles the control calls of one reply and records the effects in its review."""

    def __init__(self, config: RunConfig, state: ReviewState, review: CallReview) -> None:
        self._config = config
        self._state = state
        self._review = review

    def handle(self, call: ToolCall, parsed: ControlCall) -> str | None:
        """Return the result for the model, None if a person is asked."""
        match parsed:
            case PlanCall():
                return self._plan(call, parsed)
            case UpdatePlanCall():
                return self._update_step(parsed)
            case ClarifyCall() if not parsed.needs_user_input:
                return self._open_step(parsed)
            case ClarifyCall():
                self._open_step(parsed)
                words = parsed.question or parsed.goal
                return self._ask(call, words, parsed)
            case RequestUserCall():
                return self._ask(call, parsed.question, parsed)

    def _plan(self, call: ToolCall, parsed: PlanCall) -> str | None:
        """Set the plan; return None if a person reviews it first."""
        if self._review.question is not None:
            return ONE_AT_A_TIME
        version = 1 if self._review.plan is None else self._review.plan.version + 1
        max_bytes = min(
            44_000 // len(parsed.steps) - 60, 4000
        )  # the whole plan must fit into an event
        steps = number_steps([truncate_json(step, max_bytes) for step in parsed.steps])
        goal, title = truncate_json(parsed.goal, 4000), truncate_json(parsed.title, 500)
        plan = Plan(version, goal, parsed.complexity, steps, title)
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

    def _open_step(self, parsed: ClarifyCall) -> str:
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
        self._set_plan(plan.marked(step.id, "in_progress"))
        return f"Step {step.id} is open: go on."

    def _ask(self, call: ToolCall, words: str, parsed: ClarifyCall | RequestUserCall) -> str | None:
        if not self._config.people:
            return NOBODY_TO_ASK
        if self._review.question is not None:
            return ONE_AT_A_TIME
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
