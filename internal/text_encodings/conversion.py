"""Decoding of texts, and encoding again without a change to anything else."""

import codecs

from internal.text_encodings.detection import TextEncoding, detect, wide_codec


class NotEncodable(Exception):
    """A text has a character that its encoding has not; `character` is the first one."""

    def __init__(self, character: str, encoding: TextEncoding) -> None:
        super().__init__(f"{encoding.name} has no {character!r}")
        self.character = character
        self.encoding = encoding


def decode_utf8(content: bytes) -> str | None:
    """Return the text of valid UTF-8, without its mark; None if it is anything else.

    The fast path for most files: nothing else is checked.
    """
    if b"\x1b$" in content or (b"\0" in content and wide_codec(content)):
        return None if not detect(content).is_utf8 else content.decode("utf-8-sig", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def decode(content: bytes, declared: str = "") -> tuple[str, TextEncoding]:
    """Return a text and its encoding. Invalid bytes become U+FFFD."""
    encoding = detect(content, declared)
    return content.decode(encoding.codec, "replace"), encoding


def decode_exactly(content: bytes) -> tuple[str, TextEncoding] | None:
    """Return a text that `encode_exactly` turns into the same bytes again; None if there is none.

    The byte order mark does not belong to the text. Bytes that are not valid become lone
    surrogates.
    """
    encoding = detect(content)
    mark = _mark_of(content, encoding)
    codec = _plain_codec(content, encoding)
    try:
        text = content[len(mark) :].decode(codec, "surrogateescape")
        if mark + text.encode(codec, "surrogateescape") == content:
            return text, encoding
    except UnicodeError:
        pass
    return None


def encode_exactly(text: str, encoding: TextEncoding, before: bytes) -> bytes:
    """Return a text in the encoding that the bytes before it were in, with their mark.

    Raises:
        NotEncodable: the encoding lacks a character.
    """
    codec = _plain_codec(before, encoding)
    try:
        return _mark_of(before, encoding) + text.encode(codec, "surrogateescape")
    except UnicodeEncodeError as error:
        raise NotEncodable(text[error.start], encoding) from error


def _mark_of(content: bytes, encoding: TextEncoding) -> bytes:
    if encoding.source != "mark":
        return b""
    return content[: {"utf-8-sig": 3, "utf-16": 2, "utf-32": 4}[encoding.codec]]


def _plain_codec(content: bytes, encoding: TextEncoding) -> str:
    """Return the codec for the bytes after the mark."""
    if encoding.codec in {"utf-16", "utf-32"}:
        is_little = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF32_LE))
        return f"{encoding.codec}-{'le' if is_little else 'be'}"
    return encoding.codec.removesuffix("-sig")
