"""Routes for sessions."""

from tests.support.web_calls import Call


async def test_titles_are_stored_on_one_line(call: Call) -> None:
    created = await call("POST", "/api/sessions", {"title": " a\n b\u202e "})
    session_id, title = created.json()["session_id"], created.json()["title"]
    assert title == "a b"
    path = f"/api/sessions/{session_id}"
    assert (await call("PATCH", path, {"title": " \n"})).status == 400
    assert (await call("PATCH", path, {"title": "\u202e"})).json()["title"] == ""


async def test_an_invalid_cursor_is_rejected(call: Call) -> None:
    assert (await call("GET", "/api/sessions?cursor=session-x")).status == 404
    created = (await call("POST", "/api/sessions", {})).json()["session_id"]
    assert (await call("GET", f"/api/sessions/{created}/messages?cursor=x")).status == 400
    assert (await call("GET", f"/api/sessions/{created}/events?after=zzzzzz-1")).status == 410
