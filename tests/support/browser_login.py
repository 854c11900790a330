"""Logins as a browser makes them: with a cookie and a login key."""

from typing import NamedTuple

from tests.support.http_client import HttpClient
from tests.support.web_app import WebApp

NOBODY = {"authorization": None}


class BrowserLogin(NamedTuple):
    """The secrets of a login; `cookie` is the whole header."""

    cookie: str
    key: str

    def headers(self, client: HttpClient, **more: str | None) -> dict[str, str | None]:
        """Return the headers of a request that a page of the gateway sends."""
        given = {"origin": f"http://127.0.0.1:{client.port}", **more}
        secrets = {"cookie": self.cookie, "x-larkspur-login-key": self.key}
        return {**NOBODY, **secrets, **given}


async def log_in(app: WebApp, **headers: str) -> BrowserLogin:
    """Log in with a new link."""
    code = {"code": app.server.link().partition("#code=")[2]}
    reply = await app.client.post("/api/login", code, {**NOBODY, **headers})
    assert reply.status == 200, reply
    return BrowserLogin(reply.headers["set-cookie"].partition(";")[0], reply.json()["key"])
