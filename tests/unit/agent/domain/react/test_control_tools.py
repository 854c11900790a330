"""The control tools: plans, their steps and questions to the person."""

import msgspec
import pytest

from internal.agent.domain.events.types import NodeCompleted, NodeStarted, PlanUpdated
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.react.control_tools import ControlToolHandler
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
)
from tests.support.turn_driver import call, run_config

PLAN = PlanCall("Herons", ("Look", "Count"))


class Session:
    """A handler and the review that it records into."""

    def __init__(self, *, people: bool = True, plan_review: PlanReview = "off") -> None:
        config = msgspec.structs.replace(run_config(people=people), plan_review=plan_review)
        state = ReviewState(None, None, 0, False, {}, frozenset(), 0)
        self.review = CallReview(None, None, {}, frozenset())
        self.handler = ControlToolHandler(config, state, self.review)

    def handle(self, parsed: ControlCall) -> str | None:
        return self.handler.handle(call("c1", parsed.tool), parsed)

    def open_step(self) -> str | None:
        return self.review.open_step


def test_a_plan_is_numbered_and_versioned() -> None:
    session = Session()
    assert session.handle(PLAN) == ("Plan 1 is noted. The steps and their ids:\n1. Look\n2. Count")
    session.handle(PLAN)
    assert session.review.plan is not None
    assert session.review.plan.version == 2
    assert [type(event) for event in session.review.events] == [PlanUpdated, PlanUpdated]


def test_a_plan_under_review_waits_for_a_person() -> None:
    session = Session(plan_review="always")
    assert not session.handler.is_plan_approved()
    assert session.handle(PLAN) is None
    assert session.review.question is not None
    assert session.review.question.kind == "plan"
    assert not session.handler.is_plan_approved()
    assert session.handle(PLAN) == ONE_AT_A_TIME


def test_a_plan_under_review_fails_without_people() -> None:
    session = Session(people=False, plan_review="always")
    assert session.handle(PLAN) == PLAN_NOT_REVIEWED
    assert session.review.question is None


def test_only_complex_plans_are_reviewed_if_configured() -> None:
    session = Session(plan_review="complex")
    assert session.handler.is_plan_approved()
    assert session.handle(PLAN) is not None
    assert session.handler.is_plan_approved()
    assert session.handle(msgspec.structs.replace(PLAN, complexity="complex")) is None
    assert not session.handler.is_plan_approved()


def test_clarify_opens_a_step_and_a_final_status_closes_it() -> None:
    session = Session()
    session.handle(PLAN)
    assert session.handle(ClarifyCall("2", "Count them", "a number")) == "Step 2 is open: go on."
    assert session.open_step() == "2"
    assert session.handle(UpdatePlanCall("2", "in_progress")) == "Step 2 is in_progress."
    assert session.open_step() == "2"
    session.handle(UpdatePlanCall("2", "completed"))
    assert session.open_step() is None
    kinds = [type(event) for event in session.review.events]
    assert kinds.count(NodeStarted) == kinds.count(NodeCompleted) == 1


@pytest.mark.parametrize(
    "parsed", [ClarifyCall("9", "g", "c"), UpdatePlanCall("9", "completed")], ids=["clarify", "set"]
)
def test_an_unknown_step_is_answered_with_the_known_ones(parsed: ControlCall) -> None:
    session = Session()
    assert session.handle(parsed) == (
        "There is no step “9”. The steps are: none, there is no plan."
    )
    session.handle(PLAN)
    assert session.handle(parsed) == "There is no step “9”. The steps are: 1, 2."


def test_a_question_is_asked_once_at_a_time() -> None:
    session = Session()
    assert session.handle(RequestUserCall("Which?", ("A", "B"), multiple=True)) is None
    question = session.review.question
    assert question is not None
    assert (question.title, question.options, question.multiple) == ("Which?", ("A", "B"), True)
    assert question.id == "question-2Abc-1"
    assert session.handle(RequestUserCall("And?")) == ONE_AT_A_TIME


def test_a_question_without_options_is_not_multiple_choice() -> None:
    session = Session()
    session.handle(RequestUserCall("Which?", multiple=True))
    assert session.review.question is not None
    assert not session.review.question.multiple


def test_a_question_is_not_asked_without_people() -> None:
    assert Session(people=False).handle(RequestUserCall("Which?")) == NOBODY_TO_ASK


def test_clarify_with_a_question_opens_the_step_and_asks() -> None:
    session = Session()
    session.handle(PLAN)
    assert session.handle(ClarifyCall("1", "Look", "seen", needs_user_input=True)) is None
    assert session.open_step() == "1"
    assert session.review.question is not None
    assert session.review.question.title == "Look"
