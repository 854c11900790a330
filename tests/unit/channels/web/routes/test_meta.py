"""Routes for health, identity, profiles and the page."""

from tests.unit.channels.web.conftest import Call


async def test_health_is_brief_without_authentication(call: Call) -> None:
    assert (await call("GET", "/health", authorization=None)).json() == {"status": "ok"}
    assert {"database", "dispatcher"} <= (await call("GET", "/health")).json().keys()


async def test_profiles_are_sorted_and_one_is_the_default(call: Call) -> None:
    reply = (await call("GET", "/api/profiles")).json()
    assert [profile["name"] for profile in reply["profiles"]] == ["brief", "default"]
    assert reply["default"] == "default"


async def test_a_page_that_is_not_built_is_reported(call: Call) -> None:
    reply = await call("GET", "/", authorization=None)
    assert (reply.status, reply.json()["error"]["code"]) == (503, "page_not_built")
