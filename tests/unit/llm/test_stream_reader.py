"""Server-sent events and tool arguments, in chunks of any size."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.errors import ModelUnreachable
from internal.llm.stream_reader import (
    MAX_LINE_BYTES,
    EventDataReader,
    decode_event,
    parse_arguments,
)

LINES = st.sampled_from([b"data: a", b"data:\xff\xfe", b"event: x", b":", b"", b"\r", b"id\r"])


@given(st.lists(LINES, max_size=60), st.lists(st.integers(1, 50), max_size=60))
def test_events_do_not_depend_on_where_chunks_end(lines: list[bytes], sizes: list[int]) -> None:
    raw = b"\n".join(lines)
    at_once = EventDataReader().feed(raw)
    stream, start, found = EventDataReader(), 0, []
    for size in sizes:
        found += stream.feed(raw[start : start + size])
        start += size
    found += stream.feed(raw[start:])
    assert found == at_once


@given(st.lists(LINES, max_size=60), st.integers(1, 50))
def test_both_line_ends_give_the_same_events(lines: list[bytes], size: int) -> None:
    plain = [line.removesuffix(b"\r") for line in lines]
    stream, raw = EventDataReader(), b"".join(line + b"\r\n" for line in plain)
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
    found = [data for piece in pieces for data in stream.feed(piece)]
    assert found == EventDataReader().feed(b"".join(line + b"\n" for line in plain))


def test_an_event_may_have_many_lines_with_either_line_end() -> None:
    raw = b":ping\nevent: x\ndata: a\r\ndata:b\r\n\r\n\r\ndata: c\n\nretry: 1\n\ndata: never"
    assert EventDataReader().feed(raw) == [b"a\nb", b"c"]


@pytest.mark.parametrize("line", [b"<html>", b"\x00\xff", b'{"data": 1}', b" data: a"])
def test_a_line_that_is_no_field_is_an_error(line: bytes) -> None:
    with pytest.raises(ModelUnreachable, match="valid response"):
        EventDataReader().feed(b"data: a\n\n" + line + b"\n")


def test_a_line_beyond_the_size_limit_is_an_error() -> None:
    stream = EventDataReader()
    for _ in range(3):
        assert stream.feed(b"x" * (MAX_LINE_BYTES // 3)) == []
    with pytest.raises(ModelUnreachable):
        stream.feed(b"x")


@pytest.mark.parametrize(
    ("raw", "arguments", "malformed"),
    [
        ("", {}, None),
        (" \n", {}, None),
        ('{"a": [1, null]}', {"a": [1, None]}, None),
        ('{"a":"\x01"}', {"a": "\x01"}, None),
        ("[1]", {}, "[1]"),
        ('{"a": ', {}, '{"a": '),
        ("[" * 100_000, {}, "[" * 100_000),
    ],
    ids=["empty", "blank", "object", "control", "list", "incomplete", "nested"],
)
def test_arguments_that_are_not_an_object_are_kept_raw(
    raw: str, arguments: dict[str, object], malformed: str | None
) -> None:
    assert parse_arguments(raw) == (arguments, malformed)


class Event(msgspec.Struct):
    text: str


def test_an_event_is_decoded_with_broken_text_replaced() -> None:
    decode = msgspec.json.Decoder(Event).decode
    assert decode_event(b'{"text": "a\xff"}', decode, Event).text == "a\ufffd"
    for raw in (b"<html>", b'{"text": 7}', b"[" * 100_000):
        with pytest.raises(ModelUnreachable, match="valid response"):
            decode_event(raw, decode, Event)
