"""Task options: the settings and the submitter's choices become the run spec of a task."""

import difflib
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Annotated

import msgspec
from msgspec import Meta

from internal.agent.domain.delegation.subtask import ReportMode
from internal.agent.domain.errors import Forbidden, InvalidRequest, ProfileUnusable
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.network import NetworkSetting, widens_network
from internal.agent.domain.permissions.policy import Policy, with_network
from internal.agent.domain.permissions.rules import MAX_RULES, RuleText, check_rule_lengths
from internal.agent.domain.permissions.targets import ToolTargets
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import GateMode, Profile, RunSpec
from internal.agent.domain.text import escape_invisible
from internal.agent.domain.usage import PriceTable, RunLimits
from internal.agent.ports.skills import is_granted
from internal.normal_forms.time_zones import check_time_zone

UNPRIVILEGED_MODES: tuple[Mode, ...] = (Mode.DENY, Mode.PLAN, Mode.ASK, Mode.RUN)
"""Permission modes that everybody may choose for their own tasks."""


REVIEW_STRICTNESS: dict[PlanReview, int] = {"off": 0, "complex": 1, "always": 2}


SkillName = Annotated[str, Meta(min_length=1, max_length=200)]


class TaskOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Choices of the submitter; None and () keep the value of the settings.

    `workspace` is an absolute path, `max_cost` in US dollars. Without `approvals`, calls that need
    an approval are refused. `network` is what isolated commands reach without approval, instead of
    what the settings say. `skills` are the names of the skills that the task may load, of those
    that its profile grants. `time_zone` is where the submitter is, such as Asia/Shanghai.
    """

    workspace: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    permission_mode: Mode | None = None
    allow: Annotated[tuple[RuleText, ...], Meta(max_length=MAX_RULES)] = ()
    deny: Annotated[tuple[RuleText, ...], Meta(max_length=MAX_RULES)] = ()
    model: str | None = None
    max_iterations: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    max_cost: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=7 * 24 * 3600)] | None = None
    approvals: bool = True
    plan_review: PlanReview | None = None
    network: NetworkSetting | None = None
    skills: Annotated[tuple[SkillName, ...], Meta(max_length=50)] | None = None
    time_zone: Annotated[str, Meta(min_length=1, max_length=60)] | None = None


class TaskDefaults(msgspec.Struct, frozen=True):
    """The values of the settings, for a task without options. `profiles` is keyed by name.

    `profile_problems` returns why profiles cannot be used, by name, `profile_warnings` what may be
    wrong with others.
    `isolated`: commands run in a sandbox that isolates them. `hosts`: it can let them reach hosts.
    `check_folder` raises InvalidRequest for a path that cannot be a workspace, as far as that is
    known here.
    """

    profiles: Mapping[str, Profile]
    policy: Policy
    limits: RunLimits
    gates: GateMode
    provider: str
    model: str
    prices: PriceTable
    targets: ToolTargets
    profile: str = "default"
    workspace: str = ""
    plan_review: PlanReview = "off"
    question_ttl_minutes: int = 1440
    report: ReportMode = "group"
    isolated: bool = False
    hosts: bool = True
    profile_problems: Callable[[], Mapping[str, str]] = dict
    profile_warnings: Callable[[], Mapping[str, str]] = dict
    check_folder: Callable[[str], None] = lambda _path: None

    @property
    def is_priced(self) -> bool:
        """True if the price of the default model is known, or nothing is paid for it."""
        return self.provider == "offline" or self.prices.price(self.model) is not None

    def possible_network(self, setting: NetworkSetting | None) -> NetworkSetting | None:
        """Return the network of commands with this choice, None to keep the configured one."""
        return "off" if setting is not None and self.isolated and not self.hosts else setting


def build_run_spec(
    defaults: TaskDefaults,
    options: TaskOptions,
    principal: Principal,
    profile_name: str | None = None,
    *,
    policy: Policy | None = None,
) -> RunSpec:
    """Return the run spec of a task.

    Args:
        defaults: the values of the settings.
        options: what the submitter chose.
        principal: the submitter.
        profile_name: the profile; None for that of the settings.
        policy: what the options add to; None for the policy of the settings and the profile.

    Raises:
        InvalidRequest: a rule, a profile or the time zone is unknown, the profile cannot be used
            or does not allow the mode, the workspace is not a folder, or the model of a cost limit
            has no price.
        Forbidden: only the owner may choose a workspace, allow tools or widen the mode or the
            network.
    """
    profile = find_profile(defaults, profile_name or defaults.profile)
    _check_rights(options, principal)
    check_rule_lengths((*options.allow, *options.deny))
    if options.permission_mode is not None and profile.exceeds(options.permission_mode):
        raise InvalidRequest(
            f"The profile {profile.name} allows at most the mode {profile.permission_mode}.",
            reason_code="mode_exceeds_profile",
            profile=profile.name,
            mode=profile.permission_mode or "",
        )
    model = options.model or profile.model or defaults.model
    if options.max_cost is not None and defaults.prices.price(model) is None:
        raise InvalidRequest(
            f"max_cost needs a price for {model}: set llm.prices.{model} (dollars per million"
            " tokens for input and output).",
            reason_code="cost_limit_without_price",
            model=model,
        )
    if policy is None:
        policy = profile_policy(defaults, profile)
    base = choose_network(defaults, policy, options.network, principal)
    policy = Policy(
        mode=options.permission_mode or profile.narrow_mode(base.mode),
        allow=(*base.allow, *options.allow),
        deny=(*base.deny, *options.deny),
    )
    policy.check(defaults.targets)
    return RunSpec(
        profile=profile,
        policy=policy,
        limits=_limits(_profile_limits(defaults.limits, profile), options, principal),
        gates=defaults.gates,
        workspace=_workspace(defaults, options.workspace or defaults.workspace),
        provider=defaults.provider,
        model=model,
        people=True,
        approvals=options.approvals,
        plan_review=_review(
            profile.plan_review or defaults.plan_review, options.plan_review, principal
        ),
        question_ttl_minutes=defaults.question_ttl_minutes,
        skills=_skills(profile, options.skills),
        report=defaults.report,
        any_model=principal.may("operate"),
        time_zone=_time_zone(options.time_zone),
    )


def _time_zone(name: str | None) -> str:
    """Return the time zone of a task, "" if none is chosen.

    Raises:
        InvalidRequest: there is no such zone.
    """
    try:
        return "" if name is None else check_time_zone(name)
    except ValueError as error:
        raise InvalidRequest(
            f"time_zone: {error}.", reason_code="no_time_zone", detail=str(error)
        ) from error


def _skills(profile: Profile, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the names of the skills of a task.

    Raises:
        InvalidRequest: the profile does not grant one of them.
    """
    if wanted is None:
        return profile.skills
    if refused := [name for name in wanted if not is_granted(name, profile.skills)]:
        names = escape_invisible(", ".join(refused)[:200])
        raise InvalidRequest(
            f"The profile {profile.name} does not grant the skills: {names}.",
            reason_code="skills_not_granted",
            profile=profile.name,
            names=names,
        )
    return wanted


