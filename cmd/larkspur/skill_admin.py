"""The skills of the owner, the shipped ones and those of the settings, for `larkspur skills`."""

from pathlib import Path

from internal.channels.cli.application import SkillItem, SkillReport
from internal.config.loader import Loaded
from internal.skills.installation import add_skill, remove_skill
from internal.skills.library import Skill, read_skill
from internal.skills.pins import SkillPins
from internal.skills.review import review_skill
from larkspur.services import SKILLS_FOLDER, open_skills


class SkillAdmin:
    """Implements `internal.channels.cli.application.SkillAdmin`.

    Skills are added to the home folder. Those of the working folder are found as well.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._folder = loaded.home / SKILLS_FOLDER
        self._pins = SkillPins(loaded.home)
        self._library = open_skills(loaded).within(Path.cwd())

    def skills(self) -> list[SkillItem]:
        """Return all skills, also those that are not usable."""
        return [_item(skill) for skill in self._library.skills()]

    def review(self, name: str) -> SkillReport:
        """Return what a person should know of a skill."""
        found = self._library.find(name)
        review = review_skill(found.folder)
        skill = review.skill
        return SkillReport(
            item=_item(found)._replace(sha256=skill.sha256),
            files=[(each.path, each.size, each.link) for each in skill.entries],
            scripts=review.scripts,
            binary=review.binary,
            invisible=[
                f"{each.path}, line {each.line}, column {each.column}: {each.code}"
                for each in review.invisible
            ],
            allowed_tools=skill.file.allowed_tools if skill.file else (),
        )

    def accept(self, item: SkillItem) -> None:
        """Pin the hash of a skill as it was reviewed."""
        self._pins.put(Path(item.folder), item.sha256)

    def add(self, source: str) -> SkillItem:
        """Add the skill in a folder or ZIP file."""
        skill = add_skill(Path(source), self._folder)
        self._pins.put(skill.folder, None)  # what was reviewed here before is gone
        return _item(skill)

    def remove(self, name: str) -> SkillItem:
        """Remove a skill that was added, and its pin."""
        skill = self._library.find(name)
        remove_skill(skill)
        self._pins.put(skill.folder, None)
        return _item(skill)

    def check(self, folder: str) -> list[str]:
        """Return what is unusual about the skill in a folder."""
        return list(read_skill(Path(folder).absolute()).warnings)


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
