"""Writing to standard output and standard error. Standard library only.

Standard output carries the answer or JSON, everything else goes to standard error. Control
characters in text from a model or a server never reach a terminal.
"""

import os
import re
import select
import sys
from contextlib import suppress

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    r"\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # bidi, separators, zero width
    r"\ud800-\udfff\U000e0000-\U000e007f]"  # lone surrogates, and invisible tag characters
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Output:
    """Standard output. A pipe receives the exact bytes, a terminal sanitized text."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._terminal = os.isatty(descriptor)

    def write(self, data: bytes) -> None:
        """Write all bytes; waits for a slow reader.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
            OSError: the write failed, for example because the disk is full.
        """
        if self._terminal:
            data = encode_for_terminal(sanitize_terminal(data.decode("utf-8", "replace")))
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # the reader made the pipe non-blocking
                select.select([], [self._descriptor], [])


def print_error(message: str) -> None:
    """Write a sanitized line to standard error. A failing write is ignored."""
    with suppress(OSError):
        text = f"{sanitize_terminal(message)}\n"
        os.write(2, encode_for_terminal(text) if os.isatty(2) else text.encode())


def print_aside(message: str) -> None:
    """Write a dim, sanitized line to standard error if that is a terminal."""
    if os.isatty(2):
        with suppress(OSError):
            os.write(2, encode_for_terminal(f"\x1b[2m{sanitize_terminal(message)}\x1b[22m\n"))


def encode_for_terminal(text: str) -> bytes:
    """Return a text in the encoding of the terminal, which the locale names; usually UTF-8.

    A character that it lacks is shown as its number.
    """
    encoding = getattr(sys.__stdout__, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace")


def sanitize_terminal(text: str) -> str:
    """Return text without control and invisible characters, which are shown as JSON escapes.

    JSON text stays valid JSON with the same value.
    """
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def replace_surrogates(text: str) -> str:
    """Return text that can be encoded as UTF-8: a lone surrogate becomes U+FFFD."""
    return _SURROGATE.sub("�", text)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
