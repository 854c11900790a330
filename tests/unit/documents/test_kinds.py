"""Kinds of files: the content decides, then the name."""

import pytest

from internal.documents.kinds import detect_kind
from tests.support import documents


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (documents.pdf("x"), "notes.txt", "pdf"),
        (b"\n\n" + documents.pdf("x"), "notes", "pdf"),
        (documents.archive({"a": "b"}), "a.pdf", "zip"),
        (documents.archive({}), "a.zip", "zip"),
        (documents.ole_file(), "a.docx", "ole"),
        (b"{\\rtf1", "a.doc", "rtf"),
        (b"\x1f\x8b\x08", "a.tar.gz", "gzip"),
        (documents.picture("PNG"), "a.txt", "picture"),
        (documents.picture("JPEG"), "a.png", "picture"),
        (documents.picture("GIF"), "a", "picture"),
        (documents.picture("WEBP"), "a", "picture"),
        (documents.picture("BMP"), "a", "picture"),
        (documents.picture("TIFF"), "a", "picture"),
        (b"BMW is a car, and this is a text about it", "a.bmp", "text"),
        (b"a,b", "a.CSV", "csv"),
        (b"a\tb", "a.tsv", "tsv"),
        (b"<p>x", "a.html", "html"),
        (b"<!DOCTYPE html><p>x", "page", "html"),
        (b"<!DOCTYPE html><p>x", "page.py", "text"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "a.svg", "text"),
        (b"not a PDF", "a.pdf", "text"),
        ("text".encode("utf-16"), "a.txt", "text"),
        (b"", "a.docx", "text"),
        (b"\x7fELF\0\0", "a.txt", "binary"),
    ],
)
def test_the_content_decides_before_the_name(content: bytes, name: str, kind: str) -> None:
    assert detect_kind(content[:8_192], name) == kind
