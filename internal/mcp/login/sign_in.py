"""A login by a person, who agrees in a browser; and the providers of the SDK for all logins."""

import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

from internal.agent.domain.text import escape_hidden, truncate_line
from internal.agent.ports.mcp import LoginAnswer
from internal.mcp.definitions import ServerDefinition
from internal.mcp.http_transport import ServerTransport
from internal.mcp.login.authorization import (
    MAX_REASON_CHARS,
    AuthorizationRequests,
    LoginFailure,
)
from internal.mcp.login.token_store import StoredLogin

MAX_TOKEN_CHARS = 20_000
_EXPIRY_MARGIN_SECONDS = 30.0


Authorize = Callable[[str, str], Awaitable[LoginAnswer]]
"""Gives a person the URL to open, and returns the answer that has the state.

Raises: ServerFailure: there is no answer.
"""


class _Memory:
    """Keeps the tokens of a provider in memory. Implements `TokenStorage` of the SDK."""

    def __init__(
        self,
        tokens: OAuthToken | None = None,
        client: OAuthClientInformationFull | None = None,
    ) -> None:
        self.tokens, self.client = tokens, client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        for token in filter(None, (tokens.access_token, tokens.refresh_token)):
            if len(token) > MAX_TOKEN_CHARS or not (token.isascii() and token.isprintable()):
                raise LoginFailure("its authorization server gave a token that cannot be sent")
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _ExpiredProvider(OAuthClientProvider):
    """Renews the token of a stored login."""

    def __init__(self, definition: ServerDefinition, login: StoredLogin) -> None:
        memory = _Memory(
            OAuthToken.model_validate(login.tokens),
            OAuthClientInformationFull.model_validate(login.client),
        )
        super().__init__(definition.url, _metadata(definition, None), memory)
        self._login = login

    async def _initialize(self) -> None:
        await super()._initialize()
        # the SDK does not store these, and would send the refresh token to the server itself
        if self._login.metadata is not None:
            self.context.oauth_metadata = OAuthMetadata.model_validate(self._login.metadata)
        if self._login.resource is not None:
            self.context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
                self._login.resource
            )
        self.context.token_expiry_time = 1.0


async def sign_in(
    definition: ServerDefinition,
    transport: ServerTransport,
    redirect_uri: str,
    authorize: Authorize,
) -> StoredLogin:
    """Return the login of a person who agrees in a browser.

    Raises:
        LoginFailure: the person does not agree, or the server does not accept a login.
    """
    requests = AuthorizationRequests(definition, transport)
    challenge = await _challenge(definition, requests)
    offered = ""

    async def redirect(url: str) -> None:
        nonlocal offered
        requests.check_url(url, "authorization_endpoint")
        offered = url

    async def receive() -> AuthorizationCodeResult:
        state = parse_qs(urlsplit(offered).query)["state"][-1]
        answer = await authorize(offered, state)
        if answer.error:
            reason = truncate_line(escape_hidden(answer.error), MAX_REASON_CHARS)
            raise LoginFailure(f"the sign-in was refused: {reason}")
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    memory = _Memory(client=_known_client(definition, redirect_uri))
    metadata = _metadata(definition, redirect_uri)
    provider = OAuthClientProvider(definition.url, metadata, memory, redirect, receive)
    await requests.obtain(provider, challenge)
    return _login_of(provider)


async def renew(
    definition: ServerDefinition, requests: AuthorizationRequests, login: StoredLogin
) -> StoredLogin | None:
    """Return the login with a new token; None if the authorization server refuses it.

    Raises:
        LoginFailure: the authorization server cannot be reached, or does not work.
    """
    provider = _ExpiredProvider(definition, login)
    return _login_of(provider) if await requests.refresh(provider) else None


async def obtain_with_secret(
    definition: ServerDefinition, requests: AuthorizationRequests, challenge: httpx2.Response
) -> StoredLogin:
    """Return a login of Larkspur itself, with the secret of the definition.

    Raises:
        LoginFailure: there is no token.
    """
    provider = ClientCredentialsOAuthProvider(
        definition.url,
        _Memory(),
        definition.client_id,
        definition.client_secret,
        scope=" ".join(definition.scopes) or None,
        issuer=definition.issuer,
    )
    await requests.obtain(provider, with_scopes(definition, challenge))
    return _login_of(provider)


def with_scopes(definition: ServerDefinition, challenge: httpx2.Response) -> httpx2.Response:
    """Return a challenge that demands the scopes of the definition, if it has any."""
    if not definition.scopes:
        return challenge
    asked = challenge.headers.get("www-authenticate", "")
    wanted = f'Bearer scope="{" ".join(definition.scopes)}", {asked}'
    return httpx2.Response(challenge.status_code, headers={"www-authenticate": wanted})


def has_expired(login: StoredLogin) -> bool:
    """Return True if the access token ends soon, or has ended."""
    return login.expires_at is not None and time.time() > login.expires_at - _EXPIRY_MARGIN_SECONDS


async def _challenge(
    definition: ServerDefinition, requests: AuthorizationRequests
) -> httpx2.Response:
    """Return the response of a server to a request without a token.

    Raises:
        LoginFailure: the server does not demand one.
    """
    request = httpx2.Request(
        "POST",
        definition.url,
        json={"jsonrpc": "2.0", "id": 1, "method": "ping"},
        headers={**definition.headers, "accept": "application/json, text/event-stream"},
    )
    response = await requests.send(request)
    if response.status_code != httpx2.codes.UNAUTHORIZED:
        raise LoginFailure(f"it does not demand a login: it answered {response.status_code}")
    return with_scopes(definition, response)


def _metadata(definition: ServerDefinition, redirect_uri: str | None) -> OAuthClientMetadata:
    return OAuthClientMetadata.model_validate(
        {
            "client_name": "Larkspur",
            "redirect_uris": [redirect_uri] if redirect_uri else None,
            "token_endpoint_auth_method": "none",
            "scope": " ".join(definition.scopes) or None,
        }
    )


def _known_client(
    definition: ServerDefinition, redirect_uri: str
) -> OAuthClientInformationFull | None:
    """Return the client of the definition; None if one is to be registered."""
    if not definition.client_id:
        return None
    secret = definition.client_secret
    return OAuthClientInformationFull.model_validate(
        {
            "client_id": definition.client_id,
            "client_secret": secret or None,
            "token_endpoint_auth_method": "client_secret_basic" if secret else "none",
            "redirect_uris": [redirect_uri],
            "issuer": definition.issuer,
        }
    )


def _login_of(provider: OAuthClientProvider) -> StoredLogin:
    """Return the login that a provider has obtained.

    Raises:
        LoginFailure: it has no token.
    """
    context = provider.context
    if context.current_tokens is None or context.client_info is None:
        raise LoginFailure("its authorization server gave no token")
    return StoredLogin(
        _json(context.current_tokens),
        _json(context.client_info),
        _json(context.oauth_metadata) if context.oauth_metadata else None,
        _json(context.protected_resource_metadata) if context.protected_resource_metadata else None,
        context.token_expiry_time,
    )


def _json(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return dumped
