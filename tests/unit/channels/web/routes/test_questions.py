"""Routes for questions."""

from tests.support.web_calls import Call


async def test_no_questions_are_open_without_runs(call: Call) -> None:
    reply = await call("GET", "/api/questions?status=open")
    assert reply.json() == {"questions": [], "next": None}
    assert (await call("GET", "/api/questions?cursor=question-x")).status == 404
    assert (await call("GET", "/api/questions/question-x")).status == 404
