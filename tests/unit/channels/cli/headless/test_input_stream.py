"""Lines of standard input, and the messages in them."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.channels.cli.headless.input_stream import (
    InputError,
    InputMessage,
    parse_message,
    read_lines,
)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "task", "text": "a"}, InputMessage("task", "a")),
        (
            {"type": "task", "text": "a", "files": ["b", "c"]},
            InputMessage("task", "a", ("b", "c")),
        ),
        ({"type": "steer", "text": "a"}, InputMessage("steer", "a")),
        ({"type": "stop"}, InputMessage("stop")),
        (
            {"type": "answer", "question_id": "q", "answer": {"decision": "approve"}},
            InputMessage("answer", answer={"decision": "approve"}, question_id="q"),
        ),
    ],
)
def test_each_type_has_its_fields(fields: Any, message: InputMessage) -> None:
    assert parse_message(json.dumps(fields).encode()) == message


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 50_000, "not JSON"),
        (b"1", "object with a type"),
        (b'{"type": ["task"]}', "object with a type"),
        (b'{"type": "task"}', "needs text"),
        (b'{"type": "task", "text": " "}', "not be blank"),
        (b'{"type": "task", "text": 1}', "text must be text"),
        (b'{"type": "task", "text": "a", "files": [1]}', "list of paths"),
        (b'{"type": "steer", "text": "a", "files": []}', "no field 'files'"),
        (b'{"type": "answer", "answer": "yes"}', "answer must be an object"),
        (b'{"type": "answer"}', "needs answer"),
    ],
)
def test_other_lines_are_explained(line: bytes, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_message(line)


nested = st.recursive(st.text() | st.integers(), st.lists)


@given(st.binary() | nested.map(json.dumps).map(str.encode))
def test_no_line_raises_anything_else(line: bytes) -> None:
    with suppress(InputError):
        assert parse_message(line).kind


def test_long_lines_are_left_out_and_the_last_one_needs_no_end(tmp_path: Path) -> None:
    long = b"x" * 1_000_001
    path = tmp_path / "lines"
    path.write_bytes(b"\n".join([b"a", long, long + long, b"", b"b"]))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert list(read_lines(descriptor)) == [b"a", None, None, b"", b"b"]
    finally:
        os.close(descriptor)
