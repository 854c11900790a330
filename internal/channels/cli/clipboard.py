"""The clipboard, read and written with a program of the desktop."""

import asyncio
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress

from internal.channels.cli.input_files import media_type_of

TIMEOUT_SECONDS = 5.0
MAX_PICTURE_BYTES = 20_000_000
_PROGRAMS: tuple[Sequence[str], ...] = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
_WRITERS: tuple[Sequence[str], ...] = (
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("pbcopy",),
)


class NoPicture(Exception):
    """There is no picture to paste. `reason` is the key of a message."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def read_picture(timeout_seconds: float = TIMEOUT_SECONDS) -> bytes:
    """Return the picture in the clipboard as PNG; each program gets `timeout_seconds`.

    Raises:
        NoPicture: there is none, it is too large, or no program can read it.
    """
    installed = [program for program in _PROGRAMS if shutil.which(program[0])]
    if not installed:
        raise NoPicture("no_clipboard_program")
    for program in installed:
        content = await _output_of(program, timeout_seconds)
        if len(content) > MAX_PICTURE_BYTES:
            raise NoPicture("picture_too_large")
        if media_type_of("", content) == "image/png":
            return content
    raise NoPicture("no_picture")


async def copy_text(text: str, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """Copy a text with a program of the desktop. Return its name, "" if none could copy it."""
    for program in _WRITERS:
        if not shutil.which(program[0]):
            continue
        process = await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # it may stay, to own the clipboard
        )
        try:
            async with asyncio.timeout(timeout_seconds):
                await process.communicate(text.encode("utf-8", "replace"))
        except TimeoutError:
            process.kill()
            await process.wait()
        if process.returncode == 0:
            return program[0]
    return ""


async def _output_of(program: Sequence[str], timeout_seconds: float) -> bytes:
    """Return the output of a program, at most one byte more than the limit of a picture."""
    process = await asyncio.create_subprocess_exec(
        *program,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # a group of its own, to be ended together
    )
    output = process.stdout
    assert output is not None  # noqa: S101 - it is a pipe
    content = bytearray()
    try:
        async with asyncio.timeout(timeout_seconds):
            while len(content) <= MAX_PICTURE_BYTES and (piece := await output.read(65_536)):
                content += piece
            if len(content) <= MAX_PICTURE_BYTES and await process.wait():
                return b""
    except TimeoutError:
        raise NoPicture("clipboard_timeout") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what it started
            await process.communicate()  # read to the end, or the pipe stays open
    return bytes(content)
