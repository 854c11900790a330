"""Folders with skills, the search for skills in them, also behind links, and invalid entries."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from internal.agent.domain.system_errors import describe_system_error
from internal.agent.ports.skills import SkillOrigin
from internal.skills.skill_file import find_file_name
from internal.skills.skill_folder import is_within

MAX_SCAN_DEPTH = 4
MAX_LINKED_DEPTH = 2
"""Depth to which a folder behind a link is searched: a skill, or a collection of some."""
PASSED_OVER = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", "__MACOSX"})
"""Folders of version control, of packages and of systems."""
_MAX_SCANNED_FOLDERS = 5_000


class SkillPlace(msgspec.Struct, frozen=True):
    """A folder with skills. Skills of a `shipped` place need no review.

    `boundary` is the folder that no link may lead out of; None follows the links that the owner
    has made. `is_expected` reports a folder that is missing.
    """

    folder: Path
    origin: SkillOrigin
    boundary: Path | None = None
    is_expected: bool = False


class FoundSkill(msgspec.Struct, frozen=True):
    """The folder of a skill, without links if one leads to it, and its name in the place.

    `problem` is the reason why it is not a skill, a sentence; "" for a skill.
    """

    folder: Path
    name: str
    problem: str = ""
    is_linked: bool = False


class _Waiting(msgspec.Struct, frozen=True):
    folder: Path
    name: str
    depth: int
    link: str = ""


def find_skills(
    place: SkillPlace, *, depth: int = MAX_SCAN_DEPTH, in_dot_folders: bool = False
) -> Iterator[FoundSkill]:
    """Yield the skills of a place, at most `depth` folders deep, and links without a target.

    Without `in_dot_folders`, folders whose names start with a dot are skipped. Folders of programs,
    which people do not write, are always skipped.
    """
    return _Search(place, depth, in_dot_folders=in_dot_folders).run()


def linked_folders(place: SkillPlace) -> list[Path]:
    """Return the folders of skills to which links lead: they are outside of the place, perhaps."""
    return [each.folder for each in find_skills(place) if each.is_linked and not each.problem]


class _Search:
    """One search of a place."""

    def __init__(self, place: SkillPlace, depth: int, *, in_dot_folders: bool) -> None:
        self._place, self._depth, self._in_dot_folders = place, depth, in_dot_folders
        self._waiting: list[_Waiting] = []
        self._visited: set[str] = set()
        self._empty_links: dict[str, None] = {}

    def run(self) -> Iterator[FoundSkill]:
        """Yield the skills that are found, links without a target at the end."""
        place = self._place.folder
        if reason := self._refusal(place):
            yield FoundSkill(place, place.name, reason)
            return
        start = place if self._place.boundary is None else Path(os.path.realpath(place))
        self._visited.add(os.path.realpath(place))
        self._waiting.append(_Waiting(start, place.name, self._depth))
        for _ in range(_MAX_SCANNED_FOLDERS):
            if not self._waiting:
                break
            yield from self._visit(self._waiting.pop())
        for link in self._empty_links:
            reason = f"{link} is a link to {os.path.realpath(link)}, which has no SKILL.md."
            yield FoundSkill(Path(link), os.path.basename(link), reason)  # noqa: PTH119 - text

    def _visit(self, waiting: _Waiting) -> Iterator[FoundSkill]:
        folder, link = waiting.folder, waiting.link
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._empty_links.pop(link, None)
            if folder != self._place.folder or self._place.is_expected:
                reason = f"The folder cannot be read: {describe_system_error(error)}."
                yield FoundSkill(folder, waiting.name, reason)
            return
        if find_file_name(entry.name for entry in entries):
            self._empty_links.pop(link, None)
            yield FoundSkill(folder, waiting.name, is_linked=bool(link))
        elif waiting.depth:
            position = len(self._waiting)
            for entry in entries:
                if self._is_passed_over(entry.name):
                    continue
                if reason := self._enter(entry, waiting):
                    yield FoundSkill(folder / entry.name, entry.name, reason)
            # the last one is searched first
            self._waiting[position:] = reversed(self._waiting[position:])

    def _is_passed_over(self, name: str) -> bool:
        return name in PASSED_OVER or (name.startswith(".") and not self._in_dot_folders)

    def _enter(self, entry: os.DirEntry[str], parent: _Waiting) -> str:
        """Search a folder, or the one to which a link leads, next; return why it is not."""
        path, depth = parent.folder / entry.name, parent.depth - 1
        if not entry.is_symlink():
            if entry.is_dir():
                self._waiting.append(_Waiting(path, entry.name, depth, parent.link))
            return ""
        if reason := self._refusal(path):
            return reason
        real = os.path.realpath(path)
        if os.path.isdir(real) and real not in self._visited:  # noqa: PTH112 - text
            self._visited.add(real)
            self._empty_links[str(path)] = None
            depth = min(depth, MAX_LINKED_DEPTH - 1)
            self._waiting.append(_Waiting(Path(real), entry.name, depth, str(path)))
        return ""

    def _refusal(self, path: Path) -> str:
        """Return why the link at a path is not followed; "" if it is, or is no link."""
        real, boundary = os.path.realpath(path), self._place.boundary
        if boundary is not None and not is_within(real, boundary):
            return (
                f"{path} is a link that leads out of {boundary}, to {real}. The skills there are"
                " used if that folder is in skills.paths."
            )
        if path.is_symlink() and not os.path.lexists(real):
            return f"{path} is a link to {real}, where nothing is."
        return ""
