"""Event streams: their limit, and streams without an HTTP connection."""

from typing import Any

import msgspec
import pytest

from internal.agent.domain.events.envelope import INNER_EVENTS, EventRecord
from internal.agent.domain.ids import RunId, SessionId
from internal.channels.web.endpoints import StreamRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.event_streams import AsgiTransport, EventStreams, OpenStream
from internal.channels.web.http_protocol import HttpConnection
from internal.channels.web.middleware import ResponseSender
from internal.channels.web.requests import RequestContext
from internal.channels.web.services import WebServices
from internal.channels.web.sse import FrameRenderer, LiveFrames, encode_chunk
from tests.support.web_calls import connected


async def test_each_principal_has_a_limit_of_its_own(services: WebServices) -> None:
    settings = services.settings.model_copy(update={"streams_per_user": 1})
    streams = EventStreams(msgspec.structs.replace(services, settings=settings))
    with streams.reserve("ada"), streams.reserve("bo"):
        with pytest.raises(HttpError) as rejected, streams.reserve("ada"):
            pass
        assert rejected.value.status == 429
    with streams.reserve("ada"):
        pass


async def test_chunks_are_sent_without_their_transfer_coding() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    transport = AsgiTransport(send)
    body = b"id: k3x9ap-1\r\ndata: {}\n\n"
    await transport.write_chunk(encode_chunk(body))
    assert not transport.is_writing
    assert sent == [{"type": "http.response.body", "body": body, "more_body": True}]


async def test_a_stream_that_left_does_not_acknowledge_what_others_received() -> None:
    def event(position: int, name: str) -> EventRecord:
        return EventRecord(SessionId("session-1"), RunId("run-1"), name, b"{}", position)

    hidden = next(iter(INNER_EVENTS))
    renderer = FrameRenderer("k3x9ap")
    frames = LiveFrames(renderer, debug=False)
    async with connected() as (connection, _client), connected() as (another, _other_client):
        left, stayed = (opened(each, renderer, frames) for each in (connection, another))
        for stream in (left, stayed):
            stream.start_live(stream.stop_live)
        frames.encode([event(1, "workflow.node.started")])
        frames.encode([event(2, hidden)])
        assert [stream.filtered_position() for stream in (left, stayed)] == [2, 2]
        left.stop_live()
        frames.encode([event(3, hidden)])
        assert [stream.filtered_position() for stream in (left, stayed)] == [2, 3]
        frames.encode([event(4, "workflow.node.started")])
        assert [stream.filtered_position() for stream in (left, stayed)] == [2, 0]


def opened(connection: HttpConnection, renderer: FrameRenderer, frames: LiveFrames) -> OpenStream:
    async def send(_message: Any) -> None:
        raise AssertionError("nothing is sent")

    request = StreamRequest(None, None, debug=False)
    context = RequestContext({}, "request-1", is_public=False)
    sender = ResponseSender(send, "request-1")
    return OpenStream(
        request, connection, sender, context=context, renderer=renderer, frames=frames
    )
