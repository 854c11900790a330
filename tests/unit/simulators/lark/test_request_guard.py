from collections.abc import Callable

import httpx
import pytest
from starlette.responses import PlainTextResponse

from internal.simulators.lark.request_guard import POLICY, RequestGuard
from tests.unit.simulators.lark import make_services


@pytest.fixture
def client() -> Callable[[str], httpx.AsyncClient]:
    guard = RequestGuard(
        PlainTextResponse("ok"), make_services(), ["127.0.0.1:8430", "localhost:8430"]
    )

    def make(host: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url=f"http://{host}")

    return make


async def test_only_local_host_names_are_served(
    client: Callable[[str], httpx.AsyncClient],
) -> None:
    for host, status in (
        ("127.0.0.1:8430", 200),
        ("localhost:8430", 200),
        ("evil.example", 421),
        ("127.0.0.1:1", 421),
    ):
        async with client(host) as http:
            assert (await http.get("/")).status_code == status


async def test_every_response_has_the_security_headers(
    client: Callable[[str], httpx.AsyncClient],
) -> None:
    async with client("127.0.0.1:8430") as http:
        headers = (await http.get("/")).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
