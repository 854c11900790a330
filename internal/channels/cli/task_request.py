"""The parts of a one-shot task, read from the command line. Standard library only."""

import os
import select
import stat
import sys
from typing import Literal, NamedTuple

from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.channels.cli.output import print_error, replace_surrogates

Format = Literal["text", "json", "stream-json"]

MAX_STDIN_BYTES = 1_000_000
"""Maximum size of standard input that becomes part of a task."""
_NOTICE_DELAY_SECONDS = 3.0


class Ids(NamedTuple):
    """The ids of a submitted task."""

    session_id: str
    task_id: str
    run_id: str


def decode_argument(text: str) -> str:
    """Return an argument as text; bytes that are not UTF-8 are decoded as they most likely are."""
    if any("\udc80" <= each <= "\udcff" for each in text):
        text = decode_input(text.encode("utf-8", "surrogateescape"))[0]
    return replace_surrogates(text)


def decode_input(content: bytes) -> tuple[str, str]:
    """Return a text, and a line about its encoding unless that is UTF-8."""
    try:
        return content.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        from internal.text_encodings.conversion import decode  # noqa: PLC0415 - few need it

        text, encoding = decode(content)
        return text, encoding.remark


def compose_task(prompt: str | None, piped: str) -> str:
    """Return the task: the prompt, followed by the piped text in a `<stdin>` block.

    Without a prompt the piped text is the task.

    Raises:
        CliExit: both are blank.
    """
    if not (prompt or piped).strip():
        raise CliExit(USAGE, 'The task is empty: larkspur -p "…", or pipe it to standard input.')
    if not prompt or not piped.strip():
        return prompt or piped
    # a closing tag inside would let piped text pass as the prompt
    inside = piped.replace("</stdin>", "<\\/stdin>").rstrip("\n")
    return f"{prompt}\n\n<stdin>\n{inside}\n</stdin>"


def read_stdin() -> str:
    """Read standard input to its end if it is a pipe, a socket or a file, else return "".

    Raises:
        CliExit: it is too long or cannot be read.
    """
    if sys.stdin is None or not _is_piped(0):
        return ""
    if not select.select([0], [], [], _NOTICE_DELAY_SECONDS)[0]:
        print_error("Waiting for standard input to end (use </dev/null to skip it) …")
    try:
        content = _read(0, MAX_STDIN_BYTES)
    except OSError as error:
        raise CliExit(USAGE, f"Standard input cannot be read: {error.strerror}.") from None
    if content is None:
        raise CliExit(
            USAGE,
            f"Standard input is longer than {MAX_STDIN_BYTES:,} bytes; attach it with -f.",
        )
    text, remark = decode_input(content)
    return f"{remark}\n{text}" if remark else text


def working_folder() -> str:
    """Return the current directory.

    Raises:
        CliExit: the directory was deleted, or its name is not UTF-8.
    """
    try:
        folder = os.getcwd()  # noqa: PTH109 - without the import of pathlib
        folder.encode()
    except OSError as error:
        raise CliExit(USAGE, f"The working folder cannot be used: {error.strerror}.") from None
    except UnicodeEncodeError:
        raise CliExit(USAGE, "The name of the working folder is not UTF-8.") from None
    return folder


def _read(descriptor: int, max_bytes: int) -> bytes | None:
    """Read to the end; return None if there are more than `max_bytes` bytes."""
    pieces: list[bytes] = []
    while piece := os.read(descriptor, 65_536):
        pieces.append(piece)
        max_bytes -= len(piece)
        if max_bytes < 0:
            return None
    return b"".join(pieces)


def _is_piped(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)
