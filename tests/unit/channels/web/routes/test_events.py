"""The route of the event stream."""

import pytest

from tests.support.web_calls import Call


@pytest.mark.parametrize(
    "query",
    ["", "session_id=a&sessions=b", "sessions=" + ",".join("a" * 101), "after=x&sessions=*"],
)
async def test_an_invalid_stream_request_is_rejected(call: Call, query: str) -> None:
    assert (await call("GET", f"/api/sse?{query}")).status == 400
