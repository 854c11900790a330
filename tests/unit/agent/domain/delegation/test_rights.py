"""Rights of a subtask: at most the rights of its creator."""

import msgspec
import pytest

from internal.agent.domain.delegation.requests import AgentProfile, NewTask
from internal.agent.domain.delegation.rights import (
    OPTIONS,
    Grant,
    describe_profile,
    narrow_profile,
    refuse_options,
    subtask_spec,
)
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.tasks import Profile, RunSpec
from internal.agent.domain.usage import RunLimits

TOOLS = ("read_file", "write_file", "shell", "create_task", "mcp__git__log")
LIMITS = RunLimits(max_iterations=20, timeout_seconds=100, max_cost=2.0)
CREATOR = RunSpec(
    policy=Policy(Mode.EDIT, ("shell(ls)", "network(example.com)"), ("shell(rm *)",)),
    limits=LIMITS,
    workspace="/srv/repo",
    people=True,
    skills=("charts", "review"),
)


def spec(
    profile: Profile, *, depth: int = 1, left: float | None = 2.0, **wanted: object
) -> RunSpec:
    task = msgspec.convert({"instruction": "x", **wanted}, NewTask)
    return subtask_spec(CREATOR, profile, task, workspace="/srv/repo", depth=depth, max_cost=left)


@pytest.mark.parametrize(
    ("ceiling", "mode"),
    [
        (None, Mode.EDIT),
        (Mode.PLAN, Mode.PLAN),
        (Mode.ASK, Mode.ASK),
        (Mode.ALL, Mode.EDIT),
    ],
)
def test_the_mode_is_the_narrower_one(ceiling: Mode | None, mode: Mode) -> None:
    made = spec(Profile(permission_mode=ceiling))
    assert made.policy == Policy(mode, CREATOR.policy.allow, CREATOR.policy.deny)
    assert made.people


@pytest.mark.parametrize(
    ("parent", "child", "granted"),
    [
        (None, None, None),
        (None, ("shell",), ("shell",)),
        (("read_file", "shell"), None, ("read_file", "shell")),
        (("read_file", "shell"), ("shell", "write_file"), ("shell",)),
        (("mcp__git",), ("mcp__git__log", "shell"), ("mcp__git__log",)),
    ],
)
def test_tools_are_those_that_both_grant(
    parent: tuple[str, ...] | None, child: tuple[str, ...] | None, granted: tuple[str, ...] | None
) -> None:
    made = narrow_profile(Profile(tools=parent), Profile("other", tools=child), TOOLS)
    assert made.tools == granted


def test_skills_are_those_of_the_creator_the_profile_and_the_call() -> None:
    assert spec(Profile()).skills == ("charts", "review")
    assert spec(Profile(skills=("Charts", "secret"))).skills == ("Charts",)
    assert spec(Profile(), skill_ids=["review", "secret"]).skills == ("review",)


def test_a_network_is_narrowed_and_never_widened() -> None:
    assert spec(Profile(network="off")).policy.allow == ("shell(ls)",)
    assert spec(Profile(network="open")).policy.allow == CREATOR.policy.allow
    assert spec(Profile(network=("other.com",))).policy.allow == CREATOR.policy.allow


def test_limits_are_the_smallest() -> None:
    roomy = Profile(max_iterations=50, max_cost=9.0, timeout_seconds=500)
    tight = Profile(max_iterations=5, max_cost=0.5, timeout_seconds=10)
    assert spec(roomy).limits == LIMITS
    assert spec(tight).limits == RunLimits(max_iterations=5, timeout_seconds=10, max_cost=0.5)
    assert spec(Profile(), left=0.1, max_cost=1.0).limits.max_cost == 0.1
    assert spec(Profile(), left=None, max_cost=1.0).limits.max_cost == 1.0


def test_only_a_profile_that_says_so_delegates_and_not_below_depth_two() -> None:
    assert not spec(Profile()).delegates
    assert spec(Profile(delegates=True)).delegates
    assert not spec(Profile(delegates=True), depth=2).delegates


