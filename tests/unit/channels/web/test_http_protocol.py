"""Event streams without an HTTP connection."""

from typing import Any

from internal.channels.web.http_protocol import AsgiTransport
from internal.channels.web.sse import encode_chunk


async def test_chunks_are_sent_without_their_transfer_coding() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    transport = AsgiTransport(send)
    body = b"id: k3x9ap-1\r\ndata: {}\n\n"
    await transport.write_chunk(encode_chunk(body))
    assert not transport.is_writing
    assert sent == [{"type": "http.response.body", "body": body, "more_body": True}]
