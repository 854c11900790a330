"""Mail (.eml) and web pages with their pictures (.mhtml): headers, text, names of attachments."""

import base64
import email
import email.policy
import quopri
import re
from collections.abc import Iterator
from email.header import decode_header
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import BinaryIO

from internal.documents.extraction import ExtractedDocument, clean
from internal.documents.html_to_markdown import convert

_IMPORTED = (base64, quopri)  # email would import them when the child can import nothing
_HEADERS = ("From", "Sender", "To", "Cc", "Bcc", "Reply-To", "Date", "Subject")
_HEAD_BYTES = 8_192
_FIRST_LINE = re.compile(rb"(?:[A-Za-z][A-Za-z0-9-]*: ?.*|From \S+ .*)\r?\n")
_MIME_HEADER = re.compile(
    rb"^(?:MIME-Version|Message-ID|Received|Content-Type):", re.IGNORECASE | re.MULTILINE
)
_MAX_DEPTH = 10
_KIB = 1024


def is_message(content: bytes) -> bool:
    """Return whether content begins with the headers of a message."""
    head = content[:_HEAD_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    return bool(_FIRST_LINE.match(head)) and bool(_MIME_HEADER.search(head))


def read_mail(file: BinaryIO) -> ExtractedDocument:
    """Return a message: its headers, its text and a list of its attachments."""
    file.seek(0)
    message = email.message_from_binary_file(file, policy=email.policy.compat32)
    return ExtractedDocument(1, _message(message, 0), "[The message has no text.]")


def page_of_message(content: bytes) -> bytes:
    """Return the first web page in a message, b"" if there is none."""
    message = email.message_from_bytes(content, policy=email.policy.compat32)
    pages = (part for part in message.walk() if part.get_content_type() == "text/html")
    page = next(pages, None)
    if page is None:
        return b""
    return _body(page).encode("utf-8", "replace")


def _message(message: Message, depth: int) -> Iterator[str]:
    lines = [
        f"{name}: {' '.join(clean(decoded_header(value)).split())}"
        for name in _HEADERS
        for value in message.get_all(name, [])
    ]
    yield "\n".join(lines) + "\n\n" if lines else ""
    attachments: list[Message] = []
    yield from _parts(message, attachments, depth)
    if attachments:
        yield "Attachments, which were not read:\n"
        yield from (f"- {_attachment(each)}\n" for each in attachments)


def _parts(part: Message, attachments: list[Message], depth: int) -> Iterator[str]:
    kind = part.get_content_type()
    is_attached = part.get_content_disposition() == "attachment"
    if kind == "message/rfc822" and depth < _MAX_DEPTH:
        for inner in part.get_payload() if part.is_multipart() else ():
            yield "[Attached message]\n"
            yield from _message(inner, depth + 1)  # type: ignore[arg-type]  # of such a part
    elif part.is_multipart():
        inner_parts = [each for each in part.get_payload() if isinstance(each, Message)]
        if kind == "multipart/alternative":
            inner_parts = _best_alternative(inner_parts)
        for each in inner_parts if depth < _MAX_DEPTH else ():
            yield from _parts(each, attachments, depth + 1)
    elif kind in {"text/plain", "text/html"} and not is_attached:
        text = _body(part)
        shown = convert(text.encode("utf-8", "replace"), "utf-8") if kind == "text/html" else text
        yield f"{clean(shown).strip()}\n\n" if shown.strip() else ""
    else:
        attachments.append(part)


def _best_alternative(parts: list[Message]) -> list[Message]:
    """Return the plain text unless it is empty, and all parts that are not text."""
    texts = [each for each in parts if _first_text(each)]
    plain = [each for each in texts if each.get_content_type() == "text/plain"]
    kept = next((each for each in plain if _body(each).strip()), None)
    chosen = kept or (texts[-1] if texts else None)
    return [each for each in parts if each is chosen or each not in texts]


def _first_text(part: Message) -> bool:
    return any(each.get_content_maintype() == "text" for each in part.walk())


def _body(part: Message) -> str:
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    charset = str(part.get_content_charset() or "")
    if part.get_content_type() == "text/html" and not charset:
        found = re.search(rb"charset=[\"']?([\w-]+)", content[:2_048])
        charset = found[1].decode() if found else ""
    for each in (charset, "utf-8", "gb18030"):
        try:
            return content.decode(_WIDER.get(each.lower(), each))
        except (UnicodeDecodeError, LookupError):
            continue
    return content.decode(_known(charset), "replace")


_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "gb_2312-80": "gb18030", "us-ascii": "utf-8"}
"""Supersets of encodings that mail programs declare too narrowly."""


def _known(charset: str) -> str:
    try:
        "".encode(charset)
    except LookupError:
        return "latin-1"
    return charset or "latin-1"


def decoded_header(value: object) -> str:
    """Return the text of a header; words in an unknown encoding are replaced."""
    text = ""
    for content, charset in decode_header(str(value)):
        if isinstance(content, str):
            text += content
            continue
        known = _known(_WIDER.get((charset or "").lower(), charset or "utf-8"))
        text += content.decode(known, "replace")
    return text


def _attachment(part: Message) -> str:
    name = part.get_filename() or part.get_param("name") or "without a name"
    shown = " ".join(clean(decoded_header(collapse_rfc2231_value(name))).split())
    payload = part.get_payload(decode=True)
    size = f", {_size(len(payload))}" if isinstance(payload, bytes) else ""
    return f"{shown} ({part.get_content_type()}{size})"


def _size(count: int) -> str:
    return f"{count} bytes" if count < _KIB else f"{count / _KIB:,.1f} KB"
