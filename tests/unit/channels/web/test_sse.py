"""Encoding of frames as bytes."""

import re

from internal.agent.domain.events.control import ReplayDone
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import RunId, SessionId
from internal.channels.web.sse import MAX_WRITE_BYTES, RETRY_MS, FrameRenderer, retry_ms


def frame(position: int, size: int = 10, event: str = "workflow.lifecycle.updated") -> EventRecord:
    json = b'{"x":"' + b"y" * size + b'"}'
    return EventRecord(SessionId("s"), RunId("r"), event, json, position)


def body(renderer: FrameRenderer, batch: list[EventRecord], *, debug: bool = False) -> bytes:
    """The chunks' contents, joined."""
    joined = b""
    for chunk in renderer.render_batch(batch, debug=debug).chunks:
        size, _, rest = chunk.partition(b"\r\n")
        assert rest.endswith(b"\r\n")
        assert len(rest) - 2 == int(size, 16)
        joined += rest[:-2]
    return joined


def test_a_frame_is_rendered_once_for_all_clients() -> None:
    renderer, one = FrameRenderer("k3x9ap"), frame(7)
    first = renderer.render_batch([one], debug=False)
    assert renderer.render_batch([one], debug=False) is first
    kept = one.rendered
    assert kept == b'id: k3x9ap-7\nevent: workflow.lifecycle.updated\ndata: {"x":"yyyyyyyyyy"}\n\n'
    renderer.render_batch([frame(8), one], debug=True)
    assert one.rendered is kept


def test_an_ephemeral_frame_has_no_id() -> None:
    assert body(FrameRenderer("k3x9ap"), [frame(0)]).startswith(b"event: ")


def test_the_positions_of_a_batch_include_debug_events() -> None:
    renderer = FrameRenderer("k3x9ap")
    batch = [frame(1), frame(0), frame(2, event="workflow.diagnostic.error"), frame(0)]
    plain, debug = (
        renderer.render_batch(batch, debug=False),
        renderer.render_batch(batch, debug=True),
    )
    assert (plain.last_position, plain.last_shown_position) == (2, 1)
    assert (debug.last_position, debug.last_shown_position) == (2, 2)
    hidden = renderer.render_batch([frame(3, event="workflow.diagnostic.error")], debug=False)
    assert (list(hidden.chunks), hidden.last_position, hidden.last_shown_position) == ([], 3, 0)
    control = renderer.render_batch([ReplayDone(head="k3x9ap-3")], debug=False)
    assert (control.last_position, control.last_shown_position) == (0, 0)


def test_a_large_batch_is_split_between_frames() -> None:
    batch = [frame(number, size=1000) for number in range(1, 500)]
    chunks = list(FrameRenderer("k3x9ap").render_batch(batch, debug=False).chunks)
    assert len(chunks) > 5
    assert max(map(len, chunks)) < MAX_WRITE_BYTES + 100
    ids = re.findall(rb"^id: k3x9ap-(\d+)$", body(FrameRenderer("k3x9ap"), batch), re.MULTILINE)
    assert [int(one) for one in ids] == list(range(1, 500))
    huge = list(FrameRenderer("k3x9ap").render_batch([frame(1, size=200_000)], debug=False).chunks)
    assert len(huge) == 1


def test_reconnection_delays_are_spread() -> None:
    drawn = {retry_ms() for _ in range(200)}
    assert min(drawn) >= RETRY_MS * 0.75
    assert max(drawn) <= RETRY_MS * 1.25
    assert len(drawn) > 50
