"""Rights of subtasks: at most the rights of the task that creates them.

`OPTIONS` has for each option of a subtask its comparison with the options that the creator's person
may choose. `subtask_spec` narrows the options that are not refused.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from internal.agent.domain.delegation.requests import AgentProfile, NewTask
from internal.agent.domain.delegation.subtask import MAX_DEPTH
from internal.agent.domain.permissions.network import widens_network
from internal.agent.domain.permissions.policy import Policy, with_network
from internal.agent.domain.tasks import Profile, RunSpec
from internal.agent.domain.usage import RunLimits

NEW_PROFILE = "subtask"
"""The name of a profile that a run describes itself."""


class Grant(NamedTuple):
    """Rights and options that a creator can give to a subtask.

    Attributes:
        creator: the specification of the creator.
        profile: the profile of the subtask, as `narrow_profile` returns it.
        tools: the names of all tools that exist.
        doubt: returns why the provider may not have a model, a sentence, or "".
    """

    creator: RunSpec
    profile: Profile
    tools: Sequence[str]
    doubt: Callable[[str], str]


def _nothing_refused(_grant: Grant, _wanted: NewTask) -> str:
    return ""


def _refuse_tools(grant: Grant, wanted: NewTask) -> str:
    known = [name for name in grant.tools if grant.profile.grants(name)]
    for name in wanted.tools or ():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            return f"you have no tool {name} to give.{hint}"
    return ""


def _refuse_skills(grant: Grant, wanted: NewTask) -> str:
    granted = _narrow_names(grant.creator.skills, grant.profile.skills)
    if granted is None:
        return ""
    missing = {each.casefold() for each in wanted.skill_ids or ()}
    missing -= {each.casefold() for each in granted}
    return f"you may not load the skills {', '.join(sorted(missing))} yourself." if missing else ""


def _refuse_model(grant: Grant, wanted: NewTask) -> str:
    if wanted.model is None or wanted.model == grant.creator.model:
        return ""
    if not grant.creator.any_model:
        return f"the person of this task may not choose a model. Leave it out: {wanted.model[:80]}."
    return grant.doubt(wanted.model)


OPTIONS: Mapping[str, Callable[[Grant, NewTask], str]] = {
    "instruction": _nothing_refused,
    "agent_profile": _nothing_refused,  # gives no more than the creator has: narrow_profile
    "skill_ids": _refuse_skills,
    "tools": _refuse_tools,
    "files": _nothing_refused,  # read with the deny rules of the creator
    "workspace": _nothing_refused,  # all are folders of the creator or new
    "depends_on": _nothing_refused,  # tasks of the same conversation
    "model": _refuse_model,
    "max_cost": _nothing_refused,  # the smaller limit counts
}
"""Reason why an option of a subtask is refused, a sentence, or "", by member of `NewTask`."""


def refuse_options(grant: Grant, wanted: NewTask) -> str:
    """Return why the options of a subtask are refused, a sentence, or ""."""
    return next(filter(None, (refuse(grant, wanted) for refuse in OPTIONS.values())), "")


def describe_profile(parent: Profile, described: AgentProfile) -> Profile:
    """Return the profile that a run describes; missing values come from its own profile."""
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
    """Return the specification of a subtask.

    Its mode, rules, network and limits are at most those of its creator, and it has the creator's
    model unless the person may choose one. Its plans are not reviewed: the creator's plan was,
    before it could create tasks.

    Args:
        creator: the specification of its creator.
        profile: the profile, as `narrow_profile` returns it.
        wanted: the request of the creator.
        workspace: the absolute path of the creator's folder, "" for the session's folder.
        depth: 1 for a subtask of an outermost task.
        max_cost: the remaining budget of the outermost task, in US dollars; None without a limit.
    """
    policy = creator.policy
    if profile.network is not None and not widens_network(policy.allow, profile.network):
        policy = with_network(policy, profile.network)
    skills = _narrow_names(creator.skills, profile.skills)
    model = wanted.model or profile.model or creator.model
    if wanted.tools is not None:
        names = tuple(name for name in wanted.tools if profile.grants(name))
        profile = msgspec.structs.replace(profile, tools=names)
    return msgspec.structs.replace(
        creator,
        profile=profile,
        policy=Policy(profile.narrow_mode(policy.mode), policy.allow, policy.deny),
        limits=_limits(creator.limits, profile, wanted.max_cost, max_cost),
        gates="off" if creator.gates == "off" else "advisory",
        plan_review="off",
        model=model if creator.any_model else creator.model,
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
