"""Event streams: their limit, and those without an HTTP connection."""

from typing import Any

import msgspec
import pytest

from internal.channels.web.errors import HttpError
from internal.channels.web.event_streams import AsgiTransport, EventStreams
from internal.channels.web.services import WebServices
from internal.channels.web.sse import encode_chunk


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
