"""The skills of several folders, and which of them the model is offered."""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from internal.agent.domain.errors import NotFound
from internal.agent.ports.skills import SkillOrigin, SkillState
from internal.skills.errors import SkillUnreadable
from internal.skills.skill_file import FILE_NAME, SkillFile, find_file_name, parse_skill_file
from internal.skills.skill_folder import FolderVersion, SkillEntry, folder_version, read_contents
from internal.skills.skill_places import FoundSkill, SkillPlace, find_skills

MAX_SKILLS = 1_000
_MAX_KEPT = 1_200

WORKSPACE_FOLDERS = (".agents/skills", ".claude/skills")
"""Folders with skills in a working folder."""

PinnedHash = Callable[[Path], str | None]
"""Returns the hash that a person has accepted for the folder of a skill, or None."""


def shipped_folder() -> Path:
    """Return the folder of the skills that are shipped: of the wheel, or of the sources."""
    installed = Path(__file__).with_name("shipped")
    return installed if installed.is_dir() else Path(__file__).parents[2] / "configs" / "skills"


class Skill(msgspec.Struct, frozen=True):
    """A skill as found in its folder. `problem` is the reason why it is not usable, a sentence.

    Its folder must stay within `boundary`, None for no boundary.
    """

    name: str
    folder: Path
    origin: SkillOrigin
    state: SkillState
    sha256: str = ""
    file: SkillFile | None = None
    entries: tuple[SkillEntry, ...] = ()
    problem: str = ""
    boundary: Path | None = None

    @property
    def description(self) -> str:
        """Its description, "" if it cannot be read."""
        return self.file.description if self.file else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Irregularities of its `SKILL.md`, as sentences."""
        return self.file.warnings if self.file else ()


class SkillLibrary:
    """The skills of several places. If two have the same name, the first place wins.

    Every call looks at the folders, so that a change is found at once, and reads the changed ones;
    shipped skills, which change with the program, are read once. May be used in several threads.

    Args:
        places: the places of skills, the first has precedence.
        reserved: names of built-in tools, which no skill may have.
        pinned: returns the hash that a person has accepted.
    """

    def __init__(
        self,
        places: Sequence[SkillPlace],
        reserved: Collection[str] = (),
        pinned: PinnedHash = lambda _folder: None,
        *,
        kept: "dict[Path, _KeptSkill] | None" = None,
    ) -> None:
        self._places = tuple(places)
        self._reserved = frozenset(name.casefold().replace("-", "_") for name in reserved)
        self._pinned = pinned
        self._kept = {} if kept is None else kept

    def within(self, workspace: str | Path) -> "SkillLibrary":
        """Return these skills and the skills of a working folder, which come last.

        Links within the working folder are followed; one that leads out of it is reported.
        """
        names = [each for each in WORKSPACE_FOLDERS if os.path.isdir(f"{workspace}/{each}")]  # noqa: PTH112 - of every run
        if not names:
            return self
        root = os.path.realpath(workspace)
        own = (SkillPlace(Path(root, name), "workspace", Path(root)) for name in names)
        return SkillLibrary((*self._places, *own), self._reserved, self._pinned, kept=self._kept)

    def skills(self) -> list[Skill]:
        """Return all skills, in the order of the places and their folders.

        A folder that is in two places belongs to the first.
        """
        return list(self._read_all())

    def _read_all(self) -> Iterator[Skill]:
        count = 0
        first: dict[str, Path] = {}
        seen: set[str] = set()
        for place in self._places:
            is_shipped = place.origin == "shipped"
            for found in (_shipped_skills if is_shipped else find_skills)(place):
                folder = found.folder
                real = str(folder) if is_shipped else os.path.realpath(folder)
                if real in seen and not found.problem:
                    continue
                seen.add(real)
                if count >= MAX_SKILLS:
                    yield _too_many(folder, place)
                    return
                skill = self._read(found, place)
                if skill.file is not None:
                    other = first.setdefault(skill.name.casefold(), folder)
                    if other != folder:
                        problem = f"{folder}: a skill of the same name is used, {other}."
                        skill = replace(skill, state="not usable", problem=problem)
                count += 1
                yield skill

    def offered(self) -> list[Skill]:
        """Return the skills that the model is offered."""
        return [skill for skill in self.skills() if skill.state == "offered"]

    def find(self, name: str) -> Skill:
        """Return the skill of a name, one that is usable before others.

        Raises:
            NotFound: there is none.
        """
        unusable: Skill | None = None
        for skill in self._read_all():  # those after it are not read
            if skill.name.casefold() == name.casefold():
                if skill.state != "not usable":
                    return skill
                unusable = unusable or skill
        if unusable is None:
            raise NotFound(
                f"There is no skill {name[:100]!r}.", reason_code="no_skill", skill=name[:100]
            )
        return unusable

    def _read(self, found: FoundSkill, place: SkillPlace) -> Skill:
        folder, problem = found.folder, found.problem
        try:
            skill = None if problem else self._read_changed(found, place)
        except SkillUnreadable as error:
            skill, problem = None, str(error)
        if skill is None:
            return Skill(found.name, folder, place.origin, "not usable", problem=problem)
        if skill.name.casefold().replace("-", "_") in self._reserved:
            problem = f"{folder}: {skill.name} is the name of a built-in tool."
            return replace(skill, state="not usable", problem=problem)
        if place.origin == "shipped":
            return replace(skill, state="offered")
        pin = self._pinned(folder)
        if pin is None:
            return skill
        same = pin == skill.sha256
        return replace(skill, state="offered" if same else "changed since its review")

    def _read_changed(self, found: FoundSkill, place: SkillPlace) -> Skill:
        """Return the skill of a folder, read again only if the folder has changed."""
        folder, origin = found.folder, place.origin
        kept = self._kept.get(folder)
        if kept is not None and origin == "shipped":
            return replace(kept.skill, origin=origin)
        now_ns = time.time_ns()
        version = (found.name, folder_version(folder, now_ns))
        if kept is not None and version[1] is not None and kept.version == version:
            return replace(kept.skill, origin=origin, boundary=place.boundary)
        skill = read_skill(folder, origin, name=found.name, boundary=place.boundary)
        if version[1] is not None and version[1] == folder_version(folder, now_ns):
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[folder] = _KeptSkill(version, skill)
        return skill


class _KeptSkill(NamedTuple):
    version: tuple[str, FolderVersion | None]
    skill: Skill


def read_skill(
    folder: Path, origin: SkillOrigin = "own", *, name: str = "", boundary: Path | None = None
) -> Skill:
    """Return the skill of a folder, marked as not reviewed.

    `name` is the name of the folder or of the link to it, for a skill whose own name cannot be
    used. The folder must be within the `boundary`.

    Raises:
        SkillUnreadable: it cannot be read, or is larger than a skill may be.
    """
    file_name = name_of_file(folder)
    contents = read_contents(folder, file_name, boundary=boundary)
    path = str(folder / file_name)
    if contents.kept is None:
        raise SkillUnreadable(f"{path} is missing.")
    file = parse_skill_file(contents.kept, path, name or folder.name)
    return Skill(
        file.name,
        folder,
        origin,
        "not reviewed",
        contents.sha256,
        file,
        contents.entries,
        boundary=boundary,
    )


def name_of_file(folder: Path) -> str:
    """Return how the `SKILL.md` of a folder is called."""
    with contextlib.suppress(OSError):
        return find_file_name(each.name for each in folder.iterdir()) or FILE_NAME
    return FILE_NAME


@cache
def _shipped_skills(place: SkillPlace) -> Sequence[FoundSkill]:
    return [
        replace(each, folder=Path(os.path.realpath(each.folder))) for each in find_skills(place)
    ]


def _too_many(folder: Path, place: SkillPlace) -> Skill:
    problem = f"{folder}: only the first {MAX_SKILLS} skills are read."
    return Skill(folder.name, folder, place.origin, "not usable", problem=problem)
