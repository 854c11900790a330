"""Skills in a run: a section of the prompt, and no skill tools where there are no skills."""

from typing import NamedTuple

import pytest

from internal.agent.capabilities.run_draft import PromptScope, RunDraft
from internal.agent.capabilities.skills import SkillsCapability
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.tasks import Profile, RunSpec
from internal.agent.ports.llm import ModelLimits
from internal.agent.ports.skills import Granted, SkillCatalogue
from internal.agent.ports.tools import WithheldTool
from internal.skills.tool_source import SKILL_SPECS
from tests.support.turn_driver import TOOLS

DRAFT = RunDraft(
    ModelLimits(200_000, 32_000), 128, (*SKILL_SPECS, *TOOLS), (WithheldTool("fetch", "profile"),)
)
SONG = SkillCatalogue("- bird-song: Writes down the songs of birds.", ("Not reviewed: owls.",))


class ListedSkills(NamedTuple):
    catalogue: SkillCatalogue

    def describe(self, _workspace: str, _granted: Granted) -> SkillCatalogue:
        return self.catalogue


def draft_with(catalogue: SkillCatalogue, spec: RunSpec = RunSpec()) -> RunDraft:  # noqa: B008 - frozen
    change = SkillsCapability(ListedSkills(catalogue)).contribute(PromptScope(spec, "/srv"))
    draft = change(DRAFT)
    assert isinstance(draft, RunDraft)
    return draft


def test_the_prompt_lists_the_skills_and_people_read_their_problems() -> None:
    draft = draft_with(SONG)
    assert [(each.kind, each.text) for each in draft.sections] == [("skills", SONG.text)]
    assert (draft.tools, draft.problems) == (DRAFT.tools, SONG.problems)


def test_without_skills_their_tools_do_not_exist() -> None:
    draft = draft_with(SkillCatalogue(""))
    assert (draft.tools, draft.sections) == (TOOLS, ())
    assert draft.withheld == DRAFT.withheld


def test_a_profile_without_the_tool_reads_no_skills() -> None:
    assert draft_with(SONG, RunSpec(profile=Profile(tools=("shell",)))).tools == TOOLS


def test_a_task_that_names_a_skill_with_a_problem_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="Not reviewed: owls"):
        draft_with(SONG, RunSpec(skills=("owls",)))
