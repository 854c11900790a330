"""The encoding of a text: by its mark, by its declaration, UTF-8, then a guess."""

import codecs
import re
from typing import Literal, NamedTuple

from internal.text_encodings.declarations import HEAD_BYTES, declared_codec
from internal.text_encodings.guess import guess_codec, is_escaped_japanese
from internal.text_encodings.labels import name_of

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Beginnings of text that may contain NUL bytes, and its encoding."""

_MAX_SAMPLE_BYTES = 32_768
_MAX_INVALID = 2_000
_CONTINUATION_BYTES = range(0x80, 0xC0)
_MAX_CONTINUATION = 3
_MIN_TORN_BYTES = 2
_ESCAPED = re.compile("[\udc80-\udcff]")
_TWO_BYTES, _MORE_BYTES = (
    re.compile("[\x80-\u07ff]"),
    re.compile("[\u0800-\ud7ff\ue000-\U0010ffff]"),
)
_HIGH = re.compile(rb"[\x80-\xff]")
_WIDE_PROBE_BYTES = 2_048
_MIN_WIDE_UNITS = 4
_MIN_WIDE_SHARE, _MAX_WIDE_SHARE = 0.4, 0.02


class TextEncoding(NamedTuple):
    """An encoding: Python's codec, and how it is known."""

    codec: str
    source: Literal["mark", "declared", "content", "guess"] = "content"

    @property
    def name(self) -> str:
        """The name that people and models read, such as Windows-1252."""
        return name_of(self.codec)

    @property
    def is_utf8(self) -> bool:
        """True for UTF-8, with a mark or without."""
        return self.codec in {"utf-8", "utf-8-sig"}

    @property
    def remark(self) -> str:
        """The line above a text with its encoding, "" for UTF-8."""
        if self.is_utf8:
            return ""
        if self.source == "guess":
            return f"[Encoding: {self.name}, which is a guess: names and signs may be wrong]"
        return f"[Encoding: {self.name}]"


UTF_8 = TextEncoding("utf-8")


def detect(content: bytes, declared: str = "") -> TextEncoding:
    """Return the encoding of a whole text.

    `declared` is a codec that was named beside it, such as in a header of HTTP or mail.
    """
    if b"\x1b$" not in content and b"\0" not in content and _is_plain_utf8(content, declared):
        return UTF_8 if marked_codec(content) is None else TextEncoding("utf-8-sig", "mark")
    detector = EncodingDetector(declared)
    detector.feed(content)
    return detector.result()


def _is_plain_utf8(content: bytes, declared: str) -> bool:
    """Return True for UTF-8 without any sign of another encoding; the fast path."""
    if content.isascii() and b"~{" not in content:  # as characters begin in HZ
        return True
    if declared or declared_codec(content):
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def marked_codec(head: bytes) -> str | None:
    """Return the codec of a text that begins with a byte order mark, else None."""
    return next((codec for mark, codec in BYTE_ORDER_MARKS if head.startswith(mark)), None)


def wide_codec(head: bytes) -> str:
    """Return the codec of UTF-16 without a mark, "" for anything else.

    Only mostly Latin text is found: half of its bytes are NUL, and all at even or odd places.
    """
    probe = head[: min(len(head) & ~1, _WIDE_PROBE_BYTES)]
    units = len(probe) // 2
    if units < _MIN_WIDE_UNITS or b"\0" not in probe:
        return ""
    even, odd = probe[::2].count(0) / units, probe[1::2].count(0) / units
    if odd >= _MIN_WIDE_SHARE and even <= _MAX_WIDE_SHARE:
        return "utf-16-le"
    return "utf-16-be" if even >= _MIN_WIDE_SHARE and odd <= _MAX_WIDE_SHARE else ""


