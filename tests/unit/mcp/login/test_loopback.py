"""The listener for the answer of a browser."""

import asyncio

import pytest

from internal.mcp.limits import ServerFailure
from internal.mcp.login.loopback import listening
from tests.support.authorization_server import browse


async def send(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


async def test_the_answer_with_the_state_is_received() -> None:
    async with listening() as receiver:
        waiting = asyncio.create_task(receiver.receive("the-state"))
        await asyncio.sleep(0)
        query = "code=a%2Fb&state=the-state&iss=https%3A%2F%2Fauth.example"
        page = await browse(f"{receiver.redirect_uri}?{query}")
        answer = await waiting
    assert "You can close this window" in page
    assert (answer.code, answer.issuer, answer.error) == ("a/b", "https://auth.example", "")


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"GET /callback?code=1&state=wrong HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /callback HTTP/1.1\r\n\r\n", b"400"),
        (b"POST /callback?code=1&state=the-state HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /other?code=1&state=the-state HTTP/1.1\r\n\r\n", b"404"),
        (b"\xff\xfe\r\n\r\n", b"404"),
        (b"GET /" + b"x" * 50_000 + b" HTTP/1.1\r\n\r\n", b"404"),
    ],
)
async def test_other_requests_change_nothing(request_text: bytes, status: bytes) -> None:
    async with listening() as receiver:
        waiting = asyncio.create_task(receiver.receive("the-state"))
        await asyncio.sleep(0)
        answer = await send(receiver.port, request_text)
        assert not waiting.done()
        waiting.cancel()
    assert answer.split(b" ", 2)[1:2] == [status]


async def test_the_wait_ends() -> None:
    async with listening() as receiver:
        with pytest.raises(ServerFailure, match="nobody signed in within 0 minutes"):
            await receiver.receive("the-state", 0.0)
