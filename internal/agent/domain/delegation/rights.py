"""Rights of subtasks: at most those of the task that creates them."""

from collections.abc import Iterable

import msgspec

from internal.agent.domain.delegation.requests import AgentProfile, NewTask
from internal.agent.domain.delegation.subtask import MAX_DEPTH
from internal.agent.domain.permissions.network import widens_network
from internal.agent.domain.permissions.policy import Policy, with_network
from internal.agent.domain.tasks import Profile, RunSpec
from internal.agent.domain.usage import RunLimits

NEW_PROFILE = "subtask"
"""The name of a profile that a run describes itself."""


def describe_profile(parent: Profile, described: AgentProfile) -> Profile:
    """Return the profile that a run describes; what it does not say is its own."""
    return msgspec.structs.replace(
        parent,
        name=described.name or NEW_PROFILE,
        description="",
        role=described.role or described.name or parent.role,
        goal=described.goal,
        tone=described.tone or parent.tone,
        keywords=(),
        delegates=False,
    )


def narrow_profile(parent: Profile, child: Profile, tools: Iterable[str]) -> Profile:
    """Return a profile without the tools and skills that the parent does not grant.

    `tools` are the names of all tools that exist.
    """
    granted = child.tools
    if parent.tools is not None and child is not parent:
        granted = (
            parent.tools
            if child.tools is None
            else tuple(name for name in tools if parent.grants(name) and child.grants(name))
        )
    return msgspec.structs.replace(
        child, tools=granted, skills=_narrow_names(parent.skills, child.skills)
    )


def subtask_spec(
    creator: RunSpec,
    profile: Profile,
    wanted: NewTask,
    *,
    workspace: str,
    depth: int,
    max_cost: float | None,
) -> RunSpec:
    """Return how a subtask runs.

    Its mode, rules, network and limits are at most those of its creator. Its plans are not
    reviewed: the creator's was, before it could create tasks.

    Args:
        creator: how its creator runs.
        profile: the profile, as `narrow_profile` returns it.
        wanted: what the creator asks for.
        workspace: the absolute path of the creator's folder, "" if that is the session's.
        depth: 1 for a subtask of an outermost task.
        max_cost: what the outermost task has left, in US dollars; None without a limit.
    """
    policy = creator.policy
    if profile.network is not None and not widens_network(policy.allow, profile.network):
        policy = with_network(policy, profile.network)
    skills = _narrow_names(creator.skills, profile.skills)
    if wanted.tools is not None:
        names = tuple(name for name in wanted.tools if profile.grants(name))
        profile = msgspec.structs.replace(profile, tools=names)
    return msgspec.structs.replace(
        creator,
        profile=profile,
        policy=Policy(profile.narrow_mode(policy.mode), policy.allow, policy.deny),
        limits=_limits(creator.limits, profile, wanted.max_cost, max_cost),
        gates="advisory" if creator.gates == "strict" else creator.gates,
        plan_review="off",
        model=wanted.model or profile.model or creator.model,
        skills=skills if wanted.skill_ids is None else _narrow_names(skills, wanted.skill_ids),
        workspace="" if wanted.workspace == "own" else workspace,
        own_folder=wanted.workspace == "own",
        delegates=profile.delegates and depth < MAX_DEPTH,
    )


def _narrow_names(
    parent: tuple[str, ...] | None, child: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Return the names that both have; None stands for all names."""
    if parent is None or child is None:
        return child if parent is None else parent
    known = {name.casefold() for name in parent}
    return tuple(name for name in child if name.casefold() in known)


def _limits(
    limits: RunLimits, profile: Profile, wanted: float | None, left: float | None
) -> RunLimits:
    costs = [cost for cost in (limits.max_cost, profile.max_cost, wanted, left) if cost is not None]
    iterations, seconds = profile.max_iterations, profile.timeout_seconds
    return msgspec.structs.replace(
        limits,
        max_cost=min(costs, default=None),
        max_iterations=min(limits.max_iterations, iterations or limits.max_iterations),
        timeout_seconds=min(limits.timeout_seconds, seconds or limits.timeout_seconds),
    )
