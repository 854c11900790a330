"""The stream parser of the terminal."""

from hypothesis import given
from hypothesis import strategies as st

from internal.channels.cli.transports.sse import StreamFrame, StreamParser

STREAM = (
    "retry: 2000\n\n"
    "event: connected\ndata: {}\n\n"
    'id: abc-1\nevent: a.b\ndata: {"text":"点"}\n\n'
    ": a comment\nid: abc-2\n\n"
    "event: delta\r\ndata: one\r\ndata:two\r\n\r\n"
).encode()
FRAMES = [
    StreamFrame(None, "message", b""),
    StreamFrame(None, "connected", b"{}"),
    StreamFrame("abc-1", "a.b", '{"text":"点"}'.encode()),
    StreamFrame("abc-2", "message", b""),
    StreamFrame(None, "delta", b"one\ntwo"),
]


@given(st.lists(st.integers(1, len(STREAM) - 1), unique=True).map(sorted))
def test_frames_do_not_depend_on_chunk_boundaries(cuts: list[int]) -> None:
    parser = StreamParser()
    pieces = [STREAM[a:b] for a, b in zip([0, *cuts], [*cuts, len(STREAM)], strict=True)]
    assert [frame for piece in pieces for frame in parser.feed(piece)] == FRAMES


def test_incomplete_frame_is_not_returned() -> None:
    assert list(StreamParser().feed(b"data: half\n")) == []
