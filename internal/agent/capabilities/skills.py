"""Skills: know-how that the model loads when it needs it."""

from functools import partial

from msgspec.structs import replace

from internal.agent.capabilities.capability import Capability
from internal.agent.capabilities.run_draft import (
    DraftChange,
    PromptScope,
    PromptSection,
    RunDraft,
)
from internal.agent.domain.errors import InvalidRequest
from internal.agent.ports.skills import LOAD_SKILL, NO_SKILLS, SKILL_TOOLS, SkillCatalogue, Skills

_INTRO = """\
Skills hold know-how for kinds of work. Call `load_skill` before work that one of them describes, \
and follow it within the rules. They grant no permissions."""


class SkillsCapability(Capability):
    """Lists the skills that a run may load."""

    name = "skills"

    def __init__(self, skills: Skills) -> None:
        self._skills = skills

    def contribute(self, scope: PromptScope, /) -> DraftChange:
        """Read the descriptions of the skills.

        Raises:
            InvalidRequest: a skill that the task names does not exist or is withheld.
        """
        spec = scope.spec
        if not spec.profile.grants(LOAD_SKILL):
            return partial(_add, NO_SKILLS)
        catalogue = self._skills.describe(scope.workspace, spec.skills)
        if catalogue.problems and spec.skills not in (None, spec.profile.skills):
            problems = " ".join(catalogue.problems)
            # the task names them
            raise InvalidRequest(problems, reason_code="skills_unusable", problems=problems)
        return partial(_add, catalogue)


def _add(catalogue: SkillCatalogue, draft: RunDraft) -> RunDraft:
    problems = (*draft.problems, *catalogue.problems)
    if not catalogue.text:
        return replace(draft.without_tools(SKILL_TOOLS), problems=problems)
    section = PromptSection("skills", _INTRO, catalogue.text)
    return replace(draft, sections=(*draft.sections, section), problems=problems)
