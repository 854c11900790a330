"""From settings to what the rooms take."""

from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.profiles import Profile
from internal.agent.domain.tools import targets_by_tool
from internal.agent.domain.usage import RunLimits
from internal.agent.ports.llm import ModelBook
from internal.config.settings import Settings
from internal.tools.registry import TOOLS


def briefing_defaults(settings: Settings, book: ModelBook) -> TaskDefaults:
    """Return what a task gets that asks for nothing."""
    agent = settings.agent
    targets = targets_by_tool(each.spec for each in TOOLS)
    policy = Policy(allow=settings.tools.allow, deny=settings.tools.deny)
    policy.check(targets)
    return TaskDefaults(
        profiles={"default": Profile()},
        policy=policy,
        targets=targets,
        limits=RunLimits(
            max_iterations=agent.max_iterations,
            timeout_seconds=agent.run_timeout_seconds,
            max_consecutive_tool_failures=agent.max_consecutive_tool_failures,
        ),
        gates=agent.gates,
        provider=settings.llm.provider,
        model=settings.llm.model,
        prices=book.prices,
        profile=agent.profile,
        workspace=str(agent.workspace or ""),
        plan_review=agent.plan_review,
        question_ttl_minutes=agent.question_ttl_minutes,
    )
