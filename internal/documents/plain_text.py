"""Text files in their encodings."""

import codecs
import os
from collections.abc import Iterator
from typing import BinaryIO

from internal.documents.extraction import ExtractedDocument

_CHUNK_BYTES = 1 << 20


def read_text(file: BinaryIO, codec: str) -> ExtractedDocument:
    r"""Return the text of a file with `\n` line ends; invalid bytes become U+FFFD.

    NUL bytes, as in a log that was cut off, are replaced by their number.
    """
    return ExtractedDocument(1, _without_nul(_decoded(file, codec)))


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


def _decoded(file: BinaryIO, codec: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(codec)("replace")
    held = ""  # "\r" at the end of a chunk may be the half of "\r\n"
    for chunk in read_chunks(file):
        text = held + decoder.decode(chunk)
        held = "\r" if text.endswith("\r") else ""
        yield text.removesuffix("\r").replace("\r\n", "\n")
    yield held + decoder.decode(b"", final=True)


def read_chunks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file as it was when reading began, also while it grows."""
    left = file.seek(0, os.SEEK_END)
    file.seek(0)
    while left > 0 and (chunk := file.read(min(left, _CHUNK_BYTES))):
        left -= len(chunk)
        yield chunk
