"""Terminal input and output: whole frames, whole pastes, and restoring the terminal at the end."""

import fcntl
import os
import select
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from internal.config.terminal_env import TerminalFacts

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronised output: a terminal that supports it shows everything between the two at once."""
_SAVE_TITLE, _RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"
# resets synchronised output, bracketed paste, hidden cursor, disabled wrapping and colours
_SANE = b"\x1b[?2026l\x1b[?2004l\x1b[?25h\x1b[?7h\x1b[0m"
_WITHOUT_FRAMES = {"linux", "eterm-color"}


class FrameOutput(Vt100_Output):
    """Writes each frame at once. `gone` is called when the terminal can no longer be written to.

    The cursor position is never requested: a late response would end up in the shell.
    """

    def __init__(
        self,
        stdout: TextIO,
        facts: TerminalFacts,
        depth: ColorDepth | None,
        gone: Callable[[OSError], None],
    ) -> None:
        term = facts.term
        self.reflows = facts.reflows
        """True if the terminal wraps its rows again when its window becomes narrower."""
        self._descriptor = stdout.fileno()
        super().__init__(
            stdout, self._size, term, default_color_depth=depth, enable_bell=False, enable_cpr=False
        )
        self._frames = term not in _WITHOUT_FRAMES
        self._gone = gone
        self._has_title = False
        self._frame_size: Size | None = None

    def hold(self) -> None:
        """Start a frame: nothing is written until `release`, and the size stays the same."""
        self._frame_size = self._window_size()

    def release(self) -> None:
        """Write the frame."""
        self._frame_size = None
        if self._buffer and self._frames:
            self._buffer.insert(0, _BEGIN)
            self._buffer.append(_END)
        self.flush()

    def call_attention(self, sentence: str) -> None:
        """Ring the bell; where the terminal takes frames, also notify and set the title.

        `sentence` must not contain control characters.
        """
        if self._frames:
            self.write_raw("" if self._has_title else _SAVE_TITLE)
            self.write_raw(f"\x1b]9;{sentence}\x07\x1b]2;{sentence}\x07")
            self._has_title = True
        self.write_raw("\x07")
        self.flush()

    def reset_title(self) -> None:
        """Restore the title that `call_attention` replaced."""
        if self._has_title:
            self._has_title = False
            self.write_raw(_RESTORE_TITLE)
            self.flush()

    def flush(self) -> None:
        """Write the whole buffer, waiting for a slow terminal."""
        if self._frame_size is not None or not self._buffer:
            return
        data = "".join(self._buffer).encode("utf-8", "replace")
        self._buffer.clear()
        try:
            while data:
                data = _written(self._descriptor, data)
        except OSError as error:
            self._gone(error)

    def _size(self) -> Size:
        # a window that changes while a frame is drawn counts from the next frame on
        return self._frame_size or self._window_size()

    def _window_size(self) -> Size:
        size = b""
        with suppress(OSError):
            size = fcntl.ioctl(self._descriptor, termios.TIOCGWINSZ, b"\0" * 8)
        rows, columns = struct.unpack("hhhh", size)[:2] if size else (0, 0)
        return Size(rows=rows or 24, columns=columns or 80)


class PasteInput(Vt100Input):
    """Reads keys. The end mark of a paste is searched only in new input, so megabytes stay fast."""

    def __init__(self, stdin: TextIO) -> None:
        super().__init__(stdin)
        self._pasted: list[str] | None = None
        self._last = ""

    def read_keys(self) -> list[KeyPress]:
        """Return the pressed keys; a paste is one key."""
        data = self.stdin_reader.read(65_536)
        while data:
            data = self._take(data) if self._pasted is None else self._gather(self._pasted, data)
        keys, self._buffer = self._buffer, []
        return keys

    def _take(self, data: str) -> str:
        before, begun, rest = data.partition(_PASTE_BEGIN)
        self.vt100_parser.feed(before)
        if begun:
            self._pasted, self._last = [], ""
        return rest

    def _gather(self, pasted: list[str], data: str) -> str:
        # the end mark may be split over two reads
        torn = len(self._last)
        text, ended, rest = (self._last + data).partition(_PASTE_END)
        if not ended:
            pasted.append(data)
            self._last = (self._last + data)[-len(_PASTE_END) + 1 :]
            return ""
        whole = "".join(pasted)
        whole = whole[: len(whole) - torn] + text if torn else whole + text
        self._pasted = None
        self._buffer.append(KeyPress(Keys.BracketedPaste, whole))
        return rest


class TerminalRestorer:
    """Stores the terminal settings and restores them, however the session ends."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._before = termios.tcgetattr(stdin)

    def restore(self, final_output: str = "") -> None:
        """Restore the terminal. Never blocks and never raises: signal handlers call it."""
        with suppress(termios.error):
            termios.tcsetattr(self._stdin, termios.TCSANOW, self._before)
        with suppress(OSError):
            if select.select([], [self._stdout], [], 0)[1]:
                os.write(self._stdout, _SANE + final_output.encode())


def _written(descriptor: int, data: bytes) -> bytes:
    """Write as much as the terminal accepts now and return the rest."""
    try:
        return data[os.write(descriptor, data) :]
    except BlockingIOError:
        select.select([], [descriptor], [])
        return data
