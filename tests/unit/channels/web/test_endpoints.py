"""The request that a handler receives."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
import msgspec.inspect
import pytest
from msgspec import Meta

from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.mcp.tools import TOOLS
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.requests import RequestContext
from internal.channels.web.routes.table import ROUTES
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


def unbounded(kind: msgspec.inspect.Type, seen: set[type], place: str = "") -> Iterator[str]:
    """Yield the lists and mappings of a type that have no limit, by where they are."""
    match kind:
        case msgspec.inspect.StructType(cls, fields) if cls not in seen:
            for field in fields:
                yield from unbounded(field.type, {*seen, cls}, f"{place}.{field.name}")
        case msgspec.inspect.UnionType(types):
            for each in types:
                yield from unbounded(each, seen, place)
        case msgspec.inspect.TupleType(items):
            for each in items:
                yield from unbounded(each, seen, place)
        case msgspec.inspect.CollectionType() | msgspec.inspect.DictType():
            if kind.max_length is None:
                yield place
            members = (
                (kind.key_type, kind.value_type)
                if isinstance(kind, msgspec.inspect.DictType)
                else (kind.item_type,)
            )
            for each in members:
                yield from unbounded(each, seen, f"{place}[]")
        case _:
            pass


BODIES = sorted(
    {each.body for each in ROUTES} | {each.arguments for each in TOOLS},
    key=lambda body: body.__name__,
)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_list_in_a_request_has_a_limit(body: type[msgspec.Struct]) -> None:
    assert list(unbounded(msgspec.inspect.type_info(body), set())) == []


def test_a_list_without_a_limit_is_found() -> None:
    class Inner(msgspec.Struct):
        good: Annotated[tuple[str, ...], Meta(max_length=3)]
        bad: dict[str, int] | None

    class Outer(msgspec.Struct):
        inner: Annotated[list[Inner], Meta(max_length=3)] | str
        names: tuple[str, ...]

    found = list(unbounded(msgspec.inspect.type_info(Outer), set()))
    assert found == [".inner[].bad", ".names"]
