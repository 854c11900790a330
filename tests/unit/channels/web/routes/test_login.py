"""Routes for login."""

from internal.channels.web.services import WebServices
from tests.support.web_calls import Call


async def test_a_link_logs_in_once(call: Call, services: WebServices) -> None:
    link = (await call("POST", "/api/links", {})).json()
    assert link["seconds"] == 300
    code = {"code": link["url"].partition("#code=")[2]}
    reply = await call("POST", "/api/login", code, authorization=None)
    assert reply.status == 200
    assert set(reply.json()) == {"key"}
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"larkspur-{services.settings.port}=")
    assert "HttpOnly" in cookie
    assert (await call("POST", "/api/login", code, authorization=None)).status == 403
