"""The tools, searches and profiles of tasks, and the options of a task that sets none."""

from pathlib import Path

from internal.agent.app.mentions import MENTION_SPEC
from internal.agent.app.task_options import TaskDefaults, find_profile
from internal.agent.domain.delegation.requests import DELEGATION_SPECS
from internal.agent.domain.permissions.network import rules_of_network
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.permissions.rules import parse_rule
from internal.agent.domain.permissions.targets import ToolTargets
from internal.agent.domain.tools import targets_by_tool
from internal.agent.domain.usage import RunLimits
from internal.agent.ports.llm import ModelBook
from internal.mcp.tool_source import REVIEW_SERVER_SPEC
from internal.observability.clock import SystemClock
from internal.profiles.library import DEFAULT_PROFILE, ProfileLibrary, shipped_folder
from internal.settings.settings import Settings, WebSearchSettings
from internal.skills.tool_source import SKILL_SPECS
from internal.tools.http_client import Fetcher
from internal.tools.registry import TOOLS
from internal.tools.web_search.search import MAX_RESPONSE_BYTES, WebSearch

TOOL_SPECS = (
    *(tool.spec for tool in TOOLS),
    *SKILL_SPECS,
    *DELEGATION_SPECS,
    REVIEW_SERVER_SPEC,
    MENTION_SPEC,
)
"""The tools that rules and profiles can name, without the control tools."""


def open_profiles(home: Path, book: ModelBook) -> ProfileLibrary:
    """Open the shipped profiles and the profiles of the home folder."""
    tools = [spec.name for spec in TOOL_SPECS]
    return ProfileLibrary([home / "profiles"], tools, book.doubt, shipped_folder())


def task_defaults(settings: Settings, book: ModelBook, profiles: ProfileLibrary) -> TaskDefaults:
    """Return the options of a task that sets none.

    Raises:
        InvalidRequest: a rule is invalid, or the profile of the settings cannot be used.
    """
    agent, targets = settings.agent, tool_targets()
    hosts = rules_of_network(settings.sandbox.network)
    policy = Policy(allow=(*settings.tools.allow, *hosts), deny=settings.tools.deny)
    policy.check(targets)
    for hook in settings.hooks:
        if hook.match is not None:
            parse_rule(hook.match, targets)
    defaults = TaskDefaults(
        profiles=profiles,
        profile_problems=profiles.problems,
        profile_warnings=profiles.warnings,
        policy=policy,
        targets=targets,
        limits=RunLimits(
            max_iterations=agent.max_iterations,
            timeout_seconds=agent.run_timeout_seconds,
            max_consecutive_tool_failures=agent.max_consecutive_tool_failures,
            max_cost=agent.max_cost or None,
            max_tokens=agent.max_tokens or None,
            max_daily_cost=settings.access.max_daily_cost or None,
            max_daily_tokens=settings.access.max_daily_tokens or None,
            max_running=min(settings.access.max_running, settings.dispatch.concurrency // 2 or 1),
            max_waiting=settings.access.max_waiting,
        ),
        gates=agent.gates,
        provider=settings.llm.provider,
        model=settings.llm.model,
        prices=book.prices,
        profile=agent.profile,
        workspace=str(agent.workspace or ""),
        plan_review=agent.plan_review,
        question_ttl_minutes=agent.question_ttl_minutes,
        report=settings.tasks.report,
    )
    # the shipped ones are valid; reading them here would delay every start
    if agent.profile != DEFAULT_PROFILE or not profiles.has_only(shipped_folder()):
        find_profile(defaults, agent.profile)
    return defaults


def tool_targets() -> ToolTargets:
    """Return the targets that the permission rules of each tool name."""
    return targets_by_tool(TOOL_SPECS)


def make_web_search(settings: WebSearchSettings, clock: SystemClock) -> WebSearch | None:
    """Return the search that the settings configure, None if no provider can be asked."""
    providers = settings.configured_providers()
    if all(provider.missing for provider in providers):
        return None
    fetcher = Fetcher(
        max_bytes=MAX_RESPONSE_BYTES,
        timeout_seconds=settings.timeout_seconds,
        allow_private_networks=settings.allow_private_networks,
    )
    return WebSearch(providers, fetcher, clock, cache_minutes=settings.cache_minutes)
