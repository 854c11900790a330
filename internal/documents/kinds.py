"""The kind of a file, by its content first, then by its name."""

import codecs
import re
from typing import Literal

from internal.text_encodings.detection import marked_codec, wide_codec

Kind = Literal[
    "csv", "gzip", "heif", "html", "mail", "ole", "pdf", "picture", "rtf", "tar", "text", "tsv",
    "xmlss", "zip", "binary"
]  # fmt: skip

PACKAGES = frozenset({"docx", "epub", "odp", "ods", "odt", "pptx", "xlsb", "xlsx"})
"""The kinds of documents that are ZIP files."""

HEAD_BYTES = 8_192
"""Size of the beginning of a file that decides its kind."""

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
_HTML_FRAGMENTS = (
    *(b"<head", b"<meta", b"<body", b"<table", b"<style", b"<div", b"<title", b"<script", b"<p>"),
    *(b"<font", b"<center", b"<h1", b"<br", b"<link"),
)
_MARKUP_BEFORE = re.compile(rb"\s*(?:<\?xml[^>]*>|<!--.*?-->)", re.DOTALL)
_DOCUMENT_EXTENSIONS = frozenset(
    {
        *("", "asp", "aspx", "cgi", "csv", "dhtml", "do", "doc", "docm", "docx", "dot", "eml"),
        *("jsp", "mht", "mhtml", "msg", "odp", "ods", "odt", "pdf", "ppt", "pptx", "rtf", "shtml"),
        *("tsv", "wps", "et", "dps", "xht", "xls", "xlsb", "xlsm", "xlsx", "xlt"),
    }
)
"""Names whose files are converted: a person does not mean their source."""
_OFFICE_EXTENSIONS = _DOCUMENT_EXTENSIONS - {"", "csv", "eml", "tsv"}
_XML_SPREADSHEET = b"urn:schemas-microsoft-com:office:spreadsheet"
_MAIL_START = re.compile(
    rb"\s*(?:From |(?:Return-Path|Received|Delivered-To|X-[\w-]+|Message-ID|MIME-Version|From|To"
    rb"|Date|Subject|Content-Type|DKIM-Signature|ARC-[\w-]+|Authentication-Results):)",
    re.IGNORECASE,
)
_HEIF_BRANDS = frozenset(
    {
        *(b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"),
        *(b"avif", b"avis"),
    }
)
_CONTROLS = bytes({*range(32)} - {*b"\0\b\t\n\f\r\x1b"})
_LONG_RUN = re.compile(rb"\0{4,}")
_MAX_NUL_SHARE = 0.3
_BITMAP_HEADER_BYTES = 26
_TEXT_KINDS: dict[str, Kind] = {
    "csv": "csv",
    "tsv": "tsv",
    "htm": "html",
    "html": "html",
    "xhtml": "html",
    "eml": "mail",
    "mht": "mail",
    "mhtml": "mail",
}


def detect_kind(head: bytes, name: str) -> Kind:
    """Return the kind of a file that begins with `head`."""
    if picture := _picture_kind(head):
        return picture
    if b"%PDF-" in head[:_PDF_SEARCH_BYTES]:
        return "pdf"
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if head[_TAR_MAGIC] == b"ustar":
        return "tar"
    is_wide = marked_codec(head) or wide_codec(head)
    if b"\0" in head and not is_wide and not is_text(head):
        return "binary"
    return _text_kind(head, name)


def is_text(head: bytes) -> bool:
    """Return whether the beginning of a file is text, also with some NUL bytes as in torn logs."""
    rest = _LONG_RUN.sub(b"", head)
    text = rest.replace(b"\0", b"")
    if not text or text.translate(None, _CONTROLS) != text:
        return False
    if len(rest) - len(text) > _MAX_NUL_SHARE * len(rest):
        return False
    return any(_is_decodable(text, encoding) for encoding in ("utf-8", "gb18030"))


def _is_decodable(text: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(text)
    except UnicodeDecodeError:
        return False
    return True


def extension_of(name: str) -> str:
    """Return the extension of a file name in lower case, "" if it has none."""
    return name.rpartition(".")[2].lower() if "." in name else ""


def _picture_kind(head: bytes) -> Kind | None:
    if head[4:8] == b"ftyp" and head[8:12] in _HEIF_BRANDS:
        return "heif"
    return "picture" if _is_picture(head) else None


def _is_picture(head: bytes) -> bool:
    if head.startswith(_PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return True
    # "BM" alone begins many texts; the size of the second header is small and the rest of it zero
    return head[:2] == b"BM" and len(head) >= _BITMAP_HEADER_BYTES and head[15:18] == b"\0\0\0"


def _text_kind(head: bytes, name: str) -> Kind:
    extension = extension_of(name)
    start = _markup_start(head)
    if extension in _OFFICE_EXTENSIONS:
        if _XML_SPREADSHEET in head:
            return "xmlss"
        if start.startswith(_HTML_FRAGMENTS):
            return "html"
        if _MAIL_START.match(head) and b"mime-version" in head.lower():
            return "mail"
    if extension in _DOCUMENT_EXTENSIONS and start.startswith(_HTML_STARTS):
        return "html"
    return _TEXT_KINDS.get(extension, "text")


def _markup_start(head: bytes) -> bytes:
    """Return the first tag of markup, in lower case."""
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if head.startswith(mark):
            head = head.replace(b"\0", b"")[2:]
    start = head.removeprefix(codecs.BOM_UTF8)
    while found := _MARKUP_BEFORE.match(start):
        start = start[found.end() :]
    return start.lstrip()[:32].lower()


def entry_key(name: str) -> str:
    """Return a key that is equal for names that Office treats as the same entry."""
    return name.replace("\\", "/").lstrip("/").lower()
