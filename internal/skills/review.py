"""Facts for a person who decides whether a skill is offered to the model."""

import msgspec

from internal.agent.domain.text import is_invisible
from internal.agent.ports.skills import InvisibleCharacter
from internal.skills.errors import SkillUnreadable
from internal.skills.library import Skill, name_of_file, read_skill
from internal.skills.script_needs import ScriptNeeds
from internal.skills.skill_folder import read_contents

MAX_PLACES = 100
_BYTE_ORDER_MARK = "\ufeff"


class SkillReview(msgspec.Struct, frozen=True):
    """A skill as it was read for a review; `skill.sha256` is the hash of exactly these files.

    `invisible` has at most `MAX_PLACES` places. `binary` are the files that are not text. `text` is
    the text of its `SKILL.md`. `needs` are the requirements of its scripts.
    """

    skill: Skill
    scripts: tuple[str, ...]
    binary: tuple[str, ...]
    invisible: tuple[InvisibleCharacter, ...]
    text: str
    needs: ScriptNeeds


def review_skill(found: Skill) -> SkillReview:
    """Read a skill for a review.

    Raises:
        SkillUnreadable: it cannot be read, or changes meanwhile.
    """
    binary: list[str] = []
    invisible: list[InvisibleCharacter] = []
    needs = ScriptNeeds()

    def inspect(path: str, content: bytes) -> None:
        needs.add(path, content)
        try:
            text = content.decode()
        except UnicodeDecodeError:
            binary.append(path)
            return
        if "\0" in text:
            binary.append(path)
        elif len(invisible) < MAX_PLACES:
            invisible.extend(_find_invisible(path, text))

    folder, boundary = found.folder, found.boundary
    contents = read_contents(folder, name_of_file(folder), inspect, boundary=boundary)
    skill = read_skill(folder, found.origin, boundary=boundary)
    if skill.sha256 != contents.sha256:
        raise SkillUnreadable(f"{folder} changes while it is read.")
    scripts = tuple(each.path for each in contents.entries if each.is_script)
    text = (contents.kept or b"").decode("utf-8-sig", "replace")
    return SkillReview(skill, scripts, tuple(binary), tuple(invisible[:MAX_PLACES]), text, needs)


def _find_invisible(path: str, text: str) -> list[InvisibleCharacter]:
    text = text.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n")
    if text.isascii() and text.isprintable():
        return []
    found: list[InvisibleCharacter] = []
    for number, line in enumerate(text.split("\n"), 1):
        for column, char in enumerate(line, 1):
            if char not in " \t" and is_invisible(char):
                found.append(InvisibleCharacter(path, number, column, f"U+{ord(char):04X}"))
                if len(found) == MAX_PLACES:
                    return found
    return found
