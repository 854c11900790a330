"""Adding and removing skills: nothing is executed, and a refusal leaves nothing behind."""

import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import find_invisible
from internal.open_files.paths import names_in, open_folder
from internal.skills.library import Skill, read_skill
from internal.skills.skill_folder import (
    MAX_BYTES,
    MAX_FILES,
    MAX_FOLDER_DEPTH,
    read_file,
)
from internal.skills.skill_places import SkillPlace, find_skills

MAX_RATIO = 100
"""How many times as large as the ZIP file its content may be."""

_LEFT_OUT = frozenset({".git", "__pycache__", "__MACOSX", ".DS_Store"})
_ENCRYPTED = 0x1
_SMALL_BYTES = 1_000_000  # for less the ratio does not matter
_CHUNK_BYTES = 65_536


class SkillRefused(LarkspurError):
    """A skill is not added or removed. Nothing has changed."""


def add_skill(source: Path, folder: Path) -> Skill:
    """Copy the skill in a folder or ZIP file to a folder of its name in `folder`, and return it.

    Version control and caches are left out.

    Raises:
        SkillRefused: it cannot be added safely, or there is one of this name.
        SkillUnreadable: it is no skill, or larger than one may be.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".adding-", dir=folder) as draft:
        name = source.absolute().name if source.is_dir() else source.stem
        unpacked = Path(draft, name or "skill")
        try:
            unpacked.mkdir()
            if source.is_dir():
                _Copy(source, unpacked).copy()
            else:
                _unpack(source, unpacked)
            skill = _only_skill(unpacked, source)
            target = folder / skill.name
            if os.path.lexists(target):
                raise SkillRefused(f"There is a skill {skill.name} already; remove it first.")
            skill.folder.rename(target)
        except OSError as error:
            raise SkillRefused(
                f"{source} cannot be added: {describe_system_error(error)}"
            ) from error
    return replace(read_skill(target), state="not reviewed")


def remove_skill(skill: Skill) -> None:
    """Remove the folder of a skill that was added.

    Raises:
        SkillRefused: it is not one of those, or cannot be removed.
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


def _only_skill(unpacked: Path, source: Path) -> Skill:
    found = [each for each in find_skills(SkillPlace(unpacked, "own")) if not each.problem]
    if not found:
        raise SkillRefused(f"{source} has no SKILL.md.")
    if len(found) > 1:
        names = ", ".join(sorted(each.name for each in found)[:10])
        raise SkillRefused(f"{source} has {len(found)} skills ({names}); add one at a time.")
    return read_skill(found[0].folder)


class _Copy:
    """Copies the files of a folder, at most as many and as large as a skill may have."""

    def __init__(self, source: Path, target: Path) -> None:
        self._source, self._target = source, target
        self._files = self._bytes = 0

    def copy(self) -> None:
        """Copy what is in the source."""
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
        _write(self._target / path, [content], executable=bool(mode & 0o111))


def _unpack(source: Path, target: Path) -> None:
    """Unpack a ZIP file into an empty folder.

    Raises:
        SkillRefused: it is damaged, or has something that a skill cannot have.
    """
    try:
        if not stat.S_ISREG(source.stat().st_mode) or source.stat().st_size > MAX_BYTES:
            raise SkillRefused(
                f"{source} is not a folder or ZIP file of at most {MAX_BYTES:,} bytes."
            )
        with zipfile.ZipFile(source) as archive:
            entries = archive.infolist()
            _check_entries(entries, source)
            remaining = MAX_BYTES
            for entry in entries:
                path = target.joinpath(*PurePosixPath(entry.filename).parts)
                if _LEFT_OUT.intersection(PurePosixPath(entry.filename).parts):
                    continue
                if entry.is_dir():
                    path.mkdir(parents=True, exist_ok=True)
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                chunks = _read_entry(archive, entry, remaining)
                executable = bool(entry.external_attr >> 16 & 0o111)
                remaining -= _write(path, chunks, executable=executable)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError) as error:
        raise SkillRefused(f"{source} is not a ZIP file that can be read.") from error
    except (ValueError, UnicodeError) as error:
        raise SkillRefused(f"{source} has a name that cannot be used.") from error


def _check_entries(entries: list[zipfile.ZipInfo], source: Path) -> None:
    """Check what an archive says of its entries.

    Raises:
        SkillRefused: a skill cannot have one of them.
    """
    if len(entries) > 2 * MAX_FILES:
        raise SkillRefused(f"{source} has more than {MAX_FILES} files.")
    seen: set[str] = set()
    for entry in entries:
        if problem := _problem(entry):
            raise SkillRefused(f"{source}: {entry.orig_filename[:200]!a} {problem}.")
        key = str(PurePosixPath(entry.filename)).casefold()
        if key in seen:
            raise SkillRefused(f"{source}: {entry.filename[:200]!r} is in it twice.")
        seen.add(key)
    size, packed = sum(each.file_size for each in entries), source.stat().st_size
    if size > MAX_BYTES:
        raise SkillRefused(f"{source} has more than {MAX_BYTES:,} bytes.")
    if size > _SMALL_BYTES and size > MAX_RATIO * packed:
        raise SkillRefused(f"{source} is compressed more than {MAX_RATIO} times.")


def _problem(entry: zipfile.ZipInfo) -> str:
    """Return what is wrong with an entry, "" if nothing is."""
    name, kind = entry.orig_filename, stat.S_IFMT(entry.external_attr >> 16)
    path = PurePosixPath(name)
    problems = {
        "is not a relative path": path.is_absolute() or "\\" in name or name[1:2] == ":",
        "leads out of the skill": ".." in path.parts or not path.parts,
        "has a character that a name cannot have": "\n" in name or bool(find_invisible(name)),
        "is nested too deeply": len(path.parts) > MAX_FOLDER_DEPTH,
        "is encrypted": bool(entry.flag_bits & _ENCRYPTED),
        "is a link or a device": kind not in {0, stat.S_IFREG, stat.S_IFDIR},
    }
    return next((problem for problem, found in problems.items() if found), "")


def _read_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, remaining: int
) -> Iterator[bytes]:
    """Yield the content of an entry; what it says of its size is not trusted."""
    with archive.open(entry) as file:
        while chunk := file.read(_CHUNK_BYTES):
            remaining -= len(chunk)
            if remaining < 0:
                raise SkillRefused(f"{archive.filename} has more than {MAX_BYTES:,} bytes.")
            yield chunk


def _write(path: Path, chunks: Iterator[bytes] | list[bytes], *, executable: bool) -> int:
    """Write a new file and return its size."""
    with path.open("xb") as file:
        size = sum(map(file.write, chunks))
    path.chmod(0o755 if executable else 0o644)
    return size
