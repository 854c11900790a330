"""Requests to a server with the token of a login, which is renewed when it ends or is refused."""

import asyncio
from http import HTTPStatus

import httpx2

from internal.agent.domain.errors import LarkspurError
from internal.mcp.definitions import ServerDefinition
from internal.mcp.http_transport import ServerTransport, error_response
from internal.mcp.limits import LoginRequired, ServerFailure
from internal.mcp.login.authorization import AuthorizationRequests, LoginFailure
from internal.mcp.login.sign_in import has_expired, obtain_with_secret, renew
from internal.mcp.login.token_store import StoredLogin, TokenStore


class LoginTransport(httpx2.AsyncBaseTransport):
    """Adds the token to each request of a server. A failed login is the answer of the request.

    A token that has ended or that the server refuses is renewed once. Another process may sign in
    at any time, which counts from the next request on.

    Args:
        definition: the server.
        store: the logins of people; not read for `client_credentials`.
        transport: connects to checked addresses.
    """

    def __init__(
        self, definition: ServerDefinition, store: TokenStore, transport: ServerTransport
    ) -> None:
        self._definition, self._store, self._transport = definition, store, transport
        self._requests = AuthorizationRequests(definition, transport)
        self._has_secret = definition.login == "client_credentials"
        self._lock = asyncio.Lock()
        self._held: StoredLogin | None = None
        self.failure = ""
        """Why the last request had no usable token: the end of a sentence, "" if it had one."""
        self.needs_person = False
        """True if a person must sign in before the next request."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request with the token."""
        try:
            used = await self._current()
            response = await self._send(request, used)
            if response.status_code == HTTPStatus.UNAUTHORIZED:
                await response.aclose()
                response = await self._send(request, await self._replace(used, response))
                if response.status_code == HTTPStatus.UNAUTHORIZED:
                    await response.aclose()
                    raise self._required()
        except LarkspurError as error:
            self.failure = str(error).removesuffix(".")
            self.needs_person = isinstance(error, LoginRequired)
            return error_response(self.failure)
        self.failure = ""
        self.needs_person = False
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def _send(self, request: httpx2.Request, login: StoredLogin | None) -> httpx2.Response:
        if login is not None:
            request.headers["authorization"] = f"Bearer {login.access_token}"
        return await self._transport.handle_async_request(request)

    async def _current(self) -> StoredLogin | None:
        """Return the login; None if it has a secret, which needs a challenge first.

        Raises:
            ServerFailure, LoginsUnreadable: there is no usable login.
        """
        async with self._lock:
            if self._held is None or has_expired(self._held):
                self._held = await self._stored()
            if self._held is None or not has_expired(self._held):
                return self._held
            return await self._renewed(self._held)

    async def _replace(
        self, refused: StoredLogin | None, challenge: httpx2.Response
    ) -> StoredLogin:
        """Return another login than one that the server refuses.

        Raises:
            ServerFailure, LoginsUnreadable: there is none.
        """
        async with self._lock:
            if self._held is not None and self._held != refused:
                return self._held  # another request was faster
            if self._has_secret:
                self._held = await obtain_with_secret(self._definition, self._requests, challenge)
                self._held.mask(self._store.key)
                return self._held
            found = await self._stored()
            if found is not None and found != refused:
                self._held = found
                return found
            if refused is None:
                raise self._required()
            return await self._renewed(refused)

    async def _stored(self) -> StoredLogin | None:
        """Return the stored login of a person; None if the login has a secret.

        Raises:
            ServerFailure, LoginsUnreadable: there is no usable login.
        """
        if self._has_secret:
            return None
        found = await asyncio.to_thread(self._store.get)
        if found is None:
            raise self._required()
        return found

    async def _renewed(self, login: StoredLogin) -> StoredLogin:
        """Renew a token and store it.

        Raises:
            ServerFailure, LoginsUnreadable: it cannot be renewed.
        """
        found = await renew(self._definition, self._requests, login)
        if found is not None:
            await asyncio.to_thread(self._store.put, found)
        else:
            found = await self._stored()  # another process may have been faster
            if found is None or found == login:
                raise self._required()
        self._held = found
        return found

    def _required(self) -> ServerFailure:
        name = self._definition.name
        if self._has_secret:
            return LoginFailure("it refuses the token that its authorization server gave")
        return LoginRequired(f"sign in to {name} with: larkspur mcp login {name}")
