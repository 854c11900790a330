"""Sends the requests that try an address, without following redirects. Imports aiohttp (0.2 s)."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Self

from yarl import URL

from internal.egress.failures import explain
from internal.egress.messages import SessionRequest
from internal.egress.policy import provider_policy
from internal.egress.session import HttpSession
from internal.llm.addresses.model_list import parse_models, parse_windows
from internal.llm.addresses.variants import WireFormat, place_of
from internal.llm.lenient_json import decode_json, one_line
from internal.llm.server_answers import AddressAnswer, AnswerKind, is_login_path, judge
from internal.llm.transport import HEADERS, ApiKey
from internal.normal_forms.urls import join_url

CONNECT_SECONDS = 4.0
ANSWER_SECONDS = 8.0
"""The longest time of one request. A server that is asked for nothing answers at once."""
MAX_LIST_BYTES = 4 * 1024 * 1024
_MAX_OTHER_BYTES = 256 * 1024
_API_VERSION = "2023-06-01"  # every server of the format knows it, and its list is the same
_LISTS: Mapping[WireFormat, str] = {"openai": "/models", "anthropic": "/v1/models?limit=1000"}
_REPLIES: Mapping[WireFormat, str] = {"openai": "/chat/completions", "anthropic": "/v1/messages"}


class AddressProber:
    """Tries addresses with one key. Use it as an async context manager.

    `key_header` is the header of the key; `authorization` gets it as a bearer token. No answer is
    waited for longer than `answer_seconds`.
    """

    def __init__(
        self,
        key: ApiKey,
        *,
        key_header: str = "authorization",
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._key, self._key_header = key, key_header
        self._answer_seconds = answer_seconds

    async def __aenter__(self) -> Self:
        self._session = HttpSession(
            provider_policy(),
            keepalive_seconds=self._answer_seconds,
            connect_seconds=CONNECT_SECONDS,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def try_address(self, address: str, wire: WireFormat, *, with_key: bool) -> AddressAnswer:
        """Ask for the list of models, then send an empty request, which no model answers.

        Both are needed: some servers list their models at paths where they take no requests, or
        to everybody, whatever the key.
        """
        listing = await self.list_models(address, wire, with_key=with_key)
        if not listing.is_heard or listing.kind == "redirect":
            return listing
        taken = await self._request(
            "POST", f"{address}{_REPLIES[wire]}", wire, with_key=with_key, body=b"{}"
        )
        if taken.kind == "taken" and listing.kind == "models":
            return taken._replace(kind="models", models=listing.models, windows=listing.windows)
        return taken._replace(models=listing.models, windows=listing.windows)

    async def list_models(self, address: str, wire: WireFormat, *, with_key: bool) -> AddressAnswer:
        """Ask for the list of models; `models` is set if there is one."""
        found = await self._request("GET", f"{address}{_LISTS[wire]}", wire, with_key=with_key)
        if found.kind != "models" and found.is_heard and wire == "openai":
            place = place_of(address)
            if place.port == 11434:  # noqa: PLR2004 - Ollama, of a version without the other list
                native = f"{place.origin}/api/tags"
                own = await self._request("GET", native, wire, with_key=with_key)
                return own if own.kind == "models" else found
        return found

    async def _request(
        self,
        method: str,
        url: str,
        wire: WireFormat,
        *,
        with_key: bool,
        body: bytes | None = None,
    ) -> AddressAnswer:
        headers = dict(HEADERS)
        if wire == "anthropic":
            headers["anthropic-version"] = _API_VERSION
        if body is not None:
            headers["content-type"] = "application/json"
        if with_key:
            headers |= self._key.header(self._key_header)
        request = SessionRequest(method, URL(url, encoded=True), headers, body)
        try:
            async with asyncio.timeout(self._answer_seconds):
                return await self._exchange(request, url)
        except HttpSession.errors as error:
            kind, reason = _cause(error)
            return AddressAnswer(kind, 0, one_line(reason, 120))

    async def _exchange(self, request: SessionRequest, url: str) -> AddressAnswer:
        max_bytes = MAX_LIST_BYTES if request.method == "GET" else _MAX_OTHER_BYTES
        response = await self._session.fetch(request, max_bytes)
        is_list = request.method == "GET" and response.status == HTTPStatus.OK
        models = parse_models(response.body) if is_list else None
        if models is not None:
            windows = parse_windows(response.body)
            return AddressAnswer("models", response.status, models=models, windows=windows)
        try:
            body = decode_json(response.body)
        except (ValueError, RecursionError):
            body = response.body.decode("utf-8", "replace")
        answer = judge(response.status, response.headers, body)
        return _redirected(answer, url) if answer.kind == "redirect" else answer


def _redirected(answer: AddressAnswer, url: str) -> AddressAnswer:
    """Return a redirect with its whole target, without the query; a login for a page to sign in."""
    try:
        target = place_of(join_url(url, answer.detail)).address
    except ValueError:
        return answer._replace(kind="odd", detail="")
    if is_login_path(target) and not is_login_path(url):
        return answer._replace(kind="login", detail=one_line(target, 200))
    return answer._replace(detail=one_line(target, 200))


def _cause(error: Exception) -> tuple[AnswerKind, str]:
    """Return the kind of a connection's failure, and its reason."""
    kind, reason = explain(error)
    match kind:
        case "not_http" | "large_head" | "broken_off":
            return "closed", reason
        case "refused" | "unknown_host" | "no_tls" | "silent":
            return kind, ""  # the kind says it
        case "unreachable" | "closed":
            return kind, reason.lower()
        case _:
            return kind, reason
