"""Whole frames, whole pastes, and the terminal as it was before, on a pseudo terminal."""

import os
import pty
import termios
import tty
from collections.abc import Iterator
from typing import NamedTuple, TextIO

import pytest
from prompt_toolkit.keys import Keys

from internal.channels.cli.repl.terminal_io import FrameOutput, PasteInput, TerminalRestorer
from internal.config.terminal_env import terminal_facts


class Terminal(NamedTuple):
    """`file` is the side of the program, `master` that of the person."""

    file: TextIO
    master: int

    def typed(self, text: str) -> None:
        os.write(self.master, text.encode())

    def shown(self) -> bytes:
        """Return the written bytes; a mark after them shows that all of them have arrived."""
        os.write(self.file.fileno(), b"\0")
        written = b""
        while not written.endswith(b"\0"):
            written += os.read(self.master, 65_536)
        return written[:-1]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    with os.fdopen(slave, encoding="utf-8") as file:
        yield Terminal(file, master)
    os.close(master)


def output(terminal: Terminal, term: str, errors: list[OSError]) -> FrameOutput:
    return FrameOutput(terminal.file, terminal_facts({"TERM": term}), None, errors.append)


def test_a_frame_is_written_at_once_as_synchronised_output(terminal: Terminal) -> None:
    screen = output(terminal, "xterm", [])
    screen.hold()
    screen.write("one")
    screen.flush()
    screen.write(" 模型")
    screen.release()
    assert terminal.shown().decode() == "\x1b[?2026hone 模型\x1b[?2026l"


def test_a_terminal_without_synchronised_output_gets_the_frame_alone(terminal: Terminal) -> None:
    screen = output(terminal, "linux", [])
    screen.hold()
    screen.write("one")
    screen.release()
    assert terminal.shown() == b"one"


def test_attention_rings_notifies_and_sets_the_title_once(terminal: Terminal) -> None:
    screen = output(terminal, "xterm", [])
    screen.call_attention("waits")
    screen.call_attention("done")
    screen.reset_title()
    screen.reset_title()
    assert terminal.shown().decode() == (
        "\x1b[22;2t\x1b]9;waits\x07\x1b]2;waits\x07\x07\x1b]9;done\x07\x1b]2;done\x07\x07\x1b[23;2t"
    )


def test_a_terminal_without_notifications_only_rings(terminal: Terminal) -> None:
    screen = output(terminal, "linux", [])
    screen.call_attention("waits")
    screen.reset_title()
    assert terminal.shown() == b"\x07"


def test_a_terminal_that_is_gone_is_reported(terminal: Terminal) -> None:
    errors: list[OSError] = []
    screen = output(terminal, "xterm", errors)
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, terminal.file.fileno())
    os.close(writing)
    screen.write("one")
    screen.flush()
    assert [type(error) for error in errors] == [BrokenPipeError]


def test_a_terminal_of_unknown_size_has_eighty_columns(terminal: Terminal) -> None:
    size = output(terminal, "xterm", []).get_size()
    assert (size.columns, size.rows) == (80, 24)


def test_a_frame_has_one_size_even_if_the_window_changes_meanwhile(terminal: Terminal) -> None:
    screen = output(terminal, "xterm", [])
    termios.tcsetwinsize(terminal.master, (24, 52))
    screen.hold()
    termios.tcsetwinsize(terminal.master, (20, 29))
    assert (screen.get_size().rows, screen.get_size().columns) == (24, 52)
    screen.release()
    assert (screen.get_size().rows, screen.get_size().columns) == (20, 29)


def test_keys_before_and_after_a_paste_are_keys(terminal: Terminal) -> None:
    keyboard = PasteInput(terminal.file)
    terminal.typed("a\x1b[200~one\rtwo\x1b[201~b")
    assert [(key.key, key.data) for key in keyboard.read_keys()] == [
        ("a", "a"),
        (Keys.BracketedPaste, "one\rtwo"),
        ("b", "b"),
    ]


@pytest.mark.parametrize("split", range(1, 6))
def test_a_paste_is_one_key_also_when_its_end_mark_is_split(terminal: Terminal, split: int) -> None:
    keyboard, end = PasteInput(terminal.file), "\x1b[201~"
    terminal.typed("\x1b[200~one ")
    assert keyboard.read_keys() == []
    terminal.typed("two" + end[:split])
    assert keyboard.read_keys() == []
    terminal.typed(end[split:] + "x")
    assert [key.data for key in keyboard.read_keys()] == ["one two", "x"]


def test_the_settings_and_modes_of_the_terminal_are_restored(terminal: Terminal) -> None:
    descriptor = terminal.file.fileno()
    before = termios.tcgetattr(descriptor)
    restorer = TerminalRestorer(descriptor, descriptor)
    changed = termios.tcgetattr(descriptor)
    changed[3] ^= termios.ISIG
    termios.tcsetattr(descriptor, termios.TCSANOW, changed)
    restorer.restore("bye")
    assert termios.tcgetattr(descriptor) == before
    shown = terminal.shown()
    assert b"\x1b[?25h" in shown
    assert shown.endswith(b"bye")


def test_restoring_a_closed_terminal_is_no_error(terminal: Terminal) -> None:
    reading, writing = os.pipe()
    restorer = TerminalRestorer(terminal.file.fileno(), writing)
    os.close(reading)
    restorer.restore()
    os.close(writing)
