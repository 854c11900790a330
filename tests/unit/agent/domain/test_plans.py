"""Plans: numbering, lookup and status changes of steps."""

from internal.agent.domain.plans import Plan, PlanStep, number_steps

PLAN = Plan(1, "Herons", "simple", number_steps(["Look", "Count"]))


def test_steps_are_numbered_from_one() -> None:
    assert PLAN.steps == (PlanStep("1", "Look"), PlanStep("2", "Count", "pending"))
    assert number_steps([]) == ()


def test_a_step_is_found_by_its_id() -> None:
    assert PLAN.step("2") is PLAN.steps[1]
    assert PLAN.step("3") is None


def test_marking_a_step_returns_a_new_plan() -> None:
    marked = PLAN.marked("2", "completed")
    assert [step.status for step in marked.steps] == ["pending", "completed"]
    assert [step.status for step in PLAN.steps] == ["pending", "pending"]
    assert (marked.version, marked.goal) == (PLAN.version, PLAN.goal)
    assert PLAN.marked("3", "failed") == PLAN
