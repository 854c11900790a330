"""Calls of people to the web API."""

from typing import Any

from internal.agent.domain.principals import Principal
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.requests import RequestContext
from internal.channels.web.schemas import EmptyRequest
from tests.support.working_web_app import WorkingWebApp


def call_of(
    app: WorkingWebApp,
    who: Principal,
    query: Any = None,
    body: Any = None,
    **path: str,
) -> ApiRequest[Any, Any]:
    """Return a request of a person with a credential that this server does not accept yet."""
    exchange = RequestContext({"method": "GET", "headers": []}, "r", is_public=False, principal=who)
    return ApiRequest(app.services, exchange, path, query or EmptyRequest(), body or EmptyRequest())
