"""Messages of Outlook (.msg): headers, text, names of attachments."""

import datetime as dt
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import olefile

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean
from internal.documents.html_to_markdown import convert

_TEXT_TYPES = (("001F", "utf-16-le"), ("001E", ""))
_BINARY_TYPE = "0102"
_SUBJECT, _BODY, _HTML, _RTF = "0037", "1000", "1013", "1009"
_SENDER_NAME, _SENDER_ADDRESS, _SENDER_SMTP = "0C1A", "0C1F", "5D01"
_TO, _CC, _BCC = "0E04", "0E03", "0E02"
_SENT, _DELIVERED, _CODE_PAGE = 0x0039, 0x0E06, 0x3FFD
_LONG_NAME, _SHORT_NAME, _TITLE, _CONTENT, _MEDIA_TYPE = "3707", "3704", "3001", "3701", "370E"
_PROPERTIES = "__properties_version1.0"
_ENTRY = struct.Struct("<HHI8s")
_FILE_TIME_EPOCH = dt.datetime(1601, 1, 1, tzinfo=dt.UTC)
_HEADER_BYTES = {True: 32, False: 24}
_MAX_DEPTH = 5
_UTF8_PAGE = 65_001


class _Storage(NamedTuple):
    """A message or an attachment within the file."""

    file: Any
    path: list[str]

    def read(self, name: str) -> bytes:
        """Return a stream, b"" if there is none or it cannot be read."""
        place = [*self.path, name]
        if not self.file.exists(place):
            return b""
        try:
            return bytes(self.file.openstream(place).read())
        except OSError:
            return b""

    def text(self, tag: str, code_page: str) -> str:
        """Return a property that is text, "" if there is none."""
        for kind, encoding in _TEXT_TYPES:
            if content := self.read(f"__substg1.0_{tag}{kind}"):
                return clean(content.decode(encoding or code_page, "replace")).rstrip("\0")
        return ""

    def numbers(self) -> dict[int, bytes]:
        """Return the eight bytes of each property of a fixed size, by its tag."""
        content = self.read(_PROPERTIES)
        start = _HEADER_BYTES[not self.path]
        whole = (len(content) - start) // _ENTRY.size * _ENTRY.size
        if whole <= 0:
            return {}
        entries = _ENTRY.iter_unpack(content[start : start + whole])
        return {tag: value for _, tag, _, value in entries}

    def folders(self, prefix: str) -> list[str]:
        """Return the names of the storages within this one that begin with `prefix`."""
        depth = len(self.path)
        found = (
            each[depth]
            for each in self.file.listdir(streams=False, storages=True)
            if len(each) == depth + 1 and each[:depth] == self.path
        )
        return sorted(name for name in found if name.startswith(prefix))


def read_msg(file: BinaryIO) -> ExtractedDocument:
    """Return a message: its headers, its text and a list of its attachments.

    Raises:
        DocumentUnreadable: it is damaged.
    """
    file.seek(0)
    try:
        opened = olefile.OleFileIO(file)
    except (OSError, ValueError, IndexError, struct.error) as error:
        raise DocumentUnreadable("The Outlook message is damaged: it cannot be opened.") from error
    return ExtractedDocument(1, _message(_Storage(opened, []), 0), "[The message has no text.]")


def _message(storage: _Storage, depth: int) -> Iterator[str]:
    numbers = storage.numbers()
    page = int.from_bytes(numbers.get(_CODE_PAGE, b"")[:4], "little")
    code_page = _known(page)
    yield "\n".join(_headers(storage, numbers, code_page)) + "\n\n"
    body = storage.text(_BODY, code_page).strip()
    if not body:
        html = storage.read(f"__substg1.0_{_HTML}{_BINARY_TYPE}")
        html = html or storage.text(_HTML, code_page).encode("utf-8", "replace")
        body = clean(convert(html, None)).strip() if html else ""
    if not body and storage.read(f"__substg1.0_{_RTF}{_BINARY_TYPE}"):
        body = "[The text of the message is in RTF, which was not understood.]"
    yield f"{body}\n\n" if body else ""
    yield from _attachments(storage, code_page, depth)


def _headers(storage: _Storage, numbers: dict[int, bytes], code_page: str) -> Iterator[str]:
    name = storage.text(_SENDER_NAME, code_page)
    address = storage.text(_SENDER_SMTP, code_page) or storage.text(_SENDER_ADDRESS, code_page)
    sender = f"{name} <{address}>" if name and address and name != address else name or address
    sent = numbers.get(_SENT) or numbers.get(_DELIVERED) or b""
    values = {
        "From": sender,
        "To": storage.text(_TO, code_page),
        "Cc": storage.text(_CC, code_page),
        "Bcc": storage.text(_BCC, code_page),
        "Date": _date(int.from_bytes(sent, "little")),
        "Subject": storage.text(_SUBJECT, code_page),
    }
    yield from (f"{key}: {' '.join(value.split())}" for key, value in values.items() if value)


def _attachments(storage: _Storage, code_page: str, depth: int) -> Iterator[str]:
    listed, inner = [], []
    for name in storage.folders("__attach_version1.0_"):
        attachment = _Storage(storage.file, [*storage.path, name])
        tags = (_LONG_NAME, _SHORT_NAME, _TITLE)
        texts = (attachment.text(tag, code_page) for tag in tags)
        shown = next(filter(None, texts), "without a name")
        message = attachment.folders(f"__substg1.0_{_CONTENT}000D")
        if message and depth < _MAX_DEPTH:
            inner.append(_Storage(storage.file, [*attachment.path, message[0]]))
            continue
        size = len(attachment.read(f"__substg1.0_{_CONTENT}{_BINARY_TYPE}"))
        kind = attachment.text(_MEDIA_TYPE, code_page)
        about = ", ".join(filter(None, (kind, f"{size:,} bytes" if size else "")))
        listed.append(f"- {shown} ({about})\n" if about else f"- {shown}\n")
    if listed:
        yield "Attachments, which were not read:\n"
        yield from listed
    for each in inner:
        yield "\n[Attached message]\n"
        yield from _message(each, depth + 1)


def _date(ticks: int) -> str:
    """Return a time that is counted in 100 ns from 1601 on."""
    try:
        moment = _FILE_TIME_EPOCH + dt.timedelta(microseconds=ticks // 10)
    except OverflowError:
        return ""
    return moment.strftime("%Y-%m-%d %H:%M:%S +0000") if ticks else ""


def _known(page: int) -> str:
    name = "utf-8" if page == _UTF8_PAGE else f"cp{page}"
    try:
        "".encode(name)
    except LookupError:
        return "cp1252"
    return name
