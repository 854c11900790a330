"""The kind of a file, by its content first, then by its name."""

import codecs
from typing import Literal

from internal.text_encodings.detection import marked_codec, wide_codec

Kind = Literal[
    "csv", "gzip", "html", "ole", "pdf", "picture", "rtf", "tar", "text", "tsv", "zip", "binary"
]  # fmt: skip

PACKAGES = frozenset({"docx", "epub", "pptx", "xlsx"})
"""The kinds of documents that are ZIP files."""

HEAD_BYTES = 8_192
"""How much of the beginning of a file decides its kind."""

ENCODED_KINDS = frozenset({"csv", "html", "text", "tsv"})
"""The kinds whose bytes are text in an encoding."""

_PDF_SEARCH_BYTES = 1_024  # readers accept something before the signature
_TAR_MAGIC = slice(257, 262)
_PICTURES = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"II*\0",
    b"MM\0*",
)
_SIGNATURES: tuple[tuple[bytes, Kind], ...] = (
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),  # an empty archive
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
    (b"\x1f\x8b", "gzip"),
    (b"{\\rtf", "rtf"),
)
_HTML_STARTS = (b"<!doctype html", b"<html")
_BITMAP_HEADER_BYTES = 26
_TEXT_KINDS: dict[str, Kind] = {
    "csv": "csv",
    "tsv": "tsv",
    "htm": "html",
    "html": "html",
    "xhtml": "html",
}


def detect_kind(head: bytes, name: str) -> Kind:
    """Return the kind of a file that begins with `head`."""
    if _is_picture(head):
        return "picture"
    if b"%PDF-" in head[:_PDF_SEARCH_BYTES]:
        return "pdf"
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if head[_TAR_MAGIC] == b"ustar":
        return "tar"
    if b"\0" in head and not (marked_codec(head) or wide_codec(head)):
        return "binary"
    return _text_kind(head, name)


def extension_of(name: str) -> str:
    """Return the extension of a file name in lower case, "" if it has none."""
    return name.rpartition(".")[2].lower() if "." in name else ""


def _is_picture(head: bytes) -> bool:
    if head.startswith(_PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return True
    # "BM" alone begins many texts; the size of the second header is small and the rest of it zero
    return head[:2] == b"BM" and len(head) >= _BITMAP_HEADER_BYTES and head[15:18] == b"\0\0\0"


def _text_kind(head: bytes, name: str) -> Kind:
    extension = extension_of(name)
    if extension in _TEXT_KINDS:
        return _TEXT_KINDS[extension]
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()[:32].lower()
    return "html" if not extension and start.startswith(_HTML_STARTS) else "text"
