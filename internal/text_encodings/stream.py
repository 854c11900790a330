"""Decoding of output that arrives in chunks, whose encoding shows in the course of it."""

import codecs
import re

from internal.text_encodings.detection import UTF_8, TextEncoding, detect

_ESCAPED = re.compile("[\udc80-\udcff]")
_MAX_SEEN_BYTES = 65_536


class StreamDecoder:
    """Decodes output as UTF-8 until a byte is not, then in the encoding that it most likely is in.

    `seen` is output before the first chunk, which helps to detect the encoding.
    """

    def __init__(self, seen: bytes = b"") -> None:
        self._seen = bytearray(seen[-_MAX_SEEN_BYTES:])
        self.encoding = detect(bytes(self._seen))
        is_open = self.encoding.is_utf8
        codec = "utf-8" if is_open else self.encoding.codec
        errors = "strict" if is_open else "replace"
        self._decoder: codecs.IncrementalDecoder = codecs.getincrementaldecoder(codec)(errors)

    @property
    def pending(self) -> int:
        """The number of bytes at the end that are the beginning of a character."""
        return len(self._decoder.getstate()[0])

    def decode(self, chunk: bytes, *, final: bool = False) -> str:
        """Return a chunk as text; `final` is the last one."""
        held = self._decoder.getstate()[0]
        try:
            text = self._decoder.decode(chunk, final)
        except UnicodeDecodeError:
            self.encoding = detect(bytes(self._seen) + chunk)
            self._decoder = codecs.getincrementaldecoder(self.encoding.codec)("replace")
            return self._decoder.decode(held + chunk, final)
        if len(self._seen) < _MAX_SEEN_BYTES and self.encoding.is_utf8:
            self._seen += chunk[: _MAX_SEEN_BYTES - len(self._seen)]
        return text


def decode_escaped(*parts: str, is_binary: bool = False) -> tuple[list[str], TextEncoding]:
    """Return the parts of a text, in which bytes that are not UTF-8 are escaped, and its encoding.

    The bytes are escaped as by the error handler `surrogateescape`. Of binary data no encoding is
    guessed.
    """
    if is_binary or not any(map(_ESCAPED.search, parts)):
        return [_ESCAPED.sub("\ufffd", part) for part in parts], UTF_8
    encoded = [part.encode("utf-8", "surrogateescape") for part in parts]
    encoding = detect(b"".join(encoded))
    return [each.decode(encoding.codec, "replace") for each in encoded], encoding