class EncodingDetector:
    """Detects the encoding of a text that arrives in chunks; keeps a bounded part of it.

    Args:
        declared: the codec that was named beside the text, such as in a header of HTTP.
    """

    def __init__(self, declared: str = "") -> None:
        self._declared = declared
        self._head = b""
        self._utf8 = _Utf8Evidence()
        self._sample = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the text."""
        if len(self._head) < HEAD_BYTES:
            self._head += chunk[: HEAD_BYTES - len(self._head)]
        self._utf8.feed(chunk)
        if len(self._sample) < _MAX_SAMPLE_BYTES and not chunk.isascii():
            self._take_sample(chunk)

    def result(self) -> TextEncoding:
        """Return the encoding of the text."""
        if marked := marked_codec(self._head):
            return TextEncoding(marked, "mark")
        if wide := wide_codec(self._head):
            return TextEncoding(wide, "guess")
        if declared := self._fitting_declaration():
            return TextEncoding(declared, "declared")
        if self._utf8.is_likely():
            escaped = not self._sample and is_escaped_japanese(self._head)
            return TextEncoding("iso2022_jp", "guess") if escaped else UTF_8
        return TextEncoding(guess_codec(bytes(self._sample)), "guess")

    def _fitting_declaration(self) -> str:
        """Return the declared codec, "" if the text shows that it is wrong.

        A file that was converted to UTF-8 often still declares its former encoding.
        """
        codec = self._declared or declared_codec(self._head) or ""
        if codec in {"", "utf-8", "utf-8-sig"} or self._utf8.is_certain():
            return ""
        sample = bytes(self._sample)
        if codec.startswith(("utf-16", "utf-32")):  # lines may begin within a character
            sample = self._head
            if b"\0" not in sample and sample.isascii():
                return ""
        decoder = codecs.getincrementaldecoder(codec)()
        try:
            decoder.decode(sample)
        except UnicodeDecodeError as error:
            # single damaged bytes do not make it another encoding, and a text may begin torn
            is_damaged = len(sample.decode(codec, "ignore")) * 20 > len(sample) * 9
            return codec if is_damaged and error.start > 0 else ""
        except (LookupError, ValueError):
            return ""
        return codec

    def _take_sample(self, chunk: bytes) -> None:
        """Keep the lines with bytes beyond ASCII: a line end is never a half of a character."""
        at = 0
        while len(self._sample) < _MAX_SAMPLE_BYTES and (found := _HIGH.search(chunk, at)):
            start = max(chunk.rfind(b"\n", at, found.start()) + 1, at)
            end = chunk.find(b"\n", found.start()) + 1 or len(chunk)
            start = max(start, found.start() - 200)
            self._sample += chunk[start : min(end, start + _MAX_SAMPLE_BYTES)]
            at = end


class _Utf8Evidence:
    """Counts the characters beyond ASCII that are UTF-8, and the bytes that are not."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._short = self._long = self._invalid = self._torn_start = 0
        self._is_start = True

    def feed(self, chunk: bytes) -> None:
        if self._invalid > _MAX_INVALID + self._long:
            return
        pending = self._decoder.getstate()[0]
        if chunk.isascii() and not pending:
            self._is_start = self._is_start and not chunk
            return
        text = self._decoder.decode(self._without_torn_start(chunk))
        self._invalid += len(_ESCAPED.findall(text))
        self._short += len(_TWO_BYTES.findall(text))
        self._long += len(_MORE_BYTES.findall(text))

    def is_certain(self) -> bool:
        """Return True for a whole text in UTF-8 that is hardly anything else."""
        return not self._invalid and bool(self._long or self._short > 1)

    def is_likely(self) -> bool:
        """Return True for UTF-8, also if it begins or ends torn, or single bytes are damaged."""
        torn = len(self._decoder.getstate()[0])
        if not self._invalid and not self._short + self._long:
            return not self._torn_start and torn in {0, *range(_MIN_TORN_BYTES, 4)}
        return self._short + 3 * self._long >= 3 * self._invalid

    def _without_torn_start(self, chunk: bytes) -> bytes:
        if not self._is_start:
            return chunk
        self._is_start = not chunk
        torn = 0
        while torn < min(_MAX_CONTINUATION, len(chunk)) and chunk[torn] in _CONTINUATION_BYTES:
            torn += 1
        self._torn_start = torn
        return chunk[torn:]
