"""Routes for login: a one-time code is exchanged for an HttpOnly cookie and a login key."""

from typing import Any

import msgspec
from starlette.responses import Response

from internal.agent.domain.errors import StoreUnavailable
from internal.channels.web.auth import CODE_TTL_SECONDS, LOGIN_TTL_SECONDS
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.public_address import cookie_name, page_origin
from internal.channels.web.schemas import EmptyRequest, RequestModel
from internal.channels.web.services import WebServices


class LoginRequest(RequestModel, frozen=True):
    """A one-time code."""

    code: str


class LoginView(msgspec.Struct, frozen=True):
    """The login key, which each request must carry together with the cookie."""

    key: str


class LinkView(msgspec.Struct, frozen=True):
    """A URL that logs in one browser, once. It expires after `seconds`."""

    url: str
    seconds: int


async def log_in(request: ApiRequest[EmptyRequest, LoginRequest]) -> Response:
    """Exchange a one-time code for a login cookie and a login key."""
    token = request.services.local_token()
    codes = request.services.logins.codes
    try:
        is_valid = codes.redeem(request.body.code)
        login = request.services.logins.create(token, _page_origin(request)) if is_valid else None
    except OSError as error:
        raise StoreUnavailable(
            "The login could not be stored. Check the Larkspur home directory."
        ) from error
    if login is None:
        raise HttpError(
            403,
            "bad_code",
            "This code is invalid, expired or already used. Create a new link.",
        )
    response = Response(msgspec.json.encode(LoginView(login.key)), media_type="application/json")
    _set_cookie(request, response, login.cookie, LOGIN_TTL_SECONDS)
    return response


async def log_out(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """End the login of this cookie, close its event streams and delete the cookie."""
    try:
        request.services.logins.revoke(request.context.login_id)
    except OSError as error:
        raise StoreUnavailable(
            "The logout could not be stored. Check the Larkspur home directory."
        ) from error
    response = Response(status_code=204)
    _set_cookie(request, response, "", 0)
    return response


async def create_link(request: ApiRequest[EmptyRequest, EmptyRequest]) -> LinkView:
    """Create a URL that logs in one browser."""
    try:
        return LinkView(one_time_link(request.services), int(CODE_TTL_SECONDS))
    except OSError as error:
        raise StoreUnavailable(
            "The code of the link could not be stored. Check the Larkspur home directory."
        ) from error


def one_time_link(services: WebServices) -> str:
    """Return a URL that logs in one browser, once, within five minutes.

    The code is in the fragment, which browsers do not send and servers do not log.

    Raises:
        OSError: The code cannot be stored.
    """
    settings = services.settings
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    base = settings.public_url or f"http://{host}:{settings.port}"
    return f"{base.rstrip('/')}/#code={services.logins.codes.issue()}"


def _set_cookie(
    request: ApiRequest[Any, Any], response: Response, value: str, max_age: int
) -> None:
    origin = _page_origin(request)
    response.set_cookie(
        cookie_name(origin),
        value,
        max_age=max_age,
        path=request.services.settings.path or "/",
        httponly=True,
        samesite="lax",
        secure=origin.startswith("https:"),
    )


def _page_origin(request: ApiRequest[Any, Any]) -> str:
    return page_origin(request.context, request.services.settings)