def profile_policy(defaults: TaskDefaults, profile: Profile) -> Policy:
    """Return the policy of the settings with the network of a profile."""
    return with_network(defaults.policy, defaults.possible_network(profile.network))


def find_profile(defaults: TaskDefaults, name: str) -> Profile:
    """Return a profile.

    Raises:
        ProfileUnusable: it is unknown or cannot be used.
    """
    profile = defaults.profiles.get(name)
    if profile is not None:
        return profile
    if problem := defaults.profile_problems().get(name):
        raise ProfileUnusable(
            f"The profile {name[:80]} cannot be used: {problem}",
            reason_code="profile_unusable",
            profile=name[:80],
            problem=problem,
        )
    near = difflib.get_close_matches(name[:80], defaults.profiles, n=1)
    known = f"Did you mean {near[0]}?" if near else f"Profiles: {', '.join(defaults.profiles)}."
    raise ProfileUnusable(
        f"There is no profile {escape_invisible(name[:80])}. {known}",
        reason_code="no_profile",
        profile=escape_invisible(name[:80]),
    )


def choose_network(
    defaults: TaskDefaults, policy: Policy, setting: NetworkSetting | None, principal: Principal
) -> Policy:
    """Return the policy with the network that somebody chose; None changes nothing.

    Raises:
        InvalidRequest: an entry is not a host, or the sandbox lets commands reach no host.
        Forbidden: only the owner may choose a host that the policy does not have.
    """
    chosen = with_network(policy, setting)
    if defaults.possible_network(setting) != setting:
        raise InvalidRequest(
            "Commands have no network in the sandbox of this machine.",
            reason_code="no_network_in_sandbox",
        )
    if setting is None or principal.may("owner"):
        return chosen
    if widens_network(policy.allow, setting):
        raise Forbidden(
            "Only the owner may let commands reach more hosts than the settings do.",
            reason_code="network_by_owner",
        )
    return chosen


