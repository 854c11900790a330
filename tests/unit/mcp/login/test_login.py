"""Logins at a real authorization server: browser, renewal, secrets, and hostile metadata."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from internal.agent.domain.secrets import mask_secrets
from internal.agent.ports.mcp import LoginAnswer
from internal.mcp.connection import ServerConnection
from internal.mcp.definitions import ServerDefinition, parse_definition
from internal.mcp.http_transport import open_transport
from internal.mcp.limits import LoginRequired, ServerFailure
from internal.mcp.login.authorization import AuthorizationRequests, LoginFailure
from internal.mcp.login.loopback import listening
from internal.mcp.login.token_file import ServerLogin, TokenFile
from internal.mcp.login.token_store import StoredLogin, TokenStore
from internal.mcp.sdk_client import ServerEndpoint
from tests.support.authorization_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    Browser,
    ProtectedServer,
    browse,
    protected_server,
)
from tests.support.mcp_connection import opened, text_of
from tests.support.mcp_servers import ignore_tools
from tests.support.tools import native_sandbox

SIGN_IN = "sign in to docs with: larkspur mcp login docs"


@pytest.fixture(name="server")
async def _server() -> AsyncGenerator[ProtectedServer]:
    async with protected_server() as server:
        yield server


def define(server: ProtectedServer, **options: Any) -> ServerDefinition:
    entry = {**server.entry, "login": "shared", **options}
    return parse_definition("docs", entry, lambda value, _where: value, "mcp.json")


def machine(server: ProtectedServer, **options: Any) -> ServerDefinition:
    client = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    issuer = server.authorization.origin
    given = {"login": "client_credentials", **client, "issuer": issuer, "scopes": ["read"]}
    return define(server, **{**given, **options})


def connect(home: Path, definition: ServerDefinition, principal: str = "") -> ServerConnection:
    return ServerConnection(
        definition,
        native_sandbox(home),
        None,
        version="0",
        on_tools=ignore_tools,
        login=ServerLogin(TokenFile(home), principal),
    )


async def sign_in(
    home: Path,
    definition: ServerDefinition,
    principal: str = "",
    browser: Browser | None = None,
) -> Browser:
    used = browser or Browser()
    login = ServerLogin(TokenFile(home), principal)
    async with listening() as receiver:

        async def authorize(url: str, state: str) -> LoginAnswer:
            used.show(url)
            return await receiver.receive(state)

        await ServerEndpoint.sign_in(definition, login, receiver.redirect_uri, authorize)
    await used.pages()
    return used


def stored(home: Path, definition: ServerDefinition) -> StoredLogin:
    found = TokenStore(TokenFile(home), definition, "").get()
    assert found is not None
    return found


async def test_a_server_is_called_after_a_login_in_the_browser(
    tmp_path: Path, server: ProtectedServer
) -> None:
    definition = define(server)
    await sign_in(tmp_path, definition)
    async with opened(connect(tmp_path, definition)) as connection:
        assert await text_of(connection, text="hi") == "hi"
    assert server.authorization.paths() == [
        "/.well-known/oauth-authorization-server",
        "/register",
        "/authorize",
        "/token",
    ]
    asked = server.authorization.seen[2][1]
    assert asked["resource"] == server.url
    assert asked["scope"] == "read"
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")


async def test_a_server_that_nobody_signed_in_to_says_how(
    tmp_path: Path, server: ProtectedServer
) -> None:
    async with opened(connect(tmp_path, define(server))) as connection:
        with pytest.raises(ServerFailure, match=SIGN_IN):
            await connection.list_tools()
    assert server.authorization.seen == []


async def test_a_definition_without_a_login_is_told_of_it(
    tmp_path: Path, server: ProtectedServer
) -> None:
    definition = ServerDefinition("docs", url=server.url, allow_private_networks=True)
    connection = ServerConnection(
        definition, native_sandbox(tmp_path), None, version="0", on_tools=ignore_tools
    )
    async with opened(connection):
        with pytest.raises(ServerFailure, match="it answered 401; its definition needs the key"):
            await connection.list_tools()


async def test_a_personal_login_is_not_used_for_others(
    tmp_path: Path, server: ProtectedServer
) -> None:
    definition = define(server, login="personal")
    await sign_in(tmp_path, definition, "local")
    async with opened(connect(tmp_path, definition, "local")) as own:
        assert await text_of(own, text="hi") == "hi"
    async with opened(connect(tmp_path, definition, "lark:other")) as foreign:
        with pytest.raises(ServerFailure, match=SIGN_IN):
            await foreign.list_tools()


async def test_a_revoked_token_is_renewed_once_at_the_authorization_server(
    tmp_path: Path, server: ProtectedServer
) -> None:
    definition = define(server)
    await sign_in(tmp_path, definition)
    before = stored(tmp_path, definition)
    async with opened(connect(tmp_path, definition)) as connection:
        await text_of(connection, text="hi")
        server.authorization.revoke()
        texts = [text_of(connection, text=str(number)) for number in range(3)]
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(text) for text in texts]
        assert [each.result() for each in running] == ["0", "1", "2"]
    assert server.authorization.paths().count("/token") == 2
    form = server.authorization.seen[-1][1]
    assert (form["grant_type"], form["resource"]) == ("refresh_token", server.url)
    assert stored(tmp_path, definition).access_token != before.access_token


async def test_a_login_that_is_revoked_in_a_call_asks_to_sign_in_and_works_again_after_it(
    tmp_path: Path, server: ProtectedServer
) -> None:
    definition = define(server)
    await sign_in(tmp_path, definition)
    async with opened(connect(tmp_path, definition)) as connection:
        await text_of(connection, text="hi")
        server.authorization.revoke(refresh=True)
        with pytest.raises(LoginRequired, match=f"^{SIGN_IN}"):
            await text_of(connection, text="hi")
        await sign_in(tmp_path, definition)
        assert await text_of(connection, text="hi") == "hi"


async def test_a_token_that_has_ended_is_renewed_before_it_is_sent(
    tmp_path: Path, server: ProtectedServer
) -> None:
    definition = define(server)
    server.authorization.seconds = 1
    await sign_in(tmp_path, definition)
    server.authorization.seconds = 3600
    async with opened(connect(tmp_path, definition)) as connection:
        assert await text_of(connection, text="hi") == "hi"
    assert server.authorization.seen[-1][1]["grant_type"] == "refresh_token"


async def test_another_process_may_have_renewed_the_token(
    tmp_path: Path, server: ProtectedServer
) -> None:
    definition = define(server)
    await sign_in(tmp_path, definition)
    async with (
        opened(connect(tmp_path, definition)) as first,
        opened(connect(tmp_path, definition)) as second,
    ):
        await text_of(first, text="hi")
        await text_of(second, text="hi")
        server.authorization.revoke()
        assert await text_of(first, text="1") == "1"
        assert await text_of(second, text="2") == "2"
    assert server.authorization.paths().count("/token") == 2


async def test_a_machine_signs_in_with_its_secret_and_again_after_a_revocation(
    tmp_path: Path, server: ProtectedServer
) -> None:
    async with opened(connect(tmp_path, machine(server))) as connection:
        assert await text_of(connection, text="hi") == "hi"
        server.authorization.revoke()
        assert await text_of(connection, text="again") == "again"
    paths = server.authorization.paths()
    assert (paths.count("/token"), paths.count("/authorize")) == (2, 0)
    assert server.authorization.seen[-1][1]["scope"] == "read"
    assert not (tmp_path / "mcp-tokens.json").exists()


async def test_a_secret_is_not_sent_to_another_authorization_server(
    tmp_path: Path, server: ProtectedServer
) -> None:
    definition = machine(server, issuer="https://other.example")
    async with opened(connect(tmp_path, definition)) as connection:
        with pytest.raises(ServerFailure, match=r"its authorization server is http://127\.0"):
            await connection.list_tools()
    assert "/token" not in server.authorization.paths()


async def test_a_wrong_secret_is_reported(tmp_path: Path, server: ProtectedServer) -> None:
    definition = machine(server, client_secret=CLIENT_SECRET[::-1])
    async with opened(connect(tmp_path, definition)) as connection:
        with pytest.raises(ServerFailure, match=r"answered 400 \(invalid_grant\)"):
            await connection.list_tools()


async def test_the_scopes_of_the_definition_are_requested(
    tmp_path: Path, server: ProtectedServer
) -> None:
    browser = await sign_in(tmp_path, define(server, scopes=["read", "issues:read"]))
    assert "scope=read+issues%3Aread" in browser.urls[0]


async def test_a_person_may_refuse(tmp_path: Path, server: ProtectedServer) -> None:
    server.authorization.denies = True
    with pytest.raises(LoginFailure, match="the sign-in was refused: access_denied"):
        await sign_in(tmp_path, define(server))
    assert not (tmp_path / "mcp-tokens.json").exists()


async def test_an_answer_with_another_state_changes_nothing(
    tmp_path: Path, server: ProtectedServer
) -> None:
    pages: list[str] = []

    class Attacked(Browser):
        def show(self, url: str) -> None:
            self._tasks.append(asyncio.create_task(self.attack(url)))

        async def attack(self, url: str) -> str:
            redirect = redirect_of(url)
            queries = ("code=evil&state=guessed", "code=evil", "")
            pages.extend([await browse(f"{redirect}?{query}") for query in queries])
            return await browse(url)

    browser = Attacked()
    definition = define(server)
    await sign_in(tmp_path, definition, browser=browser)
    (page,) = await browser.pages()
    assert all("not the answer" in each for each in pages)
    assert "received the answer" in page
    assert stored(tmp_path, definition).access_token in server.authorization.access


def redirect_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["redirect_uri"][0]


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint does not use"),
        ({"authorization_endpoint": "file:///etc/passwd"}, "authorization_endpoint does not use"),
        ({"token_endpoint": "ftp://example.com"}, "token_endpoint does not use https"),
        ({"authorization_endpoint": "http://a:b@127.0.0.1/"}, "is not a usable URL"),
        ({"authorization_endpoint": "http://127.0.0.1/\u202e"}, "is not a usable URL"),
        ({"issuer": "https://evil.example"}, "issuer mismatch"),
        ({"code_challenge_methods_supported": ["plain"]}, "does not support PKCE"),
        ({"code_challenge_methods_supported": None}, "does not support PKCE"),
        ({"token_endpoint": "http://169.254.169.254/token"}, "is never fetched"),
        ({"padding": "x" * 300_000}, "a response of more than 256,000 bytes"),
    ],
)
@pytest.mark.first_rows(3)
async def test_hostile_metadata_is_refused(
    tmp_path: Path, server: ProtectedServer, metadata: dict[str, Any], reason: str
) -> None:
    server.authorization.metadata = metadata
    with pytest.raises(LoginFailure, match=reason):
        await sign_in(tmp_path, define(server))
    assert not (tmp_path / "mcp-tokens.json").exists()


async def test_a_redirect_to_another_scheme_is_refused(
    tmp_path: Path, server: ProtectedServer
) -> None:
    server.authorization.redirect = "ftp://127.0.0.1/metadata"
    with pytest.raises(LoginFailure, match="its redirect does not use https"):
        await sign_in(tmp_path, define(server))


@pytest.mark.parametrize("url", ["http://example.com/authorize", "http://127.0.0.1/authorize"])
async def test_a_server_with_https_has_no_authorization_over_http(url: str) -> None:
    definition = ServerDefinition("docs", url="https://example.com/mcp", login="shared")
    requests = AuthorizationRequests(definition, await open_transport(private=False))
    with pytest.raises(LoginFailure, match="authorization_endpoint does not use https"):
        requests.check_url(url, "authorization_endpoint")
    requests.check_url("https://auth.example.com/authorize", "authorization_endpoint")


async def test_the_tokens_are_masked(tmp_path: Path, server: ProtectedServer) -> None:
    definition = define(server)
    await sign_in(tmp_path, definition)
    token = stored(tmp_path, definition).access_token
    assert token not in mask_secrets(f"Bearer {token}")
