"""Plans, and who the agent and its people are."""

from internal.agent.domain.plans import Plan, PlanStep, number_steps
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.profiles import Profile

PLAN = Plan(1, "Herons", "simple", number_steps(["Look", "Count"]))


def test_steps_are_numbered_from_one() -> None:
    assert PLAN.steps == (PlanStep("1", "Look"), PlanStep("2", "Count", "pending"))
    assert number_steps([]) == ()


def test_a_step_is_found_by_its_id() -> None:
    assert PLAN.step("2") is PLAN.steps[1]
    assert PLAN.step("3") is None


def test_marking_makes_another_plan() -> None:
    marked = PLAN.marked("2", "completed")
    assert [step.status for step in marked.steps] == ["pending", "completed"]
    assert [step.status for step in PLAN.steps] == ["pending", "pending"]
    assert (marked.version, marked.goal) == (PLAN.version, PLAN.goal)
    assert PLAN.marked("3", "failed") == PLAN


def test_a_profile_grants_all_tools_or_those_it_names() -> None:
    assert Profile().grants("shell")
    reader = Profile(tools=("read_file",))
    assert reader.grants("read_file")
    assert not reader.grants("shell")
    assert not Profile(tools=()).grants("read_file")


def test_the_owner_may_do_everything_and_a_right_is_no_other_right() -> None:
    assert all(LOCAL_OWNER.may(right) for right in ("talk", "operate", "owner"))
    talker = Principal("lark:a:ou_1", roles=frozenset({"talk"}))
    assert [talker.may(right) for right in ("talk", "operate", "owner")] == [True, False, False]
    assert Principal("x", roles=frozenset({"owner"})).may("operate")
    assert not Principal("stranger").may("talk")
