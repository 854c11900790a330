"""Deferred tools of MCP servers, and their section of the system prompt."""

from datetime import UTC, datetime

from internal.agent.app.prompt.system_prompt import system_prompt
from internal.agent.capabilities.mcp_tools import McpToolsCapability
from internal.agent.capabilities.run_draft import DraftChange, PromptScope, RunDraft
from internal.agent.domain.tasks import Profile, RunSpec
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import ModelLimits
from tests.support.turn_driver import TOOLS

BIRD_TOOL = ToolSpec("mcp__birds__ring", "Ring a bird.", {"type": "object"}, "net")
DRAFT = RunDraft(ModelLimits(200_000, 32_000), 128, (BIRD_TOOL, *TOOLS))


def changed(change: DraftChange, draft: RunDraft) -> RunDraft:
    result = change(draft)
    assert isinstance(result, RunDraft)
    return result


def prompt_of(draft: RunDraft) -> str:
    profile, now = Profile(role="a gardener"), datetime.now(UTC)
    return system_prompt(profile, "off", "/srv", now, sections=draft.sections)


def test_the_system_prompt_lists_the_servers_of_deferred_tools() -> None:
    scope = PromptScope(RunSpec(), "/srv")
    draft = changed(McpToolsCapability(0.0).contribute(scope), DRAFT)
    assert draft.deferred == (BIRD_TOOL,)
    assert [each.name for each in draft.tools][-2:] == ["find_tools", "use_tool"]
    assert "`use_tool` calls them by their full name" in prompt_of(draft)
    assert "\n- birds (1 tool): ring\n" in prompt_of(draft)


def test_tools_that_fit_are_not_deferred() -> None:
    assert (
        changed(McpToolsCapability(0.5).contribute(PromptScope(RunSpec(), "/srv")), DRAFT) == DRAFT
    )
    assert "use_tool" not in prompt_of(DRAFT)
