"""Messages in the lines of servers."""

import json
from typing import Any

import pytest

from internal.mcp.message_parser import DamagedMessage, MessageParser

ANSWER: dict[str, Any] = {"jsonrpc": "2.0", "id": 3, "result": {"a": "b"}}
LINE = json.dumps(ANSWER).encode()


def parse_all(*lines: bytes) -> list[Any]:
    parser = MessageParser()
    return [parser.parse(line) for line in lines]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (LINE, [ANSWER]),
        (b"\xef\xbb\xbf" + LINE + b"\r", [ANSWER]),
        (LINE.replace(b'"b"', b'"\xe9\t"'), [{**ANSWER, "result": {"a": "\ufffd\t"}}]),
        (LINE.replace(b'"b"', b'"\\ud800"'), [{**ANSWER, "result": {"a": "\ufffd"}}]),
        (LINE.replace(b'"b"', b"NaN"), [{**ANSWER, "result": {"a": None}}]),
        (b'{"id": 3, "result": {"a": "b"}, "error": null}', [ANSWER]),
        (b'{"jsonrpc": "2.0", "id": 3, "result": null}', [{**ANSWER, "result": {}}]),
        (b"[" + LINE + b', {"level": "info"}, ' + LINE + b"]", [ANSWER, ANSWER]),
        (b"INFO calling " + LINE + b" done", [ANSWER]),
        (LINE + LINE, [ANSWER, ANSWER]),
        (
            b'{"jsonrpc": "2.0", "method": "m", "params": null, "id": null}',
            [{"jsonrpc": "2.0", "method": "m"}],
        ),
        (
            b'{"jsonrpc": "2.0", "id": 3, "error": "no"}',
            [{"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "no"}}],
        ),
    ],
)
def test_messages_are_read_leniently(line: bytes, found: list[Any]) -> None:
    assert parse_all(line) == [found]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b'received {"jsonrpc": "2.0", "id": 3, "method": "m"}',
        b'received {"jsonrpc": "2.0", "id": 3',
        b'{"jsonrpc": "2.0", "id": 3, "method": "m", "par',
        b"Server started",
        b"[info] ready",
        b"{not json",
        b'{"level": 3, "error": "x"}',
        b"7",
    ],
)
def test_what_loggers_write_is_no_message(line: bytes) -> None:
    assert parse_all(line, LINE) == [None, [ANSWER]]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (LINE[:-4], 3),
        (LINE.replace(b"3", b'"x"')[:-4], "x"),
        (LINE.replace(b'"', b"'"), 3),
        (b'{"jsonrpc": "2.0", "result": tru', None),
    ],
)
def test_a_damaged_message_names_its_request(line: bytes, number: int | str | None) -> None:
    (found,) = parse_all(line)
    assert found == DamagedMessage(number, line.decode())


def test_a_message_may_have_several_lines() -> None:
    written = json.dumps(ANSWER, indent=2).encode().splitlines()
    assert parse_all(*written) == [None] * (len(written) - 1) + [[ANSWER]]
    logged = [b"{", b"  level: 'info'", b"}"]
    assert parse_all(*logged, LINE) == [None, None, None, [ANSWER]]
    assert parse_all(b"{", LINE, *written) == [None, [ANSWER]] + [None] * (len(written) - 1) + [
        [ANSWER]
    ]
