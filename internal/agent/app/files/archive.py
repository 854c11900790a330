"""ZIP archives that are made while they are sent."""

import asyncio
import itertools
import re
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from pathlib import PurePosixPath

from internal.agent.domain.artifacts import Artifact, ArtifactType

_CHUNK_BYTES = 262_144
_COMPRESSED: frozenset[ArtifactType] = frozenset({"image", "archive", "audio", "video"})
_NOT_IN_NAMES = re.compile(r'[\\:*?"<>|\x00-\x1f\x7f]')
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)", re.IGNORECASE)
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of the format

ReadFile = Callable[[str], AsyncIterator[bytes]]
"""Yields the bytes of a stored file by its hash."""


class _Output:
    """Collects the bytes of an archive until they are taken. It cannot be rewound."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes, /) -> int:
        """Add a piece."""
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Do nothing: nothing is kept back."""

    def close(self) -> None:
        """Do nothing."""

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


async def zip_artifacts(artifacts: Iterable[Artifact], read: ReadFile) -> AsyncIterator[bytes]:
    """Yield a ZIP archive of artifacts, a piece of a file at a time.

    Its files have the names of the artifacts, changed where no system could unpack them safely.
    """
    output = _Output()
    archive = zipfile.ZipFile(output, "w")
    names: set[str] = set()
    for artifact in artifacts:
        with archive.open(_entry(artifact, names), "w") as entry:
            async for piece in read(artifact.sha256):
                for start in range(0, len(piece), _CHUNK_BYTES):
                    chunk = piece[start : start + _CHUNK_BYTES]
                    await asyncio.to_thread(entry.write, chunk)
                    yield output.take()
    archive.close()
    yield output.take()


def portable_name(name: str, taken: set[str]) -> str:
    """Return a name below the folder of the archive on every system, and add it to `taken`.

    Windows has further separators, names of devices, and ignores case, dots and spaces at the end.
    """
    parts = [_NOT_IN_NAMES.sub("_", part).rstrip(". ") for part in name.split("/")]
    parts = [f"_{part}" if _DEVICE.match(part) else part or "_" for part in parts]
    safe = "/".join(parts)
    path = PurePosixPath(safe)
    for number in itertools.count(2):
        if safe.casefold() not in taken:
            break
        safe = str(path.with_stem(f"{path.stem} ({number})"))
    taken.add(safe.casefold())
    return safe


def _entry(artifact: Artifact, names: set[str]) -> zipfile.ZipInfo:
    made = datetime.fromisoformat(artifact.created).timetuple()[:6]
    entry = zipfile.ZipInfo(portable_name(artifact.name, names), max(made, _EARLIEST))
    entry.compress_type = (
        zipfile.ZIP_STORED if artifact.type in _COMPRESSED else zipfile.ZIP_DEFLATED
    )
    entry.external_attr = 0o644 << 16
    entry.file_size = artifact.size
    return entry
