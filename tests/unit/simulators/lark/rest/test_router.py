import pytest

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.rest.router import ENDPOINTS, read_json, routes
from tests.unit.simulators.lark import make_services


def test_every_endpoint_has_a_route_and_none_is_declared_twice() -> None:
    declared = {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    assert len(declared) == len(ENDPOINTS)
    assert len(routes(make_services())) == len(ENDPOINTS) + 1  # and the one of tokens


@pytest.mark.parametrize("body", [b"{", b"[]", b"7", b"\xff"])
def test_a_body_must_be_a_json_object(body: bytes) -> None:
    with pytest.raises(LarkError):
        read_json(body)


def test_an_empty_body_is_an_empty_object() -> None:
    assert read_json(b"") == {}
