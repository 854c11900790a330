"""Reviews of the skills of a library by people of any channel."""

from collections.abc import Sequence

from msgspec.structs import replace

from internal.agent.domain.errors import Conflict, FilesUnavailable
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import escape_hidden, truncate_line
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.skills import (
    ListedSkillFile,
    SkillReviewReport,
    SkillState,
    SkillSummary,
)
from internal.skills.errors import SkillUnreadable
from internal.skills.library import Skill, SkillLibrary
from internal.skills.pins import PinsUnreadable, SkillPins
from internal.skills.requested_tools import requested_tools
from internal.skills.review import review_skill
from internal.skills.script_needs import CommandMeans

MAX_REPORTED_CHARS = 100_000
"""Maximum part of a `SKILL.md` in a report."""
MAX_LISTED_DESCRIPTION_CHARS = 2_000


class PinnedSkillReviews:
    """Implements `SkillReviews` for a library and the hashes that people have accepted.

    `specs` are all tools, for the rules that skills request. `means` are the means of commands,
    None if unknown.
    """

    def __init__(
        self,
        library: SkillLibrary,
        pins: SkillPins,
        specs: Sequence[ToolSpec],
        means: CommandMeans | None = None,
    ) -> None:
        self._library, self._pins, self._specs, self._means = library, pins, specs, means

    def within(self, workspace: str) -> "PinnedSkillReviews":
        """Return the reviews of these and a working folder's skills; the path is absolute."""
        library = self._library.within(workspace)
        return PinnedSkillReviews(library, self._pins, self._specs, self._means)

    def list_all(self) -> list[SkillSummary]:
        """Return all skills; see the port."""
        return [_summary(skill) for skill in self._library.skills()]

    def review(self, name: str) -> SkillReviewReport:
        """Return the review of a skill; see the port."""
        skill = self._library.find(name)
        try:
            found = review_skill(skill)
        except SkillUnreadable as error:
            raise Conflict(
                _printable(str(error)),
                reason_code="skill_unreadable",
                detail=_printable(str(error)),
            ) from error
        if found.skill.sha256 != skill.sha256:
            raise Conflict(
                f"The files of the skill {skill.name} change while they are read.",
                reason_code="skill_changes",
                skill=skill.name,
            )
        return SkillReviewReport(
            skill=_summary(skill),
            scripts=list(found.scripts),
            binary=list(found.binary),
            invisible=list(found.invisible),
            requested=requested_tools(skill, self._specs),
            text=escape_hidden(found.text[:MAX_REPORTED_CHARS]),
            is_complete=len(found.text) <= MAX_REPORTED_CHARS,
            lacks=found.needs.lacks(self._means) if self._means else [],
        )

    def check(self, name: str, sha256: str, rules: Sequence[str]) -> SkillSummary:
        """Check that the files with this hash can be decided about; see the port."""
        skill = self._checked(name, sha256)
        offered = {each.rule for each in requested_tools(skill, self._specs) if each.rule}
        for rule in rules:
            if rule not in offered:
                raise Conflict(
                    f"The skill {skill.name} does not ask for the rule {rule[:200]!r}.",
                    reason_code="rule_not_requested",
                    skill=skill.name,
                    rule=rule[:200],
                )
        return _summary(skill)

    def decide(self, name: str, sha256: str, *, accept: bool) -> SkillSummary:
        """Accept the files with this hash, or withdraw an acceptance; see the port."""
        skill = self._checked(name, sha256)
        try:
            self._pins.put(skill.folder, sha256 if accept else None)
        except PinsUnreadable as error:
            raise Conflict(
                _printable(str(error)),
                reason_code="reviews_unreadable",
                detail=_printable(str(error)),
            ) from error
        except OSError as error:
            reason = describe_system_error(error)
            raise FilesUnavailable(f"The decision cannot be stored: {reason}") from error
        state: SkillState = "offered" if accept else "not reviewed"
        return _summary(replace(skill, state=state))

    def _checked(self, name: str, sha256: str) -> Skill:
        skill = self._library.find(name)
        if skill.origin == "shipped":
            raise Conflict(
                f"The skill {skill.name} is shipped with Larkspur and needs no review.",
                reason_code="skill_shipped",
                skill=skill.name,
            )
        if skill.state == "not usable":
            raise Conflict(
                _printable(skill.problem),
                reason_code="skill_unusable",
                detail=_printable(skill.problem),
            )
        if skill.sha256 != sha256:
            raise Conflict(
                f"The files of the skill {skill.name} have changed since they were shown."
                " Review them again.",
                reason_code="skill_changed",
                skill=skill.name,
            )
        return skill


def _summary(skill: Skill) -> SkillSummary:
    return SkillSummary(
        name=_printable(skill.name),
        description=truncate_line(skill.description, MAX_LISTED_DESCRIPTION_CHARS),
        origin=skill.origin,
        state=skill.state,
        sha256=skill.sha256,
        problem=_printable(skill.problem),
        files=[ListedSkillFile(each.path, each.size, each.is_script) for each in skill.entries],
        warnings=[_printable(each) for each in skill.warnings],
        allowed_tools=list(skill.file.allowed_tools) if skill.file else [],
    )


def _printable(text: str) -> str:
    """Return a text with the name of a folder, which may have bytes that are not UTF-8."""
    return text.encode("utf-8", "replace").decode()
