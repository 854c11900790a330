import httpx
from starlette.applications import Starlette

from internal.simulators.lark.control.api import ControlApi
from tests.unit.simulators.lark import make_services

URL = "http://127.0.0.1:8430"


def client() -> httpx.AsyncClient:
    app = Starlette(routes=ControlApi(make_services(), "key").routes())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=URL)


async def test_every_route_needs_the_key_as_a_header() -> None:
    async with client() as http:
        assert (await http.post("/_sim/drop", json={})).status_code == 401
        headers = {"authorization": "Bearer key"}
        assert (await http.post("/_sim/drop", json={}, headers=headers)).json() == {"dropped": 0}
        cookie = {"cookie": "larksim-8430=key; key=key"}
        assert (await http.post("/_sim/drop", json={}, headers=cookie)).status_code == 401


async def test_cross_origin_requests_are_rejected() -> None:
    async with client() as http:
        for headers, status in (
            ({"origin": "http://evil.example"}, 403),
            ({"sec-fetch-site": "cross-site"}, 403),
            ({"content-type": "text/plain"}, 415),
        ):
            answer = await http.post("/_sim/drop", json={}, headers=headers)
            assert answer.status_code == status