def test_a_plan_of_a_subtask_is_neither_demanded_nor_reviewed() -> None:
    made = spec(Profile(plan_review="always"))
    assert (made.gates, made.plan_review) == ("advisory", "off")


def test_folders_follow_the_choice() -> None:
    assert (spec(Profile()).workspace, spec(Profile()).own_folder) == ("/srv/repo", False)
    own = spec(Profile(), workspace="own")
    assert (own.workspace, own.own_folder) == ("", True)
    assert spec(Profile(), workspace="worktree").workspace == "/srv/repo"


def test_the_model_is_that_of_the_call_else_of_the_profile_else_of_the_creator() -> None:
    creator = msgspec.structs.replace(CREATOR, model="big", any_model=True)
    models = [
        subtask_spec(
            creator, profile, NewTask("x", model=wanted), workspace="", depth=1, max_cost=None
        ).model
        for profile, wanted in (
            (Profile(), None),
            (Profile(model="small"), None),
            (Profile(model="small"), "tiny"),
        )
    ]
    assert models == ["big", "small", "tiny"]


def test_a_described_profile_has_the_rights_of_the_creator_and_never_delegates() -> None:
    parent = Profile("boss", tools=("shell",), prompt="Be careful.", delegates=True, tone="dry")
    made = describe_profile(parent, AgentProfile(role="digger", goal="dig"))
    assert (made.name, made.role, made.goal, made.tone) == ("subtask", "digger", "dig", "dry")
    assert (made.tools, made.prompt, made.delegates) == (("shell",), "Be careful.", False)


def doubt(model: str) -> str:
    return "" if model == "claude-known" else f"Anthropic may not have the model {model}."


def refused(*, creator: RunSpec = CREATOR, **wanted: object) -> str:
    task = msgspec.convert({"instruction": "x", **wanted}, NewTask)
    profile = narrow_profile(creator.profile, Profile("other", tools=("shell",)), TOOLS)
    return refuse_options(Grant(creator, profile, TOOLS, doubt), task)


def test_each_option_of_a_subtask_is_held_against_what_the_person_may_choose() -> None:
    assert OPTIONS.keys() == set(NewTask.__struct_fields__)


CHOOSER = msgspec.structs.replace(CREATOR, any_model=True)


@pytest.mark.parametrize(
    ("wanted", "creator", "sentence"),
    [
        ({}, CREATOR, ""),
        ({"tools": ["shell"], "skill_ids": ["Charts"]}, CREATOR, ""),
        ({"tools": ["shel"]}, CREATOR, "you have no tool shel to give. Did you mean shell?"),
        ({"tools": ["write_file"]}, CREATOR, "you have no tool write_file to give."),
        ({"skill_ids": ["charts", "other"]}, CREATOR, "you may not load the skills other"),
        ({"model": "claude-known"}, CREATOR, "the person of this task may not choose a model."),
        ({"model": "claude-own"}, msgspec.structs.replace(CREATOR, model="claude-own"), ""),
        ({"model": "claude-known"}, CHOOSER, ""),
        ({"model": "claude-nope"}, CHOOSER, "Anthropic may not have the model claude-nope."),
    ],
)
def test_what_the_person_may_not_choose_is_refused(
    wanted: dict[str, object], creator: RunSpec, sentence: str
) -> None:
    refusal = refused(creator=creator, **wanted)
    assert refusal.startswith(sentence)
    assert bool(refusal) == bool(sentence)


@pytest.mark.parametrize(("any_model", "model"), [(False, "own"), (True, "of-profile")])
def test_a_profile_chooses_no_model_for_somebody_who_may_not(any_model: bool, model: str) -> None:
    creator = msgspec.structs.replace(CREATOR, model="own", any_model=any_model)
    made = subtask_spec(
        creator,
        Profile(model="of-profile"),
        NewTask("x"),
        workspace="",
        depth=1,
        max_cost=None,
    )
    assert (made.model, made.any_model) == (model, any_model)
