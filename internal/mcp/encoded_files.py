"""Files that servers write as base64 into a text: data URLs, and pictures without a prefix."""

import base64
import re
from collections.abc import Iterator
from typing import NamedTuple

_ALPHABET = r"(?:[A-Za-z0-9+/_-]|\\/)"
_LINE_END = r"(?:\\[rn]|[\r\n])"
_ENCODED = rf"{_ALPHABET}+(?:{_LINE_END}+{_ALPHABET}+)*=*"
# Beginnings of PNG, JPEG, GIF and WebP in base64; shorter texts may be words.
_PICTURE = rf"(?:iVBORw0KGgo|/9j/|\\/9j\\/|_9j_|R0lGOD[dl]h|UklGR)(?={_ALPHABET}{{40}}){_ENCODED}"
_DATA_URL = (
    r"data:(?P<type>[\w.+-]+(?:\\?/[\w.+-]+)?)?(?:;[\w.=+-]{0,200}){0,5};base64,"
    rf"(?P<data>{_ENCODED})"
)
_PICTURE_START = re.compile(rf"\s*{_PICTURE}")
_FOUND = re.compile(rf"{_DATA_URL}|(?<![A-Za-z0-9+/_-])(?P<picture>{_PICTURE})")
_BLANKS = re.compile(r"\s+|\\[rn]|\\(?=/)")
_PREFIX = re.compile(r"\s*data:[^,]{0,200};base64,", re.IGNORECASE)
_TEXTS = ("text/", "application/json", "application/xml")
_URL_ALPHABET = str.maketrans("-_", "+/")


class EncodedFile(NamedTuple):
    """A file in a text: its place with the prefix, its base64, and its type, "" if not given."""

    start: int
    end: int
    data: str
    media_type: str


def find_encoded(text: str) -> Iterator[EncodedFile]:
    """Yield the non-text files of a text in order. JSON escapes are understood."""
    for found in _FOUND.finditer(text):
        media_type = (found["type"] or "text/plain").replace("\\", "") if found["data"] else ""
        if not media_type.startswith(_TEXTS):
            data = found["data"] or found["picture"]
            yield EncodedFile(found.start(), found.end(), data, media_type)


def is_picture_text(data: str) -> bool:
    """Return True for base64 that begins like a picture."""
    return _PICTURE_START.match(data) is not None


def decoded(data: str) -> bytes:
    """Return the bytes of base64 as servers write it.

    It may have line ends, the prefix of a data URL, the alphabet of URLs, escapes of JSON, or no
    padding.

    Raises:
        ValueError: it is not base64.
    """
    plain = _BLANKS.sub("", _PREFIX.sub("", data, count=1)).rstrip("=")
    plain = plain.translate(_URL_ALPHABET)
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
