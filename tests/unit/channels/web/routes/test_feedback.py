"""Routes for the feedback of people."""

from tests.support.web_calls import Call


async def test_without_feedback_the_list_is_empty(call: Call) -> None:
    assert (await call("GET", "/api/feedback")).json() == {"feedback": []}
    assert (await call("GET", "/api/feedback?limit=0")).status == 400
