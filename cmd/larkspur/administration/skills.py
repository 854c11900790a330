"""The owner's, the shipped and the configured skills, for `larkspur skills`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from internal.agent.app.administration.skills import SkillAdministration
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.store.stores import Stores
from internal.channels.cli.application import SkillItem, SkillReport
from internal.config.loader import Loaded
from internal.observability.clock import SystemClock
from internal.skills.installation import add_skills, remove_skill, skills_in
from internal.skills.library import Skill, read_skill
from internal.skills.pins import SkillPins
from internal.skills.skill_places import FoundSkill
from internal.storage.database_url import open_database
from larkspur.extensions import SKILLS_FOLDER, open_skill_reviews, open_skills


class SkillAdmin:
    """Implements `internal.channels.cli.application.SkillAdmin`.

    Skills are added to the home folder. Those of the working folder are found as well.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._database = loaded.settings.database.address
        self._folder = loaded.home / SKILLS_FOLDER
        self._pins = SkillPins(loaded.home)
        self._library = open_skills(loaded).within(Path.cwd())
        self._reviews = open_skill_reviews(loaded, self._library)

    def skills(self) -> list[SkillItem]:
        """Return all skills, unusable ones included."""
        return [_item(skill) for skill in self._library.skills()]

    def review(self, name: str) -> SkillReport:
        """Return the report on a skill for its review by a person."""
        report = self._reviews.review(name)
        skill = self._library.find(name)
        return SkillReport(
            item=_item(skill)._replace(sha256=report.skill.sha256),
            files=[(each.path, each.size, each.link) for each in skill.entries],
            scripts=report.scripts,
            binary=report.binary,
            invisible=[
                f"{each.path}, line {each.line}, column {each.column}: {each.code}"
                for each in report.invisible
            ],
            requested=[(each.entry, each.rule, each.refusal) for each in report.requested],
            lacks=report.lacks,
        )

    def accept(self, item: SkillItem, rules: Sequence[str]) -> None:
        """Accept a skill as it was reviewed, and grant rules that it asks for."""
        asyncio.run(self._accept(item, rules))

    async def _accept(self, item: SkillItem, rules: Sequence[str]) -> None:
        async with open_database(self._database) as database:
            skills = SkillAdministration(database, Stores(), SystemClock(), self._reviews)
            await skills.decide(
                item.name, item.sha256, LOCAL_OWNER, "cli", accept=True, rules=rules
            )

    def add(self, source: str) -> tuple[list[SkillItem], list[str]]:
        """Add the skills in a folder or ZIP file, and return them with why others were not."""
        skills, problems = add_skills(Path(source), self._folder)
        for skill in skills:
            self._pins.put(skill.folder, None)  # what was reviewed here before is gone
        return [_item(skill) for skill in skills], problems

    def remove(self, name: str) -> SkillItem:
        """Remove a skill that was added, and its pin."""
        skill = self._library.find(name)
        remove_skill(skill)
        self._pins.put(skill.folder, None)
        return _item(skill)

    def check(self, folder: str) -> list[str]:
        """Return warnings about the skills in a folder, and the problems of unusable ones."""
        place = Path(folder).absolute()
        problems: list[str] = []
        for each in skills_in(place) or [FoundSkill(place, place.name)]:
            problems += [each.problem] if each.problem else read_skill(each.folder).warnings
        return problems


def _item(skill: Skill) -> SkillItem:
    return SkillItem(
        name=skill.name,
        state=skill.state,
        description=skill.description,
        folder=str(skill.folder),
        origin=skill.origin,
        sha256=skill.sha256,
        problems=(skill.problem,) if skill.problem else skill.warnings,
    )
