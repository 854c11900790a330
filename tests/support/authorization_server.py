"""An authorization server (OAuth 2.1), and an MCP server that demands its tokens."""

import asyncio
import base64
import hashlib
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode

import httpx
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.mcp_http import serve_made

CANARY = "canary-token"
CLIENT_ID, CLIENT_SECRET = "machine", "canary-secret-of-a-client"


class Grant(NamedTuple):
    """Client, scope and resource of a token."""

    client: str
    scope: str
    resource: str


class AuthorizationServer:
    """Registers every client and agrees to every request, with PKCE and rotated refresh tokens.

    `seen` are the path and parameters of each request. `metadata` replaces keys of the metadata,
    `denies` makes the person refuse, and tokens live for `seconds`.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.metadata: dict[str, Any] = {}
        self.redirect = ""
        self.denies = False
        self.seconds = 3600
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, Grant] = {}
        self._codes: dict[str, tuple[str, str, Grant]] = {}
        self._clients = {CLIENT_ID: CLIENT_SECRET}
        self.app = Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self.show_metadata),
                Route("/register", self.register, methods=["POST"]),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
            ]
        )

    def paths(self) -> list[str]:
        """Return the paths of all requests."""
        return [path for path, _ in self.seen]

    def revoke(self, *, refresh: bool = False) -> None:
        """Revoke all access tokens, and the refresh tokens as well."""
        self.access.clear()
        if refresh:
            self.refresh.clear()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the grant of a token. Implements `TokenVerifier` of the SDK."""
        return self.access.get(token)

    async def show_metadata(self, request: Request) -> Response:
        """Answer with the metadata of RFC 8414."""
        await self._note(request)
        if self.redirect:
            return RedirectResponse(self.redirect)
        endpoints = {
            f"{name}_endpoint": f"{self.origin}/{path}"
            for name, path in (
                ("authorization", "authorize"),
                ("token", "token"),
                ("registration", "register"),
            )
        }
        return JSONResponse(
            {
                "issuer": self.origin,
                **endpoints,
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                **self.metadata,
            }
        )

    async def register(self, request: Request) -> Response:
        """Register a client."""
        await self._note(request)
        client_id = secrets.token_hex(8)
        self._clients[client_id] = ""
        return JSONResponse({**await request.json(), "client_id": client_id}, 201)

    async def authorize(self, request: Request) -> Response:
        """Send the browser back with a code."""
        await self._note(request)
        query = request.query_params
        if query["client_id"] not in self._clients or query["code_challenge_method"] != "S256":
            return Response(status_code=400)
        back = {"state": query["state"], "iss": self.origin}
        if self.denies:
            return RedirectResponse(
                f"{query['redirect_uri']}?{urlencode({**back, 'error': 'access_denied'})}"
            )
        code = secrets.token_hex(16)
        grant = Grant(query["client_id"], query.get("scope", ""), query["resource"])
        self._codes[code] = query["code_challenge"], query["redirect_uri"], grant
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode({**back, 'code': code})}")

    async def token(self, request: Request) -> Response:
        """Give a token for a code, a refresh token or a secret."""
        form = await self._note(request)
        grant = self._grant(form, request.headers.get("authorization", ""))
        if grant is None:
            return JSONResponse({"error": "invalid_grant"}, 400)
        access, refresh = (f"{CANARY}-{secrets.token_hex(16)}" for _ in range(2))
        self.access[access] = AccessToken(
            token=access,
            client_id=grant.client,
            scopes=grant.scope.split(),
            expires_at=int(time.time()) + self.seconds,
            resource=grant.resource,
        )
        answer = {"access_token": access, "token_type": "bearer", "expires_in": self.seconds}
        if form["grant_type"] != "client_credentials":
            self.refresh[refresh] = grant
            answer["refresh_token"] = refresh
        return JSONResponse(answer)

    def _grant(self, form: dict[str, str], authorization: str) -> Grant | None:
        match form["grant_type"]:
            case "authorization_code":
                challenge, redirect, grant = self._codes.pop(form["code"])
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                is_right = (proof, form["redirect_uri"]) == (challenge, redirect)
                return grant if is_right and form["resource"] == grant.resource else None
            case "refresh_token":
                return self.refresh.pop(form["refresh_token"], None)
            case _:
                given = base64.b64decode(authorization.removeprefix("Basic ")).decode()
                client, _, secret = given.partition(":")
                if not secret or self._clients.get(client) != unquote(secret):
                    return None
                return Grant(client, form.get("scope", ""), form["resource"])

    async def _note(self, request: Request) -> dict[str, str]:
        body = (await request.body()).decode()
        given = dict(request.query_params) | dict(parse_qsl(body))
        self.seen.append((request.url.path, given))
        return given


class ProtectedServer(NamedTuple):
    """An MCP server that demands a token, its authorization server, and the tokens it got."""

    url: str
    authorization: AuthorizationServer

    @property
    def entry(self) -> dict[str, Any]:
        """The entry of `mcpServers`, without the key `login`."""
        return {"url": self.url, "allow_private_networks": True, "risk": "read"}


@asynccontextmanager
async def protected_server(scope: str = "read") -> AsyncGenerator[ProtectedServer]:
    """Serve both, on different origins."""
    made: list[AuthorizationServer] = []

    def make_authorization(origin: str) -> Starlette:
        made.append(AuthorizationServer(origin))
        return made[0].app

    def make_server(origin: str) -> Starlette:
        server = MCPServer(
            "protected",
            token_verifier=made[0],
            auth=AuthSettings.model_validate(
                {
                    "issuer_url": made[0].origin,
                    "resource_server_url": f"{origin}/mcp",
                    "required_scopes": [scope],
                    "validate_token_resource": True,
                }
            ),
        )

        @server.tool()
        def echo(text: str) -> str:
            """Say it."""
            return text

        @server.tool()
        def leak() -> str:
            """Return the token of the request."""
            token = get_access_token()
            return token.token if token else ""

        return server.streamable_http_app()

    async with serve_made(make_authorization), serve_made(make_server) as origin:
        yield ProtectedServer(f"{origin}/mcp", made[0])


async def browse(url: str) -> str:
    """Open a URL like a browser, and return the text of the page where it ends."""
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as client:
        return (await client.get(url)).text


class Browser:
    """Opens each URL that it is shown."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self._tasks: list[asyncio.Task[str]] = []

    def show(self, url: str) -> None:
        """Open a URL."""
        self.urls.append(url)
        self._tasks.append(asyncio.create_task(browse(url)))

    async def pages(self) -> list[str]:
        """Return the texts of the pages."""
        return [await task for task in self._tasks]