def _review(own: PlanReview, wanted: PlanReview | None, principal: Principal) -> PlanReview:
    """Return which plans are reviewed. Only the owner may choose less than the settings."""
    if wanted is None or (
        not principal.may("owner") and REVIEW_STRICTNESS[wanted] < REVIEW_STRICTNESS[own]
    ):
        return own
    return wanted


def _check_rights(options: TaskOptions, principal: Principal) -> None:
    if principal.may("owner"):
        return
    if options.workspace or options.allow:
        raise Forbidden(
            "Only the owner may choose a workspace or allow tools.",
            reason_code="workspace_by_owner",
        )
    if options.permission_mode is not None and options.permission_mode not in UNPRIVILEGED_MODES:
        raise Forbidden(
            f"Only the owner may use the mode {options.permission_mode}.",
            reason_code="mode_by_owner",
            mode=options.permission_mode,
        )


def _profile_limits(limits: RunLimits, profile: Profile) -> RunLimits:
    return msgspec.structs.replace(
        limits,
        max_iterations=profile.max_iterations or limits.max_iterations,
        max_cost=limits.max_cost if profile.max_cost is None else profile.max_cost,
        timeout_seconds=profile.timeout_seconds or limits.timeout_seconds,
    )


def _limits(limits: RunLimits, options: TaskOptions, principal: Principal) -> RunLimits:
    """Return the limits of a task.

    The daily limits do not apply to the owner and operators, the limits of running and waiting
    tasks not to the owner.
    """
    trusted, is_owner = principal.may("operate"), principal.may("owner")
    return msgspec.structs.replace(
        limits,
        max_daily_cost=None if trusted else limits.max_daily_cost,
        max_daily_tokens=None if trusted else limits.max_daily_tokens,
        max_running=None if is_owner else limits.max_running,
        max_waiting=None if is_owner else limits.max_waiting,
        max_iterations=options.max_iterations or limits.max_iterations,
        max_cost=limits.max_cost if options.max_cost is None else options.max_cost,
        timeout_seconds=options.timeout_seconds or limits.timeout_seconds,
    )


def _workspace(defaults: TaskDefaults, folder: str) -> str:
    if folder and ("\0" in folder or not PurePath(folder).is_absolute()):
        shown = escape_invisible(folder[:200])
        raise InvalidRequest(
            f"The workspace must be an absolute path such as /home/me/project, not {shown}.",
            reason_code="workspace_not_absolute",
            folder=shown,
        )
    if folder:
        defaults.check_folder(folder)
    return folder
