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
        (b"\xef\xbb\xbf<html xmlns:o='x'>", "report.xls", "html"),
        (b"<table><tr><td>a", "report.xls", "html"),
        (b"<!-- saved -->\n<!DOCTYPE HTML><p>x", "form.pdf", "html"),
        (b"<?xml version='1.0'?><html><p>x", "a.doc", "html"),
        (b"<table><tr><td>a", "a.md", "text"),
        (b"<Workbook xmlns='urn:schemas-microsoft-com:office:spreadsheet'>", "a.xls", "xmlss"),
        (b"a\tb\n", "report.xls", "text"),
        (b"From: a\r\nMIME-Version: 1.0\r\n", "a.doc", "mail"),
        (b"From: a\n\nhello", "a.eml", "mail"),
        (b"2026-11-29 started\n" + bytes(500) + b"stopped", "a.log", "text"),
        (bytes(100) + b"2026-11-29 started\n", "a.log", "text"),
        (b"one\0two\0three\0", "names", "text"),
        (bytes(64), "a.log", "binary"),
        (b"SQLite format 3\0\x10\0\1\1", "a.log", "binary"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "IMG_1.HEIC", "heif"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0", "a.mp4", "binary"),
    ],
)
def test_the_content_decides_before_the_name(content: bytes, name: str, kind: str) -> None:
    assert detect_kind(content[:8_192], name) == kind
