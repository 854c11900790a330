"""Text files in their encodings."""

import codecs
import os
from collections.abc import Iterator
from typing import BinaryIO

from internal.documents.extraction import ExtractedDocument

_CHUNK_BYTES = 1 << 20


def read_text(file: BinaryIO, codec: str) -> ExtractedDocument:
    r"""Return the text of a file with `\n` line ends; invalid bytes become U+FFFD."""
    return ExtractedDocument(1, _decoded(file, codec))


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
