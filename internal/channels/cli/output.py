"""Standard output and standard error as the terminal door uses them. Standard library only.

Standard output carries the answer or JSON, all else goes to standard error. Text that came from a
model or a server never reaches a terminal with control characters in it.
"""

import os
import re
import select
from contextlib import suppress

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and newline: ESC begins every sequence
    r"\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # bidi, separators, blanks
    r"\ud800-\udfff\U000e0000-\U000e007f]"  # lone surrogates, and tags that nobody sees
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Output:
    """Standard output. A pipe gets exactly what is written, a terminal a safe form of it."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._terminal = os.isatty(descriptor)

    def write(self, data: bytes) -> None:
        """Write all of it, waiting for a slow reader.

        Raises:
            BrokenPipeError: the reader is gone.
            OSError: it cannot be written, on a full disk say.
        """
        if self._terminal:
            data = sanitize_terminal(data.decode("utf-8", "replace")).encode()
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # a pipe that its reader made non-blocking
                select.select([], [self._descriptor], [])


def print_error(sentence: str) -> None:
    """Write a line to standard error, whatever it holds. Nobody listening is no error."""
    with suppress(OSError):
        os.write(2, f"{sanitize_terminal(sentence)}\n".encode())


def sanitize_terminal(text: str) -> str:
    """Return text that moves no cursor and hides nothing: an ESC is shown as its JSON escape.

    The form is that of JSON, so that JSON stays what it is.
    """
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def replace_surrogates(text: str) -> str:
    """Return text that UTF-8 can carry: a lone surrogate becomes U+FFFD."""
    return _SURROGATE.sub("�", text)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
