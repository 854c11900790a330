"""Archives: their entries with sizes. Nothing is unpacked."""

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument

_IMPORTED = (bz2, gzip, lzma)  # tarfile would import them when the child can import nothing
_ENCRYPTED = 0x1
_UTF8_NAME = 0x800
_TAR_ERRORS = (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error)
_KIB = 1024
_MAX_NAME_CHARACTERS = 500


def read_zip(file: BinaryIO) -> ExtractedDocument:
    """Return the list of a ZIP archive.

    Raises:
        DocumentUnreadable: it is damaged.
    """
    try:
        entries = zipfile.ZipFile(file).infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise DocumentUnreadable("The ZIP archive is damaged: it cannot be listed.") from error
    return ExtractedDocument(len(entries), _zip_lines(entries))


def _zip_lines(entries: list[zipfile.ZipInfo]) -> Iterator[str]:
    unpacked = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries)
    encrypted = any(entry.flag_bits & _ENCRYPTED for entry in entries)
    yield (
        f"ZIP archive: {len(entries):,} entries, {_size(packed)}, unpacked {_size(unpacked)}"
        f"{', encrypted' if encrypted else ''}\n\n"
    )
    for entry in entries:
        name = _line_name(_decoded_name(entry))
        yield f"{name}\n" if entry.is_dir() else f"{name}  {_size(entry.file_size)}\n"


def _decoded_name(entry: zipfile.ZipInfo) -> str:
    """Return the name; without the UTF-8 flag it may be in the encoding of a Chinese Windows."""
    if entry.flag_bits & _UTF8_NAME or entry.filename.isascii():
        return entry.filename
    raw = entry.filename.encode("cp437", "replace")  # as zipfile decoded it
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return entry.filename


def read_tar(file: BinaryIO) -> ExtractedDocument:
    """Return the list of a tar archive, also of a compressed one. Its length is not known before.

    Raises:
        DocumentUnreadable: it is damaged, or a compressed file that is not an archive.
    """
    try:
        archive = tarfile.open(fileobj=file, mode="r:*")  # noqa: SIM115  # the process ends
    except _TAR_ERRORS as error:
        raise DocumentUnreadable(
            "The file is compressed or damaged: only ZIP and tar archives are listed."
        ) from error
    return ExtractedDocument(1, _tar_lines(archive))


def _tar_lines(archive: tarfile.TarFile) -> Iterator[str]:
    yield "tar archive\n\n"
    try:
        for entry in archive:
            archive.members = []  # type: ignore[attr-defined]  # it would keep every entry
            name = _line_name(entry.name)
            if entry.isfile():
                yield f"{name}  {_size(entry.size)}\n"
            else:
                yield f"{name}/\n" if entry.isdir() else f"{name} (link or special)\n"
    except _TAR_ERRORS:
        yield "[The archive is damaged here.]\n"


def _line_name(name: str) -> str:
    """Return a name on one line, with line ends, bidi controls and the like escaped."""
    shown = "".join(
        each if each.isprintable() else each.encode("unicode_escape", "replace").decode("ascii")
        for each in name[:_MAX_NAME_CHARACTERS]
    )
    return shown if len(name) <= _MAX_NAME_CHARACTERS else f"{shown}…"


def _size(count: int) -> str:
    if count < _KIB:
        return f"{count} bytes"
    size = float(count)
    for unit in ("KB", "MB", "GB"):
        size /= _KIB
        if size < _KIB:
            return f"{size:.1f} {unit}"
    return f"{size / _KIB:,.1f} TB"
