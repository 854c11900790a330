"""The request that a handler receives."""

import pytest

from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.requests import RequestContext
from internal.channels.web.schemas import EmptyRequest
from internal.channels.web.services import WebServices


def request(
    services: WebServices, principal: Principal | None = None, user_agent: bytes = b"curl/8"
) -> ApiRequest[EmptyRequest, EmptyRequest]:
    scope = {"method": "GET", "headers": [(b"user-agent", user_agent)]}
    context = RequestContext(scope, "r", is_public=True, principal=principal)
    return ApiRequest(services, context, {}, EmptyRequest(), EmptyRequest())


async def test_only_the_terminal_names_itself_as_the_cli_channel(services: WebServices) -> None:
    assert request(services, user_agent=b"larkspur-cli").channel == "cli"
    assert request(services, user_agent=b"larkspur-cli/2").channel == "web"
    assert request(services).channel == "web"


async def test_a_handler_of_a_public_route_cannot_use_a_missing_principal(
    services: WebServices,
) -> None:
    assert request(services, LOCAL_OWNER).principal is LOCAL_OWNER
    with pytest.raises(HttpError) as rejected:
        _ = request(services).principal
    assert rejected.value.status == 401
