"""Reviews of the skills of a library by people of any channel."""

import threading
from dataclasses import replace

from internal.agent.domain.errors import Conflict, FilesUnavailable
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import escape_hidden, truncate_line
from internal.agent.ports.skills import (
    ListedSkillFile,
    SkillReviewReport,
    SkillState,
    SkillSummary,
)
from internal.skills.library import Skill, SkillLibrary
from internal.skills.pins import PinsUnreadable, SkillPins
from internal.skills.review import review_skill
from internal.skills.skill_file import SkillUnreadable

MAX_REPORTED_CHARS = 100_000
"""How much of a `SKILL.md` a report has."""
MAX_LISTED_DESCRIPTION_CHARS = 2_000


class PinnedSkillReviews:
    """Implements `SkillReviews` for a library and the hashes that people have accepted."""

    def __init__(self, library: SkillLibrary, pins: SkillPins) -> None:
        self._library, self._pins = library, pins
        self._lock = threading.Lock()  # the file of the pins is read, changed and replaced

    def within(self, workspace: str) -> "PinnedSkillReviews":
        """Return the reviews of these skills and those of a working folder, an absolute path."""
        found = PinnedSkillReviews(self._library.within(workspace), self._pins)
        found._lock = self._lock
        return found

    def check(self, name: str, sha256: str) -> None:
        """Check that the files of a skill, which a person reviews, have this hash.

        Raises:
            NotFound: there is no such skill.
            Conflict: they have another one, it is not usable, or it needs no review.
        """
        _check(self._library.find(name), sha256)

    def list_all(self) -> list[SkillSummary]:
        """Return all skills; see the port."""
        return [_summary(skill) for skill in self._library.skills()]

    def review(self, name: str) -> SkillReviewReport:
        """Return what a person should know of a skill; see the port."""
        skill = self._library.find(name)
        try:
            found = review_skill(skill.folder)
        except SkillUnreadable as error:
            raise Conflict(_printable(str(error))) from error
        if found.skill.sha256 != skill.sha256:
            raise Conflict(f"The files of the skill {skill.name} change while they are read.")
        return SkillReviewReport(
            skill=_summary(skill),
            scripts=list(found.scripts),
            binary=list(found.binary),
            invisible=list(found.invisible),
            text=escape_hidden(found.text[:MAX_REPORTED_CHARS]),
            is_complete=len(found.text) <= MAX_REPORTED_CHARS,
        )

    def decide(self, name: str, sha256: str, *, accept: bool) -> SkillSummary:
        """Accept the files with this hash, or withdraw what was accepted; see the port."""
        with self._lock:
            skill = self._library.find(name)
            _check(skill, sha256)
            try:
                self._pins.put(skill.folder, sha256 if accept else None)
            except PinsUnreadable as error:
                raise Conflict(_printable(str(error))) from error
            except OSError as error:
                reason = describe_system_error(error)
                raise FilesUnavailable(f"The decision cannot be stored: {reason}") from error
        state: SkillState = "offered" if accept else "not reviewed"
        return _summary(replace(skill, state=state))


def _check(skill: Skill, sha256: str) -> None:
    """Check that a decision about files with this hash can be stored.

    Raises:
        Conflict: it cannot.
    """
    if skill.origin == "shipped":
        raise Conflict(f"The skill {skill.name} is shipped with Larkspur and needs no review.")
    if skill.state == "not usable":
        raise Conflict(_printable(skill.problem))
    if skill.sha256 != sha256:
        raise Conflict(
            f"The files of the skill {skill.name} have changed since they were shown."
            " Review them again."
        )


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
