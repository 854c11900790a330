"""The charset that a text names itself: HTML, XML, style sheets and source code."""

import re

from internal.text_encodings.labels import codec_of_label

HEAD_BYTES = 4_096
"""Size of the beginning of a text that may name its charset."""

_COMMENT = re.compile(rb"<!--.*?(?:-->|$)", re.DOTALL)
_XML = re.compile(rb"""<\?xml\s[^>]*?\bencoding\s*=\s*["']\s*([\w.:-]{1,40})""", re.IGNORECASE)
_META = re.compile(rb"<meta\s[^>]*?\bcharset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_STYLE_SHEET = re.compile(rb'@charset "([\w.:-]{1,40})";')
# PEP 263; Emacs and Vim read the same lines
_SOURCE = re.compile(
    rb"(?:[^\n]*\n)?[ \t\f]*(?:#|//|/\*|;|--|%|\")[^\n]*?"
    rb"(?:\bcoding|\bfileencoding|\bfenc)[:=][ \t]*([\w.-]{1,40})"
)


def declared_codec(head: bytes) -> str | None:
    """Return the codec that the beginning of a text names, None if it names none that is known.

    A text that can be read until there is in no encoding of 16 bits: such a name is not believed.
    """
    head = head[:HEAD_BYTES]
    found = _find(head)
    codec = codec_of_label(found[1].decode("ascii")) if found else None
    return "utf-8" if codec is not None and codec.startswith(("utf-16", "utf-32")) else codec


def _find(head: bytes) -> re.Match[bytes] | None:
    start = head.lstrip()
    if start.startswith(b"<"):
        return _XML.match(start) or _META.search(_COMMENT.sub(b"", start))
    return _STYLE_SHEET.match(head) or _SOURCE.match(head)
