"""Routes of logging in: a one-time code becomes a cookie that scripts cannot read."""

import math
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.responses import Response

from internal.agent.domain.errors import StoreUnavailable
from internal.channels.web.auth import CODE_SECONDS, LOGIN_SECONDS
from internal.channels.web.channel import WebDoor, WebSettings
from internal.channels.web.endpoints import Call
from internal.channels.web.errors import HttpRefusal
from internal.channels.web.guards import Exchange, cookie_name, origin_of
from internal.channels.web.schemas import Given, Nothing


class GivenCode(Given, frozen=True):
    """A one-time code."""

    code: str


class LinkView(msgspec.Struct, frozen=True):
    """An address that logs one browser in, once, for `seconds`."""

    url: str
    seconds: int


async def log_in(call: Call[Nothing, GivenCode]) -> Response:
    """Turn a one-time code into a cookie."""
    codes = call.door.logins.codes
    if wait := math.ceil(codes.wait()):
        sentence = f"Too many wrong codes; try again in {wait} s."
        raise HttpRefusal(429, "too_many_codes", sentence, {"retry-after": str(wait)})
    if not codes.take(call.body.code):
        raise HttpRefusal(
            403,
            "bad_code",
            "This code was used, is older than five minutes, or never was one: ask for a new link.",
        )
    try:
        value = call.door.logins.begin()
    except OSError as error:
        raise StoreUnavailable("The login cannot be stored; see the home folder.") from error
    return _with_cookie(call, value, LOGIN_SECONDS)


async def log_out(call: Call[Nothing, Nothing]) -> Response:
    """End the login of this cookie, its open streams included, and forget the cookie."""
    try:
        call.door.logins.end(call.exchange.login)
    except OSError as error:
        raise StoreUnavailable("The logout cannot be stored; see the home folder.") from error
    return _with_cookie(call, "", 0)


async def make_link(call: Call[Nothing, Nothing]) -> LinkView:
    """Make an address that logs one browser in."""
    return LinkView(one_time_link(call.door), int(CODE_SECONDS))


def one_time_link(door: WebDoor) -> str:
    """Return an address that logs one browser in, once, for five minutes.

    The code stands behind the `#`: it is never sent with a request for a page, nor logged.
    """
    settings = door.settings
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    base = settings.public_url or f"http://{host}:{settings.port}"
    return f"{base.rstrip('/')}/#code={door.logins.codes.issue()}"


def _with_cookie(call: Call[Nothing, Any], value: str, age: int) -> Response:
    settings = call.door.settings
    response = Response(status_code=204)
    response.set_cookie(
        cookie_name(settings),
        value,
        max_age=age,
        httponly=True,
        samesite="lax",
        secure=_is_https(settings, call.exchange),
    )
    return response


def _is_https(settings: WebSettings, exchange: Exchange) -> bool:
    """Say whether the browser came over https, as far as the settings know."""
    public = settings.public_url or ""
    hosts = [host.decode("latin-1").lower() for host in exchange.headers(b"host")]
    return origin_of(public).startswith("https:") and hosts == [urlsplit(public).netloc.lower()]
