"""Adding and removing skills: nothing is executed, and a refusal leaves nothing behind."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from msgspec.structs import replace

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.system_errors import describe_system_error
from internal.open_files.paths import names_in, open_folder
from internal.skills.errors import SkillRefused, SkillUnreadable
from internal.skills.library import Skill, read_skill
from internal.skills.skill_archive import open_archive, write_file
from internal.skills.skill_folder import MAX_BYTES, MAX_FILES, MAX_FOLDER_DEPTH, read_file
from internal.skills.skill_places import FoundSkill, SkillPlace, find_skills

MAX_COLLECTION_DEPTH = 8
"""Depth to which a collection is searched for skills."""

_LEFT_OUT = frozenset({".git", "__pycache__", "__MACOSX", ".DS_Store"})


class Addition(NamedTuple):
    """The added skills, and sentences about the skills that were not added."""

    skills: list[Skill]
    problems: list[str]


class _Candidate(NamedTuple):
    """A skill to add: its location for people, and a function that copies it to an empty folder."""

    place: str
    copy: Callable[[Path], None]
    problem: str = ""


def add_skills(source: Path, folder: Path) -> Addition:
    """Copy the skills in a folder or ZIP file to folders of their names in `folder`.

    It may be one skill or a collection, such as a repository: skills in folders whose names start
    with a dot count only if there are no others. Version control and caches are left out. One that
    cannot be added is a problem; the others are added.

    Raises:
        SkillRefused: there is no skill, or the only one cannot be added.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    added: list[Skill] = []
    failures: list[LarkspurError] = []
    with _opened(source) as candidates:
        for each in candidates:
            try:
                added.append(_add(each, folder))
            except LarkspurError as error:
                failures.append(error)
    if not added and len(failures) == 1:
        raise failures[0]
    if not added and not failures:
        raise SkillRefused(f"{source} has no SKILL.md.")
    return Addition(added, [str(each) for each in failures])


def remove_skill(skill: Skill) -> None:
    """Remove the folder of a skill that was added.

    Raises:
        SkillRefused: it is not such a skill, or cannot be removed.
    """
    if skill.origin != "own":
        raise SkillRefused(f"{skill.name} was not added here; its folder is {skill.folder}.")
    try:
        with tempfile.TemporaryDirectory(prefix=".removing-", dir=skill.folder.parent) as draft:
            skill.folder.rename(Path(draft, "skill"))
    except OSError as error:
        raise SkillRefused(
            f"{skill.folder} cannot be removed: {describe_system_error(error)}"
        ) from error


@contextmanager
def _opened(source: Path) -> Iterator[list[_Candidate]]:
    """Yield the skills of a folder or archive.

    Raises:
        SkillRefused: it cannot be read, or is neither.
    """
    if source.is_dir():
        yield [
            _Candidate(str(each.folder), partial(_copy, each.folder), each.problem)
            for each in skills_in(source)
        ]
        return
    try:
        with open_archive(source) as archive:
            yield [
                _Candidate(_place_in(source, each), partial(archive.unpack, each))
                for each in archive.folders()
            ]
    except OSError as error:
        raise SkillRefused(f"{source} cannot be added: {describe_system_error(error)}") from error


def skills_in(source: Path) -> list[FoundSkill]:
    """Return the skills of a folder; skills in folders with a dot only if there are no others."""
    place = SkillPlace(source.absolute(), "own", Path(os.path.realpath(source)), is_expected=True)
    for in_dot_folders in (False, True):
        found = [*find_skills(place, depth=MAX_COLLECTION_DEPTH, in_dot_folders=in_dot_folders)]
        if any(not each.problem for each in found):
            return found
    return []


def _add(candidate: _Candidate, folder: Path) -> Skill:
    """Copy a skill to a folder of its name.

    Raises:
        SkillRefused: it cannot be added safely, is larger than a skill may be, or there is one of
            this name.
    """
    if candidate.problem:
        raise SkillRefused(candidate.problem)
    with tempfile.TemporaryDirectory(prefix=".adding-", dir=folder) as draft:
        copied = Path(draft, Path(candidate.place).name.removesuffix(".zip") or "skill")
        try:
            copied.mkdir()
            candidate.copy(copied)
            skill = read_skill(copied)
            target = folder / skill.name
            if os.path.lexists(target):
                raise SkillRefused(
                    f"{candidate.place}: there is a skill {skill.name} already; remove it first."
                )
            copied.rename(target)
        except OSError as error:
            raise SkillRefused(
                f"{candidate.place} cannot be added: {describe_system_error(error)}"
            ) from error
        except SkillUnreadable as error:  # names the copy, which is gone
            raise SkillRefused(str(error).replace(str(copied), candidate.place)) from error
    return replace(read_skill(target), state="not reviewed")


def _place_in(source: Path, folder: PurePosixPath) -> str:
    return str(source / folder)


def _copy(source: Path, target: Path) -> None:
    _Copy(source, target).copy()


class _Copy:
    """Copies the files of a folder, at most as many and as large as a skill may have."""

    def __init__(self, source: Path, target: Path) -> None:
        self._source, self._target = source, target
        self._files = self._bytes = 0

    def copy(self) -> None:
        """Copy the contents of the source."""
        with open_folder(str(self._source), follows_link=True) as folder:
            self._copy(folder, "", 0)

    def _copy(self, folder: int, prefix: str, depth: int) -> None:
        if depth > MAX_FOLDER_DEPTH:
            raise SkillRefused(f"{self._source}/{prefix}: its folders are nested too deeply.")
        for name in names_in(folder):
            if name in _LEFT_OUT:
                continue
            path = f"{prefix}{name}"
            self._files += 1
            if self._files > 2 * MAX_FILES:  # folders are counted as well
                raise SkillRefused(f"{self._source} has more than {MAX_FILES} files.")
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                self._copy_link(os.readlink(name, dir_fd=folder), path)
            elif stat.S_ISDIR(mode):
                (self._target / path).mkdir()
                with open_folder(name, folder) as inner:
                    self._copy(inner, f"{path}/", depth + 1)
            else:
                self._copy_file(folder, name, path)

    def _copy_link(self, link: str, path: str) -> None:
        root = os.path.realpath(self._source)
        real = os.path.realpath((self._source / path).parent / link)
        if link.startswith("/") or not real.startswith(f"{root}/"):
            raise SkillRefused(f"{self._source / path} is a link that leads out of the skill.")
        (self._target / path).symlink_to(link)

    def _copy_file(self, folder: int, name: str, path: str) -> None:
        found = read_file(folder, name, MAX_BYTES - self._bytes)
        if found is None:
            raise SkillRefused(f"{self._source / path} is neither a file nor a folder.")
        content, mode = found
        self._bytes += len(content)
        if self._bytes > MAX_BYTES:
            raise SkillRefused(f"{self._source} has more than {MAX_BYTES:,} bytes.")
        write_file(self._target / path, [content], executable=bool(mode & 0o111))
