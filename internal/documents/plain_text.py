"""Text files in their encodings."""

import codecs
import os
from collections.abc import Iterator
from typing import BinaryIO

from internal.documents.extraction import ExtractedDocument
from internal.documents.kinds import BYTE_ORDER_MARKS

_CHUNK_BYTES = 1 << 20
_MAX_MARK_BYTES = 4


def read_text(file: BinaryIO) -> ExtractedDocument:
    """Return the text of a file in UTF-8, UTF-16 or UTF-32 with a mark, or GB18030."""
    return ExtractedDocument(1, _without_nul(_decoded(file, encoding_of(file))))


def _without_nul(pieces: Iterator[str]) -> Iterator[str]:
    """Yield text with each run of NUL characters replaced by their number."""
    count = 0
    for piece in pieces:
        if not count and "\0" not in piece:
            yield piece
            continue
        rest = piece
        while rest:
            text = rest.lstrip("\0")
            count += len(rest) - len(text)
            if text and count:
                yield _nul_note(count)
                count = 0
            before, found, rest = text.partition("\0")
            yield before
            rest = found + rest
    yield _nul_note(count) if count else ""


def _nul_note(count: int) -> str:
    return "[1 NUL byte]" if count == 1 else f"[{count:,} NUL bytes]"


def encoding_of(file: BinaryIO) -> str:
    """Return the encoding of a file: by its mark, else the first that the whole file is valid in.

    UTF-8 if it is valid in none.
    """
    file.seek(0)
    head = file.read(_MAX_MARK_BYTES)
    for mark, encoding in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    for encoding in ("utf-8", "gb18030"):
        if _is_valid(file, encoding):
            return encoding
    return "utf-8"


def _is_valid(file: BinaryIO, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for chunk in _chunks(file):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _decoded(file: BinaryIO, encoding: str) -> Iterator[str]:
    r"""Yield the text with `\n` line ends; invalid bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    held = ""  # "\r" at the end of a chunk may be the half of "\r\n"
    for chunk in _chunks(file):
        text = held + decoder.decode(chunk)
        held = "\r" if text.endswith("\r") else ""
        yield text.removesuffix("\r").replace("\r\n", "\n")
    yield held + decoder.decode(b"", final=True)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file as it was when reading began, also while it grows."""
    left = file.seek(0, os.SEEK_END)
    file.seek(0)
    while left > 0 and (chunk := file.read(min(left, _CHUNK_BYTES))):
        left -= len(chunk)
        yield chunk
