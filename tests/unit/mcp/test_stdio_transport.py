"""Retained output of a server."""

import asyncio

import pytest

from internal.mcp.limits import MAX_MESSAGE_BYTES, ServerFailure
from internal.mcp.stdio_transport import MAX_LOGGED_CHARS, MessageLines, ServerLog


async def test_lines_are_joined_from_their_pieces() -> None:
    lines = MessageLines()
    waiting = asyncio.create_task(lines.next())
    lines.write(b"on")
    lines.write(b"e\ntwo\nthr")
    assert [await waiting, await lines.next()] == [b"one", b"two"]
    lines.close()
    assert await lines.next() is None
    assert lines.received_bytes == len(b"one\ntwo\nthr")


def test_messages_that_are_too_long_or_not_read_end_the_server() -> None:
    lines = MessageLines()
    with pytest.raises(ServerFailure, match="a message of more than"):
        lines.write(b"x" * (MAX_MESSAGE_BYTES + 1))
    unread, line = MessageLines(), b"x" * (MAX_MESSAGE_BYTES - 1) + b"\n"
    unread.write(line)
    unread.write(line)
    with pytest.raises(ServerFailure, match="faster than they can be read"):
        unread.write(line)


def test_the_end_of_the_log_is_kept_on_one_line() -> None:
    log = ServerLog("tested")
    log.write(b"one\n\ntwo\x1b[8m\nth")
    log.write(b"ree")
    log.finish()
    assert log.end == "one / two\\u001b[8m / three"
    log.write(b"x" * 10_000 + b"\n")
    assert len(log.end) <= MAX_LOGGED_CHARS
