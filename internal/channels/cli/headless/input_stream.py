"""Messages on standard input, one JSON object per line (`--input-format stream-json`)."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from internal.channels.cli.task_request import MAX_STDIN_BYTES

Kind = Literal["task", "steer", "answer", "stop"]

_CHUNK_BYTES = 65_536
_KINDS: tuple[Kind, ...] = get_args(Kind)
_FIELDS: Mapping[Kind, Mapping[str, type]] = {
    "task": {"text": str, "files": list},
    "steer": {"text": str},
    "answer": {"answer": dict, "question_id": str},
    "stop": {},
}
_REQUIRED = {"task": "text", "steer": "text", "answer": "answer", "stop": ""}
_NAMES: Mapping[type, str] = {str: "text", list: "a list", dict: "an object"}


class InputMessage(NamedTuple):
    """A message: a task, a message for the active task, an answer of a question, or a stop.

    `answer` is the body of `POST /api/questions/{id}/answer`; `question_id` "" stands for the only
    open question.
    """

    kind: Kind
    text: str = ""
    files: tuple[str, ...] = ()
    answer: Mapping[str, Any] = {}
    question_id: str = ""


class InputError(Exception):
    """A line cannot be used. The text is a sentence for people."""


def parse_message(line: bytes) -> InputMessage:
    """Return the message of a line.

    Raises:
        InputError: the line is not a JSON object with exactly the fields of its type.
    """
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("This is not JSON.") from None
    kind = fields.pop("type", None) if isinstance(fields, dict) else None
    if kind not in _KINDS:
        raise InputError(f"A message is an object with a type: {', '.join(_KINDS)}.")
    expected = _FIELDS[kind]
    for name, value in fields.items():
        if name not in expected:
            raise InputError(f"A message of type {kind} has no field {name[:80]!r}.")
        if not isinstance(value, expected[name]):
            raise InputError(f"{name} must be {_NAMES[expected[name]]}.")
    if not (_REQUIRED[kind] == "" or fields.get(_REQUIRED[kind])):
        raise InputError(f"A message of type {kind} needs {_REQUIRED[kind]}.")
    files = fields.pop("files", [])
    if not all(isinstance(path, str) for path in files):
        raise InputError("files must be a list of paths.")
    if "text" in fields and not fields["text"].strip():
        raise InputError("text must not be blank.")
    return InputMessage(kind, files=tuple(files), **fields)


def read_lines(descriptor: int) -> Iterator[bytes | None]:
    """Yield the lines of a stream without line endings; None replaces a line that is too long."""
    rest, is_too_long = b"", False
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield None if is_too_long or len(line) > MAX_STDIN_BYTES else line
            is_too_long = False
        if len(rest) > MAX_STDIN_BYTES:
            rest, is_too_long = b"", True
    if rest or is_too_long:
        yield None if is_too_long else rest


class InputReader:
    """Reads messages in a thread; passes each to `take`, and invalid lines to `reject`.

    Both get the number of the line, from 1.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        take: Callable[[int, InputMessage], None],
        reject: Callable[[int, str], None],
        end: Callable[[], None],
    ) -> None:
        self._descriptor = descriptor
        self._take, self._reject, self._end = take, reject, end
        self._thread = threading.Thread(target=self._read, name="standard-input", daemon=True)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def _read(self) -> None:
        try:
            for number, line in enumerate(read_lines(self._descriptor), 1):
                self._handle(number, line)
        except OSError as error:
            self._reject(0, f"Standard input cannot be read: {error.strerror}.")
        finally:
            self._end()

    def _handle(self, number: int, line: bytes | None) -> None:
        if line is None:
            self._reject(number, f"This line is longer than {MAX_STDIN_BYTES:,} bytes.")
        elif line.strip():
            try:
                message = parse_message(line)
            except InputError as error:
                self._reject(number, str(error))
            else:
                self._take(number, message)
