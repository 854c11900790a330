"""The skills of several folders, and which of them the model is offered."""

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
from internal.skills.skill_file import FILE_NAME, SkillFile, parse_skill_file
from internal.skills.skill_folder import FolderVersion, SkillEntry, folder_version, read_contents

MAX_SKILLS = 200
MAX_SCAN_DEPTH = 4
_MAX_SCANNED_FOLDERS = 5_000
_MAX_KEPT = 256

WORKSPACE_FOLDERS = (".agents/skills", ".claude/skills")
"""Where a working folder has skills of its own."""

PinnedHash = Callable[[Path], str | None]
"""Returns the hash that a person has accepted for the folder of a skill, None if there is none."""


def shipped_folder() -> Path:
    """Return the folder of the skills that are shipped: of the wheel, or of the sources."""
    installed = Path(__file__).with_name("shipped")
    return installed if installed.is_dir() else Path(__file__).parents[2] / "configs" / "skills"


class SkillPlace(msgspec.Struct, frozen=True):
    """A folder with skills. Those of a `shipped` one need no review."""

    folder: Path
    origin: SkillOrigin


class Skill(msgspec.Struct, frozen=True):
    """A skill as it was found. `problem` is why it is not usable, a sentence."""

    name: str
    folder: Path
    origin: SkillOrigin
    state: SkillState
    sha256: str = ""
    file: SkillFile | None = None
    entries: tuple[SkillEntry, ...] = ()
    problem: str = ""

    @property
    def description(self) -> str:
        """Its description, "" if it cannot be read."""
        return self.file.description if self.file else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is unusual about its `SKILL.md`, as sentences."""
        return self.file.warnings if self.file else ()


class SkillLibrary:
    """The skills of several places; of two with one name, the one of the first place is used.

    Every call looks at the folders, so that a change is found at once, and reads those that have
    changed; shipped ones, which change with the program, are read once. May be used in several
    threads.

    Args:
        places: where skills are, the first has precedence.
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
        """Return these skills with those of a working folder, which come last.

        A folder of skills that is reached by a link is passed over: it may lead anywhere.
        """
        names = [each for each in WORKSPACE_FOLDERS if os.path.isdir(f"{workspace}/{each}")]  # noqa: PTH112 - of every run
        if not names:
            return self
        root = os.path.realpath(workspace)
        own = (
            SkillPlace(Path(each), "workspace")
            for each in (f"{root}/{name}" for name in names)
            if os.path.realpath(each) == each
        )
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
            for folder in (_shipped_folders if is_shipped else find_skill_folders)(place.folder):
                real = str(folder) if is_shipped else os.path.realpath(folder)
                if real in seen:
                    continue
                seen.add(real)
                if count >= MAX_SKILLS:
                    yield _too_many(folder, place)
                    return
                skill = self._read(folder, place)
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
            raise NotFound(f"There is no skill {name[:100]!r}.")
        return unusable

    def _read(self, folder: Path, place: SkillPlace) -> Skill:
        try:
            skill = self._read_changed(folder, place.origin)
        except SkillUnreadable as error:
            return Skill(folder.name, folder, place.origin, "not usable", problem=str(error))
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

    def _read_changed(self, folder: Path, origin: SkillOrigin) -> Skill:
        """Return the skill of a folder, read again only if the folder has changed."""
        kept = self._kept.get(folder)
        if kept is not None and origin == "shipped":
            return replace(kept.skill, origin=origin)
        now_ns = time.time_ns()
        version = folder_version(folder, now_ns)
        if kept is not None and version is not None and kept.version == version:
            return replace(kept.skill, origin=origin)
        skill = read_skill(folder, origin)
        if version is not None and version == folder_version(folder, now_ns):
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[folder] = _KeptSkill(version, skill)
        return skill


class _KeptSkill(NamedTuple):
    version: FolderVersion
    skill: Skill


def read_skill(folder: Path, origin: SkillOrigin = "own") -> Skill:
    """Return the skill of a folder as one that is not reviewed.

    Raises:
        SkillUnreadable: it cannot be read, or is larger than a skill may be.
    """
    contents = read_contents(folder, FILE_NAME)
    path = str(folder / FILE_NAME)
    if contents.kept is None:
        raise SkillUnreadable(f"{path} is missing.")
    file = parse_skill_file(contents.kept, path, folder.name)
    return Skill(file.name, folder, origin, "not reviewed", contents.sha256, file, contents.entries)


def find_skill_folders(place: Path, depth: int = MAX_SCAN_DEPTH) -> Iterator[Path]:
    """Yield the folders below a place, at most so deep, that have a `SKILL.md`.

    Links and folders whose names start with a dot are passed over.
    """
    waiting = [(place, depth)]
    scanned = 0
    while waiting and scanned < _MAX_SCANNED_FOLDERS:
        folder, remaining = waiting.pop()
        scanned += 1
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        if any(entry.name == FILE_NAME for entry in entries):
            yield folder
        elif remaining:
            waiting += [
                (folder / entry.name, remaining - 1)
                for entry in reversed(entries)
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            ]


@cache
def _shipped_folders(place: Path) -> Sequence[Path]:
    return [Path(os.path.realpath(folder)) for folder in find_skill_folders(place)]


def _too_many(folder: Path, place: SkillPlace) -> Skill:
    problem = f"{folder}: only the first {MAX_SKILLS} skills are read."
    return Skill(folder.name, folder, place.origin, "not usable", problem=problem)
