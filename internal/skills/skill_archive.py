"""The skills in a ZIP file. Its metadata is not trusted."""

import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from internal.agent.domain.text import find_invisible
from internal.skills.errors import SkillRefused
from internal.skills.skill_file import find_file_name
from internal.skills.skill_folder import MAX_BYTES, MAX_FILES, MAX_FOLDER_DEPTH
from internal.skills.skill_places import PASSED_OVER

MAX_ARCHIVE_BYTES = 200_000_000
"""The largest ZIP file: a collection of skills with up to `MAX_BYTES` each."""
MAX_ENTRIES = 50_000
MAX_RATIO = 100
"""Maximum ratio of the content to the size of the ZIP file."""

_ENCRYPTED = 0x1
_SMALL_BYTES = 1_000_000  # for less the ratio does not matter
_CHUNK_BYTES = 65_536


class SkillArchive:
    """An open ZIP file.

    Args:
        archive: the open file.
        source: its path, for errors.
    """

    def __init__(self, archive: zipfile.ZipFile, source: Path) -> None:
        self._archive, self._source = archive, source
        self._entries = [
            (path, entry)
            for entry in archive.infolist()
            if not PASSED_OVER.intersection((path := PurePosixPath(entry.filename)).parts)
        ]
        self._check_names()

    def folders(self) -> list[PurePosixPath]:
        """Return the folders of skills, folders below one with a dot only if there are no others.

        A skill within another one is a part of it.
        """
        files = [path for path, entry in self._entries if not entry.is_dir()]
        found = sorted({path.parent for path in files if find_file_name([path.name])})
        outer = [each for each in found if not any(other in each.parents for other in found)]
        plain = [each for each in outer if not any(part.startswith(".") for part in each.parts)]
        return plain or outer

    def unpack(self, folder: PurePosixPath, target: Path) -> None:
        """Unpack a folder of the archive into an empty one.

        Raises:
            SkillRefused: it has something that a skill cannot have.
            OSError: it cannot be written.
        """
        entries = [
            (path.relative_to(folder), entry)
            for path, entry in self._entries
            if path.is_relative_to(folder)
        ]
        self._check(entries)
        with _refused(self._source):
            remaining = MAX_BYTES
            for path, entry in entries:
                place = target / path
                if entry.is_dir():
                    place.mkdir(parents=True, exist_ok=True)
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                executable = bool(entry.external_attr >> 16 & 0o111)
                remaining -= write_file(place, self._read(entry, remaining), executable=executable)

    def _check_names(self) -> None:
        """Check the whole archive: one that would write elsewhere is not read at all.

        Raises:
            SkillRefused: it has such an entry, or too many.
        """
        if len(self._entries) > MAX_ENTRIES:
            raise SkillRefused(f"{self._source} has more than {MAX_ENTRIES:,} files.")
        for _, entry in self._entries:
            if problem := _name_problem(entry):
                raise SkillRefused(f"{self._source}: {entry.orig_filename[:200]!a} {problem}.")

    def _check(self, entries: list[tuple[PurePosixPath, zipfile.ZipInfo]]) -> None:
        """Check the archive's metadata of the files of a skill.

        Raises:
            SkillRefused: a file is not allowed in a skill.
        """
        if len(entries) > 2 * MAX_FILES:
            raise SkillRefused(f"{self._source} has a skill of more than {MAX_FILES} files.")
        seen: set[str] = set()
        for path, entry in entries:
            if problem := _kind_problem(path, entry):
                raise SkillRefused(f"{self._source}: {entry.orig_filename[:200]!a} {problem}.")
            key = str(path).casefold()
            if key in seen:
                raise SkillRefused(f"{self._source}: {entry.filename[:200]!r} is in it twice.")
            seen.add(key)
        size = sum(entry.file_size for _, entry in entries)
        if size > MAX_BYTES:
            raise SkillRefused(f"{self._source} has a skill of more than {MAX_BYTES:,} bytes.")
        if size > _SMALL_BYTES and size > MAX_RATIO * self._source.stat().st_size:
            raise SkillRefused(f"{self._source} is compressed more than {MAX_RATIO} times.")

    def _read(self, entry: zipfile.ZipInfo, remaining: int) -> Iterator[bytes]:
        """Yield the content of an entry; its declared size is not trusted."""
        with self._archive.open(entry) as file:
            while chunk := file.read(_CHUNK_BYTES):
                remaining -= len(chunk)
                if remaining < 0:
                    raise SkillRefused(f"{self._source} has more than {MAX_BYTES:,} bytes.")
                yield chunk


@contextmanager
def open_archive(source: Path) -> Iterator[SkillArchive]:
    """Yield the archive in a file.

    Raises:
        SkillRefused: it is damaged, or has something that no archive of skills has.
        OSError: it cannot be read.
    """
    if not stat.S_ISREG(source.stat().st_mode) or source.stat().st_size > MAX_ARCHIVE_BYTES:
        raise SkillRefused(
            f"{source} is not a folder or ZIP file of at most {MAX_ARCHIVE_BYTES:,} bytes."
        )
    with _refused(source), zipfile.ZipFile(source) as archive:
        yield SkillArchive(archive, source)


@contextmanager
def _refused(source: Path) -> Iterator[None]:
    """Translate the errors of a damaged archive into a refusal."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError) as error:
        raise SkillRefused(f"{source} is not a ZIP file that can be read.") from error
    except (ValueError, UnicodeError) as error:
        raise SkillRefused(f"{source} has a name that cannot be used.") from error


def write_file(path: Path, chunks: Iterator[bytes] | list[bytes], *, executable: bool) -> int:
    """Write a new file and return its size."""
    with path.open("xb") as file:
        size = sum(map(file.write, chunks))
    path.chmod(0o755 if executable else 0o644)
    return size


def _name_problem(entry: zipfile.ZipInfo) -> str:
    """Return the problem with the name of an entry, "" if there is none."""
    name = entry.orig_filename
    path = PurePosixPath(name)
    problems = {
        "is not a relative path": path.is_absolute() or "\\" in name or name[1:2] == ":",
        "leads out of the skill": ".." in path.parts or not path.parts,
        "has a character that a name cannot have": "\n" in name or bool(find_invisible(name)),
    }
    return next((problem for problem, found in problems.items() if found), "")


def _kind_problem(path: PurePosixPath, entry: zipfile.ZipInfo) -> str:
    """Return why an entry cannot be a part of a skill, "" if it can."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    problems = {
        "is nested too deeply": len(path.parts) > MAX_FOLDER_DEPTH,
        "is encrypted": bool(entry.flag_bits & _ENCRYPTED),
        "is a link or a device": kind not in {0, stat.S_IFREG, stat.S_IFDIR},
    }
    return next((problem for problem, found in problems.items() if found), "")
