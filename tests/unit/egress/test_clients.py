"""Reachable addresses of every client that sends requests, for any address, name or redirect.

Names and addresses of the first kind come from models and people, so they are checked. Names and
addresses of the second kind come from the settings, and may be private.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

import httpx2
import pytest
from mcp.shared._httpx_utils import request_within_origin
from pydantic import SecretStr

from internal.agent.domain.errors import LarkspurError, ToolError
from internal.agent.ports.audio import Recording
from internal.audio.transcription import TranscriptionClient
from internal.channels.lark.api import LarkClient, LarkRequest, SendPolicy
from internal.channels.lark.connection import AppCredentials
from internal.egress.addresses import Resolver
from internal.hooks.answer import HookFailed
from internal.hooks.signed_post import SignedPoster
from internal.llm.addresses.prober import AddressProber
from internal.llm.retry import RetryPolicy
from internal.llm.transport import ApiKey
from internal.mcp.definitions import ServerDefinition
from internal.mcp.http_transport import open_client, open_transport
from internal.mcp.login.authorization import AuthorizationRequests, LoginFailure
from internal.observability.clock import SystemClock
from internal.search_providers.provider import SearchQuery
from internal.search_providers.searxng import SearxNg
from internal.settings.settings import TranscriptionSettings
from internal.tools.http_client import Fetcher
from internal.tools.http_urls import PublicUrl
from internal.tools.web_search.search import WebSearch
from tests.support.http_site import FakeResolver, HttpSite
from tests.support.model_transport import client_with, refused


class Reach(NamedTuple):
    """Target of a client, with the resolver of its names."""

    url: str
    resolver: Resolver
    private: bool


KEY = "sk-0123456789abcdef"

CheckedClient = Callable[[Reach], Awaitable[str]]
"""Sends one request and returns the response, or the reason why there is none."""


async def fetch(to: Reach) -> str:
    fetcher = Fetcher(allow_private_networks=to.private, resolver=to.resolver)
    return (await fetcher.fetch(PublicUrl.parse(to.url))).response.body.decode()


async def search(to: Reach) -> str:
    fetcher = Fetcher(allow_private_networks=to.private, resolver=to.resolver)
    await WebSearch([SearxNg(address=to.url)], fetcher, SystemClock()).search(SearchQuery("a", 1))
    return "none"


async def call_mcp(to: Reach) -> str:
    transport = await open_transport(private=to.private, resolver=to.resolver)
    async with open_client({}, transport) as client:
        return (await request_within_origin(client, "POST", to.url, json={})).text


async def ask_authorization_server(to: Reach) -> str:
    definition = ServerDefinition("docs", url=to.url, allow_private_networks=to.private)
    async with await open_transport(private=to.private, resolver=to.resolver) as transport:
        requests = AuthorizationRequests(definition, transport)
        return (await requests.send(httpx2.Request("GET", to.url))).text


CHECKED: dict[str, CheckedClient] = {
    "web_fetch": fetch,
    "MCP": call_mcp,
    "web_search": search,
    "login of MCP": ask_authorization_server,
}
PRIVATE = {
    "literal": ("127.0.0.1", None),
    "localhost": ("localhost", ["127.0.0.1"]),
    "this host": ("0.0.0.0", None),  # noqa: S104 - not bound to
    "IPv6": ("[::1]", None),
    "unspecified": ("[::]", None),
    "mapped": ("[::ffff:127.0.0.1]", None),
    "NAT64": ("[64:ff9b::7f00:1]", None),
    "name": ("site.test", ["127.0.0.1"]),
    "private name": ("site.test", ["10.1.2.3"]),
    "carrier": ("site.test", ["100.64.0.1"]),
    "mapped name": ("site.test", ["::ffff:127.0.0.1"]),
    "mapped in hexadecimal": ("site.test", ["::ffff:7f00:1"]),
    "name by NAT64": ("site.test", ["64:ff9b::a9fe:a9fe"]),
    "unique local": ("site.test", ["fd12::1"]),
    "link-local": ("site.test", ["fe80::1"]),
    "6to4": ("site.test", ["2002:7f00:1::"]),
    "one of two": ("site.test", ["93.184.216.34", "127.0.0.1"]),
    "the other of two": ("site.test", ["127.0.0.1", "93.184.216.34"]),
}
NEVER = ("169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254")


@pytest.fixture
async def site() -> AsyncIterator[HttpSite]:
    site = HttpSite()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    yield site
    site.hold.set()
    server.close()
    await server.wait_closed()


async def outcome(client: CheckedClient, to: Reach) -> str:
    """Return the response, or the reason why there is none, which the MCP client returns."""
    try:
        return await client(to)
    except (ToolError, LoginFailure) as error:
        return str(error)


@pytest.mark.first_rows(2)
@pytest.mark.parametrize("client", CHECKED.values(), ids=CHECKED)
async def test_no_private_address_is_reached(site: HttpSite, client: CheckedClient) -> None:
    for case, (host, found) in PRIVATE.items():
        names = FakeResolver(site_test=[found or []], localhost=[found or []])
        url = f"http://{host}:{site.port}/"
        said = await outcome(client, Reach(url, names, private=False))
        assert "is not a public address" in said or "is never fetched" in said, (case, said)
    assert site.asked == []


@pytest.mark.first_rows(2)
@pytest.mark.parametrize("client", CHECKED.values(), ids=CHECKED)
async def test_metadata_is_not_reached_where_private_addresses_are_permitted(
    site: HttpSite, client: CheckedClient
) -> None:
    for address in NEVER:
        names = FakeResolver(site_test=[[address]])
        to = Reach(f"http://site.test:{site.port}/", names, private=True)
        assert "is never fetched" in await outcome(client, to)
    assert site.asked == []


@pytest.mark.first_rows(2)
@pytest.mark.parametrize("client", CHECKED.values(), ids=CHECKED)
async def test_the_checked_address_is_the_one_that_is_connected_to(
    site: HttpSite, client: CheckedClient
) -> None:
    """DNS rebinding: a second question would get another address."""
    site.page("/", b'{"results": []}', "application/json")
    site.page("/search", b'{"results": []}', "application/json")
    url = f"http://site.test:{site.port}"
    names = FakeResolver(site_test=[["127.0.0.1"], ["169.254.169.254"]])
    await client(Reach(url, names, private=True))
    assert (len(site.asked), names.questions) == (1, ["site.test"])
    names = FakeResolver(site_test=[["169.254.169.254"], ["127.0.0.1"]])
    assert "is never fetched" in await outcome(client, Reach(url, names, private=True))
    assert (len(site.asked), names.questions) == (1, ["site.test"])


@pytest.mark.first_rows(2)
@pytest.mark.parametrize("client", CHECKED.values(), ids=CHECKED)
async def test_a_redirect_leads_to_no_other_server_and_is_checked_again(
    site: HttpSite, client: CheckedClient
) -> None:
    url = f"http://site.test:{site.port}"
    targets = (f"http://other.test:{site.port}/secret", f"{url}/secret")
    for target in targets:
        for path in ("/", "/search"):
            site.redirect(path, target, 307)
        names = FakeResolver(
            site_test=[["127.0.0.1"], ["169.254.169.254"]], other_test=[["127.0.0.1"]]
        )
        await outcome(client, Reach(url, names, private=True))
        assert set(names.questions) == {"site.test"}
    assert len(site.asked) == len(targets)
    assert not any(path.startswith("/secret") for path, _ in site.asked)


async def ask_model(url: str) -> None:
    client = client_with(KEY, url)
    try:
        await client.post("/", b"{}", refused)
    finally:
        await client.close()


async def probe(url: str) -> None:
    async with AddressProber(ApiKey(KEY)) as prober:
        await prober.list_models(url, "openai", with_key=True)


async def transcribe(url: str) -> None:
    settings = TranscriptionSettings(base_url=url, api_key=SecretStr(KEY))
    client = TranscriptionClient(settings, "whisper-1", RetryPolicy(retries=0))
    try:
        await client.transcribe(b"sound", Recording("audio/ogg", "ogg", 1.0))
    finally:
        await client.close()


async def call_lark(url: str) -> None:
    client = LarkClient(AppCredentials("cli_a", KEY, url), SystemClock())
    try:
        await client.call(LarkRequest("GET", "/open-apis/bot/v3/info"), SendPolicy(max_attempts=1))
    finally:
        await client.close()


async def post_webhook(url: str) -> None:
    poster = SignedPoster(SystemClock())
    try:
        await poster.post(url, b"{}", message_id="evt-1", secret=SecretStr(KEY), timeout_seconds=10)
    finally:
        await poster.close()


CONFIGURED: dict[str, Callable[[str], Awaitable[None]]] = {
    "model": ask_model,
    "address check": probe,
    "transcription": transcribe,
    "Lark": call_lark,
    "webhook": post_webhook,
}
FOLLOWING = {"model", "transcription"}
"""They repeat a request where 307 leads to, without the key."""


@pytest.mark.first_rows(4)
@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("name", CONFIGURED)
async def test_no_key_follows_a_redirect_of_a_server_of_the_settings(
    site: HttpSite, name: str, status: int
) -> None:
    site.answers["/secret"] = b""
    moved = f"HTTP/1.1 {status} Moved\r\nLocation: http://localhost:{site.port}/secret\r\n"
    site.answers["/"] = f"{moved}Content-Length: 0\r\n\r\n".encode()
    site.missing = site.answers["/"]
    with suppress(LarkspurError, HookFailed):
        await CONFIGURED[name](f"http://127.0.0.1:{site.port}")
    first, *others = site.asked
    assert KEY in str(first) + site.bodies[0].decode() or name == "webhook"
    followed = [fields for path, fields in others if path == "/secret"]
    assert bool(followed) == (name in FOLLOWING and status == HTTPStatus.TEMPORARY_REDIRECT)
    assert KEY not in str(followed)
