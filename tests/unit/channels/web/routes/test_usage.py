"""The route for token usage and cost."""

from tests.support.web_calls import Call


async def test_usage_without_runs_is_empty(call: Call) -> None:
    for by in ("day", "session", "model"):
        assert (await call("GET", f"/api/usage?by={by}")).json() == {"usage": []}
    assert (await call("GET", "/api/usage?by=mood")).status == 400
