"""Requests to an authorization server: its addresses, redirects and metadata are checked.

The SDK decides which requests are needed (discovery, registration, PKCE, RFC 8707); this module
sends them.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.client.auth.utils import issuers_match
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import LATEST_PROTOCOL_VERSION

from internal.agent.domain.text import escape_hidden, find_invisible, truncate_line
from internal.mcp.definitions import ServerDefinition
from internal.mcp.http_transport import ServerTransport
from internal.mcp.limits import ServerFailure
from internal.normal_forms.urls import join_url, split_url

MAX_RESPONSE_BYTES = 256_000
"""The largest metadata, registration or token."""
REQUEST_TIMEOUT_SECONDS = 30.0
_MAX_URL_CHARS = 4_000
MAX_REASON_CHARS = 300
_PKCE = "code_challenge_methods_supported"


class LoginFailure(ServerFailure):
    """A login failed. The message is the end of a sentence."""


class AuthorizationRequests:
    """Sends the requests of an SDK provider until it has a token.

    Args:
        definition: the server that is signed in to.
        transport: connects to checked addresses.
    """

    def __init__(self, definition: ServerDefinition, transport: ServerTransport) -> None:
        self._issuer = definition.issuer
        self._schemes = {"https", urlsplit(definition.url).scheme}
        self._url = definition.url
        self._transport = transport

    def check_url(self, url: str, what: str) -> None:
        """Check the URL of an authorization server. http is for servers that use it themselves.

        Raises:
            LoginFailure: it is not to be sent to, or opened in a browser.
        """
        shown = truncate_line(escape_hidden(url), MAX_REASON_CHARS)
        try:
            parts = split_url(url)
            usable = bool(parts.hostname) and "@" not in parts.netloc
        except ValueError:
            raise LoginFailure(f"its {what} is not a URL: {shown}") from None
        if parts.scheme not in self._schemes:
            raise LoginFailure(f"its {what} does not use https, which is refused: {shown}")
        if not usable or len(url) > _MAX_URL_CHARS or find_invisible(url) or " " in url:
            raise LoginFailure(f"its {what} is not a usable URL: {shown}")

    async def obtain(self, provider: OAuthClientProvider, challenge: httpx2.Response) -> None:
        """Let a provider get a new token. `challenge` is the response of the server without one.

        Raises:
            LoginFailure: there is no token.
        """
        request = self._request()
        flow = provider.async_auth_flow(request)
        reply: httpx2.Response | None = None
        try:
            await anext(flow)  # the request itself, which had the challenge as its response
            asked = await flow.asend(challenge)
            while asked is not request:
                reply = await self.send(asked)
                asked = await flow.asend(reply)
        except StopAsyncIteration as error:
            raise LoginFailure("its authorization server gave no token") from error
        except OAuthFlowError as error:
            raise LoginFailure(_describe(error, reply)) from error
        except (ValueError, httpx2.InvalidURL) as error:
            raise LoginFailure("its authorization server does not follow the protocol") from error
        finally:
            await flow.aclose()

    async def refresh(self, provider: OAuthClientProvider) -> bool:
        """Let a provider whose token has expired renew it. Return False if that is refused.

        Raises:
            LoginFailure: the authorization server cannot be reached, or does not work.
        """
        request = self._request()
        flow = provider.async_auth_flow(request)
        try:
            asked = await anext(flow)
            if asked is request:
                return False  # there is nothing to renew it with
            reply = await self.send(asked)
            if reply.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
                raise LoginFailure(f"{asked.url.host} answered {reply.status_code}")
            await flow.asend(reply)
        except (OAuthFlowError, ValueError, httpx2.InvalidURL):
            return False
        finally:
            await flow.aclose()
        tokens = provider.context.current_tokens
        return tokens is not None and provider.context.is_token_valid()

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response to a request, which is a checked one.

        Raises:
            LoginFailure: it cannot be sent, or the response is refused.
        """
        self.check_url(str(request.url), "authorization server")
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                response = await self._transport.exchange(request, MAX_RESPONSE_BYTES)
        except (ServerFailure, httpx2.HTTPError) as error:
            reason = str(error) or type(error).__name__
            raise LoginFailure(f"{request.url.host}: {reason}") from error
        except TimeoutError as error:
            seconds = f"{REQUEST_TIMEOUT_SECONDS:g} s"
            raise LoginFailure(f"{request.url.host} did not answer in {seconds}") from error
        if response.is_redirect:  # the SDK does not get to follow it
            location = response.headers.get("location", "")
            try:
                target = join_url(str(request.url), location)
            except ValueError:
                shown = truncate_line(escape_hidden(location), MAX_REASON_CHARS)
                raise LoginFailure(f"its redirect is not a URL: {shown}") from None
            self.check_url(target, "redirect")
        if request.method == "GET" and response.status_code == httpx2.codes.OK:
            self._check_metadata(response)
        return response

    def _request(self) -> httpx2.Request:
        """Return a stand-in for a request to the server. With a version RFC 8707 is followed."""
        headers = {MCP_PROTOCOL_VERSION_HEADER: LATEST_PROTOCOL_VERSION}
        return httpx2.Request("POST", self._url, headers=headers)

    def _check_metadata(self, response: httpx2.Response) -> None:
        """Check addresses that the SDK would pass over, or give to a browser.

        Raises:
            LoginFailure: one is refused, or the authorization server is not the expected one.
        """
        try:
            document = json.loads(response.content)
        except (ValueError, RecursionError):
            return  # no metadata, which the SDK looks for elsewhere
        if not isinstance(document, Mapping):
            return
        servers = document.get("authorization_servers")
        for server in servers if isinstance(servers, list) else ():
            self.check_url(str(server), "authorization server")
        for name, value in document.items():
            if name.endswith("_endpoint"):
                self.check_url(str(value), truncate_line(escape_hidden(name), 60))
        if "authorization_endpoint" in document:
            self._check_server(document)

    def _check_server(self, document: Mapping[str, Any]) -> None:
        issuer = str(document.get("issuer"))
        if self._issuer and not issuers_match(issuer, self._issuer):
            shown = truncate_line(escape_hidden(issuer), MAX_REASON_CHARS)
            raise LoginFailure(f"its authorization server is {shown}, not {self._issuer}")
        methods = document.get(_PKCE)
        if not isinstance(methods, list) or "S256" not in methods:
            raise LoginFailure("its authorization server does not support PKCE with S256")


def _describe(error: OAuthFlowError, reply: httpx2.Response | None) -> str:
    """Return why a login failed, without the tokens that a body may contain."""
    if reply is not None and reply.is_error:
        return f"its authorization server answered {reply.status_code}{_error_of(reply)}"
    match error:
        case OAuthRegistrationError():
            return "its authorization server registered a client that cannot be used"
        case OAuthTokenError():
            return "its authorization server answered with something that is no token"
        case _:
            return truncate_line(escape_hidden(str(error)), MAX_REASON_CHARS)


def _error_of(reply: httpx2.Response) -> str:
    """Return the error code of RFC 6749 as a part of a sentence; "" if there is none."""
    try:
        code = json.loads(reply.content)["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return f" ({truncate_line(escape_hidden(str(code)), 100)})"
