"""Task options: the settings, the choices of the submitter, and the rights to choose."""

import re
from typing import Any

import msgspec
import pytest

from internal.agent.app.task_options import (
    UNPRIVILEGED_MODES,
    TaskDefaults,
    TaskOptions,
    build_run_spec,
)
from internal.agent.domain.errors import Forbidden, InvalidRequest, ProfileUnusable
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.tasks import Profile, RunSpec
from internal.agent.domain.tools import targets_by_tool
from internal.agent.domain.usage import Price, PriceTable, RunLimits
from internal.tools.registry import TOOLS

TARGETS = targets_by_tool(each.spec for each in TOOLS)
READER = Profile("reader", tools=("read_file",), model="claude-small")
DEFAULTS = TaskDefaults(
    profiles={"default": Profile(), "reader": READER},
    policy=Policy(Mode.ASK, allow=("shell(ls)",), deny=("shell(rm *)",)),
    limits=RunLimits(20, 5.0, 60.0, 3),
    gates="advisory",
    provider="anthropic",
    model="claude-x",
    prices=PriceTable({"claude-x": Price(1.0, 1.0)}),
    targets=TARGETS,
    workspace="/work",
)
TALKER = Principal("lark:a:ou_1", roles=frozenset({"talk"}))
OPERATOR = Principal("lark:a:ou_2", roles=frozenset({"talk", "operate"}))


def run_spec(principal: Principal = LOCAL_OWNER, **options: Any) -> RunSpec:
    return build_run_spec(DEFAULTS, msgspec.convert(options, TaskOptions), principal)


@pytest.mark.parametrize("principal", [LOCAL_OWNER, TALKER])
def test_without_options_the_settings_apply(principal: Principal) -> None:
    assert run_spec(principal) == RunSpec(
        profile=Profile(),
        policy=DEFAULTS.policy,
        limits=DEFAULTS.limits,
        gates="advisory",
        workspace="/work",
        provider="anthropic",
        model="claude-x",
        people=True,
        any_model=principal.may("operate"),
    )


def test_options_override_the_settings() -> None:
    made = run_spec(
        workspace="/elsewhere",
        permission_mode="all",
        allow=["write_file(out/**)"],
        deny=["web_fetch"],
        model="claude-x-5",
        max_iterations=3,
        max_cost=0.5,
        timeout_seconds=1.5,
    )
    assert made.policy == Policy(
        Mode.ALL, allow=("shell(ls)", "write_file(out/**)"), deny=("shell(rm *)", "web_fetch")
    )
    assert made.limits == RunLimits(3, 0.5, 1.5, 3)
    assert (made.workspace, made.model) == ("/elsewhere", "claude-x-5")


def test_the_model_of_the_profile_is_used_unless_one_is_chosen() -> None:
    assert build_run_spec(DEFAULTS, TaskOptions(), TALKER, "reader").model == "claude-small"
    made = build_run_spec(DEFAULTS, TaskOptions(model="claude-x"), TALKER, "reader")
    assert (made.profile, made.model) == (READER, "claude-x")


def test_the_error_of_an_unknown_profile_lists_the_profiles() -> None:
    with pytest.raises(
        InvalidRequest, match=r"There is no profile x{80}\. Profiles: default, reader\."
    ):
        build_run_spec(DEFAULTS, TaskOptions(), LOCAL_OWNER, "x" * 5000)


@pytest.mark.parametrize("principal", [TALKER, OPERATOR, Principal("stranger")])
@pytest.mark.parametrize(
    "options",
    [
        {"workspace": "/"},
        {"allow": ["shell(ls)"]},
        {"permission_mode": "all"},
        {"permission_mode": "edit"},
    ],
)
def test_only_the_owner_widens_permissions(principal: Principal, options: dict[str, Any]) -> None:
    with pytest.raises(Forbidden, match="Only the owner may"):
        run_spec(principal, **options)
    run_spec(LOCAL_OWNER, **options)


