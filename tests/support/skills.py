"""A skill in a home folder, and the reviews of the skills there."""

from pathlib import Path

from internal.skills.library import SkillLibrary
from internal.skills.pinned_reviews import PinnedSkillReviews
from internal.skills.pins import SkillPins
from internal.skills.skill_places import SkillPlace
from larkspur.task_defaults import TOOL_SPECS


def write_skill(
    home: Path, name: str = "bird-song", body: str = "Listen first.\n", tools: str = "shell"
) -> Path:
    """Write a skill with one script, which is not reviewed, and return its folder."""
    folder = home / "skills" / name
    (folder / "scripts").mkdir(parents=True)
    header = f"name: {name}\ndescription: Writes down the songs of birds.\nallowed-tools: {tools}\n"
    (folder / "SKILL.md").write_text(f"---\n{header}---\n{body}", encoding="utf-8")
    (folder / "scripts" / "sing.sh").write_text("echo tirra-lirra\n")
    return folder


def skill_reviews(home: Path) -> PinnedSkillReviews:
    """Return the reviews of the skills of a home folder; skills in `shipped` need none."""
    pins = SkillPins(home)
    places = [SkillPlace(home / "skills", "own"), SkillPlace(home / "shipped", "shipped")]
    return PinnedSkillReviews(SkillLibrary(places, pinned=pins.get), pins, TOOL_SPECS)