@pytest.mark.parametrize("mode", UNPRIVILEGED_MODES)
def test_everybody_may_narrow_permissions(mode: Mode) -> None:
    made = run_spec(TALKER, permission_mode=mode, deny=["shell"])
    assert made.policy.mode is mode
    assert "shell" in made.policy.deny


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_cost": 1.0, "model": "gpt-x"}, "max_cost needs a price for gpt-x: set llm.prices"),
        ({"allow": ["shell("]}, "shell"),
        ({"deny": ["Not A Rule"]}, "Not A Rule"),
        ({"workspace": "work"}, "an absolute path such as /home/me/project, not work."),
        ({"workspace": "/a\0b"}, "an absolute path such as /home/me/project, not /a\\u0000b."),
    ],
)
def test_invalid_values_are_rejected_by_name(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        run_spec(**options)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_iterations", [0, 10_001]),
        ("max_cost", [0, -0.1, 2_000_000]),
        ("timeout_seconds", [0, 604_801]),
        ("workspace", ["", "/" * 4097]),
    ],
)
def test_options_out_of_range_are_rejected_by_name(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(msgspec.ValidationError, match=rf"\$\.{name}"):
            run_spec(**{name: value})


def test_the_workspace_of_the_settings_must_be_absolute() -> None:
    crooked = TaskDefaults(
        {"default": Profile()},
        Policy(),
        RunLimits(),
        "off",
        "p",
        "m",
        PriceTable(),
        TARGETS,
        workspace="here",
    )
    with pytest.raises(InvalidRequest, match="absolute"):
        build_run_spec(crooked, TaskOptions(), TALKER)


def test_operators_and_the_owner_have_no_daily_limit() -> None:
    limits = RunLimits(max_daily_cost=5.0, max_daily_tokens=9)
    defaults = msgspec.structs.replace(DEFAULTS, limits=limits)
    operator = Principal("lark:a:ou_1", roles=frozenset({"talk", "operate"}))

    def limited(principal: Principal) -> bool:
        return build_run_spec(defaults, TaskOptions(), principal).limits.has_daily_limit

    assert [limited(each) for each in (TALKER, operator, LOCAL_OWNER)] == [True, False, False]


def test_unknown_options_are_rejected() -> None:
    with pytest.raises(msgspec.ValidationError, match="`sudo`"):
        msgspec.convert({"sudo": True}, TaskOptions)


def test_only_the_owner_reduces_plan_review() -> None:
    strict = msgspec.structs.replace(DEFAULTS, plan_review="complex")

    def review(principal: Principal, wanted: PlanReview) -> str:
        return build_run_spec(strict, TaskOptions(plan_review=wanted), principal).plan_review

    assert [review(TALKER, each) for each in ("off", "always")] == ["complex", "always"]
    assert [review(LOCAL_OWNER, each) for each in ("off", "always")] == ["off", "always"]
    assert build_run_spec(strict, TaskOptions(), TALKER).plan_review == "complex"


SOME_NETWORK = msgspec.structs.replace(
    DEFAULTS, policy=Policy(allow=("shell(ls)", "network(a.example)")), isolated=True
)


@pytest.mark.parametrize(
    ("network", "allow"),
    [
        ("off", ("shell(ls)",)),
        ("open", ("shell(ls)", "network")),
        (["b.example"], ("shell(ls)", "network(b.example)")),
        (None, ("shell(ls)", "network(a.example)")),
    ],
)
def test_the_network_of_a_task_replaces_that_of_the_settings(
    network: Any, allow: tuple[str, ...]
) -> None:
    options = msgspec.convert({"network": network}, TaskOptions)
    assert build_run_spec(SOME_NETWORK, options, LOCAL_OWNER).policy.allow == allow


@pytest.mark.parametrize("network", ["open", "registries", ["b.example"], ["*.example"]])
def test_only_the_owner_widens_the_network(network: Any) -> None:
    options = msgspec.convert({"network": network}, TaskOptions)
    with pytest.raises(Forbidden, match="Only the owner may let commands reach more hosts"):
        build_run_spec(SOME_NETWORK, options, OPERATOR)
    for narrower in ("off", ("a.example",), ()):
        spec = build_run_spec(SOME_NETWORK, TaskOptions(network=narrower), TALKER)
        assert "network" not in spec.policy.allow


@pytest.mark.parametrize("network", [["a b"], ["http://a.example"], ["off", "a.example"], [""]])
def test_what_is_no_host_is_refused(network: list[str]) -> None:
    with pytest.raises((InvalidRequest, msgspec.ValidationError)):
        build_run_spec(
            SOME_NETWORK, msgspec.convert({"network": network}, TaskOptions), LOCAL_OWNER
        )


def test_where_commands_reach_no_host_none_is_chosen() -> None:
    unable = msgspec.structs.replace(DEFAULTS, isolated=True, hosts=False)
    build_run_spec(unable, TaskOptions(network="off"), LOCAL_OWNER)
    with pytest.raises(InvalidRequest, match="no network in the sandbox of this machine"):
        build_run_spec(unable, TaskOptions(network="open"), LOCAL_OWNER)


REVIEWER = Profile(
    "reviewer",
    permission_mode=Mode.ASK,
    network="off",
    plan_review="always",
    max_iterations=3,
    max_cost=0.5,
    timeout_seconds=9.0,
)
WITH_REVIEWER = msgspec.structs.replace(
    SOME_NETWORK,
    profiles={"default": Profile(), "reviewer": REVIEWER},
    policy=Policy(Mode.RUN, allow=("network(a.example)",)),
    profile_problems=lambda: {"broken": "x.yaml:1: role must be text."},
)


def test_a_profile_narrows_the_mode_and_sets_limits_and_the_network() -> None:
    spec = build_run_spec(WITH_REVIEWER, TaskOptions(), LOCAL_OWNER, "reviewer")
    assert spec.policy == Policy(Mode.ASK)
    assert spec.plan_review == "always"
    limits = spec.limits
    assert (limits.max_iterations, limits.max_cost, limits.timeout_seconds) == (3, 0.5, 9.0)
    narrower = TaskOptions(permission_mode=Mode.PLAN, network=("a.example",))
    spec = build_run_spec(WITH_REVIEWER, narrower, LOCAL_OWNER, "reviewer")
    assert spec.policy == Policy(Mode.PLAN, allow=("network(a.example)",))


def test_a_mode_that_the_profile_does_not_allow_is_refused() -> None:
    wide = TaskOptions(permission_mode=Mode.ALL)
    with pytest.raises(InvalidRequest, match="reviewer allows at most the mode ask"):
        build_run_spec(WITH_REVIEWER, wide, LOCAL_OWNER, "reviewer")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("broken", "The profile broken cannot be used: x.yaml:1: role must be text."),
        ("reviewr", "There is no profile reviewr. Did you mean reviewer?"),
        ("zzz", "There is no profile zzz. Profiles: default, reviewer."),
        ("a\u202eb", "There is no profile a\\u202eb."),
    ],
)
def test_a_profile_that_cannot_be_used_is_named(name: str, sentence: str) -> None:
    with pytest.raises(ProfileUnusable, match=re.escape(sentence)):
        build_run_spec(WITH_REVIEWER, TaskOptions(), LOCAL_OWNER, name)


def test_modes_are_compared_by_what_runs_unasked() -> None:
    narrow = Profile(permission_mode=Mode.EDIT)
    assert [narrow.narrow_mode(mode) for mode in Mode] == [
        *(Mode.PLAN, Mode.DENY, Mode.ASK),
        *(Mode.EDIT, Mode.EDIT, Mode.EDIT),
    ]
    assert [mode for mode in Mode if Profile().exceeds(mode)] == []
