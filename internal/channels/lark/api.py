"""Lark's REST API: access tokens, retries, timeouts, error mapping and the calls in use.

Used instead of lark-oapi, whose REST client (1.7.5) opens a TLS connection per call, keeps rejected
tokens for hours, blocks the loop while it fetches one, and loads 170 MB of models.
"""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from cachetools import LRUCache

from internal.agent.domain.secrets import mask_secrets, register_secret
from internal.agent.domain.text import truncate_line
from internal.agent.ports.runtime import Clock
from internal.channels.chat.transport import SentPost, TransportRejected, TransportUnavailable
from internal.channels.lark.connection import AppCredentials
from internal.channels.lark.network import (
    KEEPALIVE_SECONDS,
    as_log_id,
    read_log_id,
    with_log_id,
)
from internal.egress.messages import (
    SessionRequest,
    SessionResponse,
    UploadedFile,
    encode_form,
    quoted_url,
)
from internal.egress.session_loader import load_sessions
from internal.normal_forms.time_zones import check_time_zone

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from internal.egress.session import HttpSession

INVALID_TOKEN_CODES = frozenset({99991661, 99991663})
_RATE_LIMIT_CODES = frozenset({99991400, 230020, 11232, 230049, 1000004, 1000005})
_RESET_HEADER = "x-ogw-ratelimit-reset"
_TOKEN_PATH = "/open-apis/auth/v3/tenant_access_token/internal"  # noqa: S105  # an address
_RENEWAL_MARGIN_SECONDS = 600.0
_CREDENTIAL_RETRY_SECONDS = 30.0
_TOO_MANY, _SERVER_ERROR, _GATEWAY_TIMEOUT = 429, 500, 504
_CARD_CODE = re.compile(r"\bErrCode: ?(\d{1,12})\b")


CONTENT_CODES = frozenset({230022, 230028})
"""A content check of the organization refused the message."""
PERMISSION_CODES = frozenset({230006, 230027, 99991672})
"""The bot feature is off, or a scope is missing."""


class LarkRejected(TransportRejected):
    """Lark rejected the call and did nothing; repeating it would be rejected as well.

    `log_id` is Lark's id of the call, which its support asks for; "" if the response has none.
    `card_code` is the code of the card's own error, which Lark reports inside of the message of a
    general one, or else `code`.
    """

    def __init__(self, code: int, sentence: str, log_id: str = "") -> None:
        super().__init__(with_log_id(f"Lark rejected ({code}): {sentence}", log_id))
        self.code, self.log_id = code, log_id
        inner = _CARD_CODE.search(sentence)
        self.card_code = int(inner[1]) if inner else code
        if code in CONTENT_CODES:
            self.refusal = "content"
        elif code in PERMISSION_CODES:
            self.refusal = "permission"


class LarkUnavailable(TransportUnavailable):
    """The call failed for now; retrying after `wait` seconds may succeed.

    `unconfirmed`: Lark may have carried it out. `is_failure`: Lark reported an error of its own, or
    its response was lost; it was neither busy nor unreachable. `log_id` is as in `LarkRejected`,
    that of the last attempt; a call without a response has none.
    """

    def __init__(
        self,
        sentence: str,
        wait: float = 0.0,
        *,
        unconfirmed: bool = False,
        is_failure: bool = False,
        log_id: str = "",
    ) -> None:
        super().__init__(sentence, wait, unconfirmed=unconfirmed)
        self.is_failure = is_failure or unconfirmed
        self.log_id = log_id


CallKind = Literal[
    "reply", "replace", "question", "upload", "download", "read", "final", "progress", "reaction"
]
"""Purposes of calls, the most important first. `final` is the last state of a display."""

_SLOTS: dict[CallKind, int] = {
    "reply": 16,
    "replace": 24,
    "question": 4,
    "upload": 4,
    "download": 4,
    "read": 4,
    "final": 2,
    "progress": 4,
    "reaction": 2,
}
"""Number of calls of a kind that may be open at once. No kind takes the slots of another."""


class SendPolicy(NamedTuple):
    """Number of attempts, longest delay between them and timeout of one attempt, in seconds.

    The timeout of a single attempt includes the wait for a slot.
    """

    max_attempts: int = 4
    max_delay: float = 10.0
    timeout: float = 15.0
    kind: CallKind = "reply"


REPLY_POLICY = SendPolicy(max_attempts=2, max_delay=5.0)
QUESTION_POLICY = SendPolicy(max_attempts=2, max_delay=5.0, kind="question")
"""Few attempts: the outbox repeats them, and other messages of the chat wait meanwhile."""
_READ_POLICY = SendPolicy(kind="read")
_UPLOAD_POLICY = SendPolicy(max_attempts=2, max_delay=5.0, timeout=60.0, kind="upload")
DOWNLOAD_SILENCE_SECONDS = 30.0
"""A download from which nothing arrives for so long has failed."""
FINAL_POLICY = SendPolicy(max_attempts=1, timeout=10.0, kind="final")
"""The caller repeats the call later."""
_PROBE_POLICY = SendPolicy(max_attempts=1, timeout=5.0, kind="read")
PROGRESS_POLICY = SendPolicy(max_attempts=1, timeout=5.0, kind="progress")
_REACTION_POLICY = SendPolicy(max_attempts=1, timeout=5.0, kind="reaction")


@dataclass(frozen=True, slots=True)
class LarkRequest:
    """A request. It must be safe to repeat: it reads, replaces or carries a `uuid`."""

    method: str
    path: str
    query: Mapping[str, str | Sequence[str]] | None = None
    body: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None
    file: UploadedFile | None = None
    file_field: str = "file"


_MAX_TIME_ZONES = 10_000


class LarkDownload(NamedTuple):
    """The content type of a response, and its content in pieces."""

    content_type: str
    chunks: AsyncIterator[bytes]


class _Response(msgspec.Struct):
    code: int
    msg: str = ""
    data: dict[str, Any] | None = None
    bot: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    tenant_access_token: str = ""
    expire: float = 0


_decoder = msgspec.json.Decoder(_Response)


class LarkClient:
    """An HTTP client for one app. Call `close` when done."""

    def __init__(self, credentials: AppCredentials, clock: Clock) -> None:
        self._credentials, self._clock = credentials, clock
        self._http: HttpSession | None = None
        self._token, self._valid_until = "", 0.0
        self._token_lock, self._open_lock = asyncio.Lock(), asyncio.Lock()
        self._renewal_failure: LarkUnavailable | None = None
        self._slots = {kind: asyncio.Semaphore(count) for kind, count in _SLOTS.items()}

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()

    async def call(self, call: LarkRequest, policy: SendPolicy = REPLY_POLICY) -> dict[str, Any]:
        """Send a request and return the response's data.

        Raises:
            LarkRejected: Lark rejected the request.
            LarkUnavailable: All attempts failed, or the next one would be too late.
        """
        unconfirmed, attempts = False, 0
        while True:
            try:
                return await self._with_token(call, policy)
            except LarkUnavailable as busy:
                attempts += 1
                unconfirmed = unconfirmed or busy.unconfirmed
                wait = max(busy.wait, random.uniform(0.25, 0.5) * 2**attempts)  # noqa: S311 - no secret
                if attempts == policy.max_attempts or wait > policy.max_delay:
                    busy.unconfirmed = unconfirmed
                    raise
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def download(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[LarkDownload]:
        """Open a response that is not JSON, to be read in pieces.

        Raises:
            LarkRejected: Lark rejected the request.
            LarkUnavailable: it failed for now, perhaps while the response is read.
        """
        http = await self._session()
        async with (
            self._slots["download"],
            await self._open_download(http, LarkRequest("GET", path, query=query)) as response,
        ):
            content_type = response.headers.get("content-type", "")
            yield LarkDownload(content_type, self._chunks(http, response))

    async def _open_download(self, http: "HttpSession", call: LarkRequest) -> "ClientResponse":
        """Open a response; a token that Lark no longer accepts is replaced once."""
        for is_first in (True, False):
            token = await self._valid_token()
            async with self._download_step(http):
                response = await http.send(self._request(call, token))
                answer = SessionResponse(response.status, response.headers, b"")
                if answer.is_success and not _is_error_object(answer.headers):
                    return response
                async with response:
                    answer = answer._replace(body=await response.read())
            try:
                read_response(answer)
            except LarkRejected as rejected:
                if not is_first or rejected.code not in INVALID_TOKEN_CODES:
                    raise
            else:
                raise LarkUnavailable("Lark returned no file")
            if self._token == token:
                self._token = ""
        raise LarkUnavailable("Lark returned no file")

    async def _chunks(
        self, http: "HttpSession", response: "ClientResponse"
    ) -> AsyncGenerator[bytes]:
        while True:
            async with self._download_step(http):
                chunk = await response.content.readany()
            if not chunk:
                return
            yield chunk

    @asynccontextmanager
    async def _download_step(self, http: "HttpSession") -> AsyncGenerator[None]:
        """Limit the time of a block that waits for Lark, and translate its errors."""
        try:
            async with asyncio.timeout(DOWNLOAD_SILENCE_SECONDS):
                yield
        except http.errors as error:
            raise LarkUnavailable(f"the download broke off: {self._explain(error)}") from error

    async def _with_token(self, call: LarkRequest, policy: SendPolicy) -> dict[str, Any]:
        """Send a request; a token that Lark no longer accepts is replaced once."""
        token = await self._valid_token()
        try:
            return await self._authorized(call, token, policy)
        except LarkRejected as rejected:
            if rejected.code not in INVALID_TOKEN_CODES:
                raise
        if self._token == token:
            self._token = ""
        try:
            return await self._authorized(call, await self._valid_token(), policy)
        except LarkRejected as rejected:
            if rejected.code in INVALID_TOKEN_CODES:
                raise LarkUnavailable(
                    str(rejected), wait=_CREDENTIAL_RETRY_SECONDS, log_id=rejected.log_id
                ) from rejected
            raise

    async def _authorized(
        self, call: LarkRequest, token: str, policy: SendPolicy
    ) -> dict[str, Any]:
        slot = self._slots[policy.kind]
        try:
            async with asyncio.timeout(policy.timeout if policy.max_attempts == 1 else None):
                await slot.acquire()
        except TimeoutError as error:
            raise LarkUnavailable(f"too many open calls of the kind {policy.kind}") from error
        try:
            answer = await self._send(call, token, policy.timeout)
        finally:
            slot.release()
        return answer.data or ({"bot": answer.bot} if answer.bot else {})

    async def _valid_token(self) -> str:
        """Return the tenant access token; it is renewed before it expires.

        Calls that wait for the same renewal share its outcome.
        """
        earlier = self._renewal_failure
        async with self._token_lock:
            if self._token and self._clock.monotonic() < self._valid_until:
                return self._token
            if self._renewal_failure is earlier:
                self._renewal_failure = await self._renew_token()
            if (failure := self._renewal_failure) is not None:
                # nothing was sent: the outcome of the call itself is known
                raise LarkUnavailable(
                    f"no access token: {failure}", failure.wait, log_id=failure.log_id
                )
            return self._token

    async def _renew_token(self) -> LarkUnavailable | None:
        """Fetch a token; return why that failed."""
        body = {"app_id": self._credentials.app_id, "app_secret": self._credentials.secret}
        started = self._clock.monotonic()
        try:
            answer = await self._send(LarkRequest("POST", _TOKEN_PATH, body=body), "", 10.0)
        except LarkRejected as rejected:  # an administrator can fix it: keep what is to be sent
            return LarkUnavailable(
                str(rejected), wait=_CREDENTIAL_RETRY_SECONDS, log_id=rejected.log_id
            )
        except LarkUnavailable as unavailable:
            return unavailable
        self._token = answer.tenant_access_token
        register_secret(self._token, renewed=f"access token of {self._credentials.app_id}")
        self._valid_until = started + max(
            answer.expire - _RENEWAL_MARGIN_SECONDS, answer.expire / 2
        )
        return None

    async def _send(self, call: LarkRequest, token: str, seconds: float) -> _Response:
        http = await self._session()
        try:
            async with asyncio.timeout(seconds):
                response = await http.fetch(self._request(call, token))
        except http.unsent as error:
            raise LarkUnavailable(f"Lark is unreachable: {self._explain(error)}") from error
        except http.errors as error:
            raise LarkUnavailable(
                f"Lark's response was lost: {self._explain(error)}", unconfirmed=True
            ) from error
        return read_response(response)

    def _request(self, call: LarkRequest, token: str) -> SessionRequest:
        headers, body = {"user-agent": "Larkspur"}, None
        if token:
            headers["authorization"] = f"Bearer {token}"
        if call.file is not None:
            headers["content-type"], body = encode_form(call.form or {}, call.file, call.file_field)
        elif call.body is not None:
            headers["content-type"], body = "application/json", msgspec.json.encode(call.body)
        query = f"?{urlencode(call.query, doseq=True)}" if call.query else ""
        url = quoted_url(f"{self._credentials.origin}{call.path}{query}")
        return SessionRequest(call.method, url, headers, body, is_idempotent=True)

    def _explain(self, error: Exception) -> str:
        return self._credentials.network.explain(error, self._credentials.origin)

    async def _session(self) -> "HttpSession":
        if self._http is None:
            async with self._open_lock:
                if self._http is None:
                    network = self._credentials.network
                    open_session = await asyncio.to_thread(load_sessions, network.policy)
                    self._http = open_session(
                        keepalive_seconds=KEEPALIVE_SECONDS,
                        max_connections=sum(_SLOTS.values()) + 1,
                    )
        return self._http


def read_response(response: SessionResponse) -> _Response:
    """Return Lark's response.

    Raises:
        LarkRejected, LarkUnavailable: It reports a failure.
    """
    status, log_id = response.status, read_log_id(response.headers)
    try:
        answer = _decoder.decode(response.body)
    except msgspec.DecodeError as error:
        if status < _SERVER_ERROR and not response.is_success:
            raise LarkRejected(status, "HTTP error without details", log_id) from error
        sentence = with_log_id(f"Lark returned HTTP {status} without JSON", log_id)
        raise LarkUnavailable(sentence, unconfirmed=True, log_id=log_id) from error
    if answer.code == 0 and response.is_success:
        return answer
    log_id = log_id or as_log_id((answer.error or {}).get("log_id"))
    said = truncate_line(mask_secrets(answer.msg), 300)
    reason = with_log_id(f"{answer.code} {said}", log_id)
    if answer.code in _RATE_LIMIT_CODES or status == _TOO_MANY:
        wait = _reset_seconds(response.headers.get(_RESET_HEADER, ""))
        raise LarkUnavailable(f"Lark is busy: {reason}", wait, log_id=log_id)
    if status >= _SERVER_ERROR:  # with an error code, Lark says that the call was not carried out
        is_unknown = answer.code == 0 or status == _GATEWAY_TIMEOUT
        sentence = f"Lark failed: HTTP {status}, {reason}"
        raise LarkUnavailable(sentence, unconfirmed=is_unknown, is_failure=True, log_id=log_id)
    raise LarkRejected(answer.code, said, log_id)


def _is_error_object(headers: Mapping[str, str]) -> bool:
    """Return True unless a response to a download has a file; a file may be JSON as well."""
    is_json = headers.get("content-type", "").startswith("application/json")
    return is_json and "content-disposition" not in headers


def _reset_seconds(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 3600.0)
    except ValueError:
        return 0.0


_MESSAGES = "/open-apis/im/v1/messages"
_MAX_PAGES = 20
_WHOLE_CARDS = {"card_msg_content_type": "user_card_content"}
"""Otherwise Lark flattens cards, and replaces newer ones by a request to upgrade the client."""
CONTEXT_POLICY = SendPolicy(1, timeout=3.0, kind="read")
_MILLISECONDS = re.compile(r"\d{13}")
_CLICK_POLICY = SendPolicy(1, timeout=1.5, kind="read")  # part of a click's three seconds


_HISTORY_POLICY = SendPolicy(1, timeout=10.0, kind="read")
"""The caller repeats a look-up later, and waits as long as Lark asks."""


class MessagePage(NamedTuple):
    """Messages, and the token of the next page, "" if there is none."""

    items: list[Mapping[str, Any]]
    following: str


def read_milliseconds(text: str) -> int | None:
    """Return a time of Lark in milliseconds since 1970; None if it is implausible."""
    return int(text) if _MILLISECONDS.fullmatch(text) else None


def as_datetime(milliseconds: int | None) -> datetime | None:
    """Return a time in milliseconds since 1970 as a datetime in UTC."""
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def as_json(value: Any) -> str:
    """Return compact JSON text, as the `content` field expects."""
    return msgspec.json.encode(value).decode()


def is_open_id(name: str) -> bool:
    """Return True if an id is that of a person, not of a chat."""
    return name.startswith("ou_")


class LarkApi:
    """Messages, reactions, files and names, as one app."""

    def __init__(self, api: LarkClient) -> None:
        self._api = api
        self.time_zones: LRUCache[str, str] = LRUCache(_MAX_TIME_ZONES)
        """The time zones of people whose names were read, by open_id."""

    async def reply(
        self,
        message_id: str,
        kind: str,
        content: str,
        *,
        uuid: str,
        policy: SendPolicy = REPLY_POLICY,
    ) -> SentPost:
        """Reply to a message. A uuid is sent only once."""
        body = {"msg_type": kind, "content": content, "uuid": uuid}
        return await self._sent(
            LarkRequest("POST", _message_path(message_id, "/reply"), body=body), policy
        )

    async def create(
        self,
        chat_id: str,
        kind: str,
        content: str,
        *,
        uuid: str,
        policy: SendPolicy = REPLY_POLICY,
    ) -> SentPost:
        """Send a message to a chat, or to the direct chat of an open_id, once for a uuid."""
        body = {"receive_id": chat_id, "msg_type": kind, "content": content, "uuid": uuid}
        query = {"receive_id_type": "open_id" if is_open_id(chat_id) else "chat_id"}
        return await self._sent(LarkRequest("POST", _MESSAGES, query=query, body=body), policy)

    async def patch_card(self, message_id: str, card: str, policy: SendPolicy) -> None:
        """Replace a card."""
        await self._api.call(
            LarkRequest("PATCH", _message_path(message_id), body={"content": card}), policy
        )

    async def edit(self, message_id: str, kind: str, content: str, policy: SendPolicy) -> None:
        """Replace a text or a rich text; Lark accepts 20 edits of a message."""
        body = {"msg_type": kind, "content": content}
        await self._api.call(LarkRequest("PUT", _message_path(message_id), body=body), policy)

    async def recall(self, message_id: str) -> None:
        """Recall a message of the bot."""
        await self._api.call(LarkRequest("DELETE", _message_path(message_id)), FINAL_POLICY)

    async def urge(self, message_id: str, open_id: str) -> None:
        """Alert a person to a message of the bot; repeated at once, it is the same alert."""
        path = _message_path(message_id, "/urgent_app")
        call = LarkRequest(
            "PATCH", path, query={"user_id_type": "open_id"}, body={"user_id_list": [open_id]}
        )
        data = await self._api.call(call, FINAL_POLICY)
        if data.get("invalid_user_id_list"):
            raise LarkRejected(0, f"{open_id} cannot be alerted")

    async def react(self, message_id: str, emoji: str) -> str:
        """Add an emoji to a message and return the reaction's id."""
        body = {"reaction_type": {"emoji_type": emoji}}
        data = await self._api.call(
            LarkRequest("POST", _message_path(message_id, "/reactions"), body=body),
            _REACTION_POLICY,
        )
        return str(data.get("reaction_id", ""))

    async def unreact(self, message_id: str, reaction_id: str) -> None:
        """Remove a reaction of the bot."""
        path = _message_path(message_id, f"/reactions/{quote(reaction_id, safe='')}")
        await self._api.call(LarkRequest("DELETE", path), _REACTION_POLICY)

    async def upload(self, name: str, content: bytes, file_type: str = "stream") -> str:
        """Upload a file and return its key."""
        form = {"file_type": file_type, "file_name": name}
        file = (name, content, "application/octet-stream")
        call = LarkRequest("POST", "/open-apis/im/v1/files", form=form, file=file)
        return _created_id(await self._api.call(call, _UPLOAD_POLICY), "file_key")

    async def upload_picture(self, name: str, content: bytes) -> str:
        """Upload a picture and return its key."""
        file = (name, content, "application/octet-stream")
        form = {"image_type": "message"}
        call = LarkRequest(
            "POST", "/open-apis/im/v1/images", form=form, file=file, file_field="image"
        )
        return _created_id(await self._api.call(call, _UPLOAD_POLICY), "image_key")

    async def bot_open_id(self) -> str:
        """Return the bot's open_id."""
        data = await self._api.call(LarkRequest("GET", "/open-apis/bot/v3/info"), _READ_POLICY)
        return _required_text(data.get("bot") or {}, "open_id")

    async def is_working(self, message_id: str) -> bool:
        """Return True if Lark answers another call: to read that message or, with "", the bot."""
        path = _message_path(message_id) if message_id else "/open-apis/bot/v3/info"
        try:
            await self._api.call(LarkRequest("GET", path), _PROBE_POLICY)
        except LarkUnavailable:
            return False
        except LarkRejected:
            pass  # an answer as well
        return True

    async def tenant_key(self) -> str:
        """Return the tenant in which the app is installed; requires a scope of its own."""
        call = LarkRequest("GET", "/open-apis/tenant/v2/tenant/query")
        data = await self._api.call(call, _CLICK_POLICY)
        return _required_text(data.get("tenant") or {}, "tenant_key")

    async def name_of(self, open_id: str) -> str:
        """Return a person's name; requires a scope of its own."""
        path = f"/open-apis/contact/v3/users/{quote(open_id, safe='')}"
        data = await self._api.call(
            LarkRequest("GET", path, query={"user_id_type": "open_id"}), _CLICK_POLICY
        )
        user = data.get("user") or {}
        self._keep_time_zone(open_id, user)
        return _required_text(user, "name")

    def _keep_time_zone(self, open_id: str, user: Mapping[str, Any]) -> None:
        with suppress(ValueError, TypeError):
            self.time_zones[open_id] = check_time_zone(user.get("time_zone") or "")

    async def members(self, chat_id: str) -> AsyncGenerator[tuple[str, str]]:
        """Yield the open_ids and names of the people in a chat; requires a scope of its own."""
        path = f"/open-apis/im/v1/chats/{quote(chat_id, safe='')}/members"
        query = {"member_id_type": "open_id", "page_size": "100"}
        for _ in range(_MAX_PAGES):
            data = await self._api.call(LarkRequest("GET", path, query=query), _READ_POLICY)
            for item in _items(data):
                if item.get("member_id"):
                    yield str(item["member_id"]), str(item.get("name") or "")
            query["page_token"] = str(data.get("page_token") or "")
            if not data.get("has_more") or not query["page_token"]:
                return

    async def names_of(self, open_ids: Sequence[str]) -> dict[str, str]:
        """Return the names by open_id of at most 50 people, without people hidden from the app.

        Requires the scope of `name_of`.
        """
        query: dict[str, str | Sequence[str]] = {"user_ids": open_ids, "user_id_type": "open_id"}
        data = await self._api.call(
            LarkRequest("GET", "/open-apis/contact/v3/users/batch", query=query), _CLICK_POLICY
        )
        for each in _items(data):
            self._keep_time_zone(str(each.get("open_id")), each)
        return {str(each.get("open_id")): str(each.get("name") or "") for each in _items(data)}

    async def is_direct(self, chat_id: str) -> bool:
        """Return True if a chat is a direct one; False also if Lark does not show the chat."""
        path = f"/open-apis/im/v1/chats/{quote(chat_id, safe='')}"
        try:
            data = await self._api.call(LarkRequest("GET", path), CONTEXT_POLICY)
        except LarkRejected:
            return False
        return data.get("chat_mode") == "p2p"

    async def group_name(self, chat_id: str) -> str:
        """Return the name of a group of the bot; requires a scope of its own."""
        path = f"/open-apis/im/v1/chats/{quote(chat_id, safe='')}"
        data = await self._api.call(LarkRequest("GET", path), _CLICK_POLICY)
        return _required_text(data, "name")

    async def message_with_forwarded(
        self, message_id: str, policy: SendPolicy = _READ_POLICY
    ) -> list[Mapping[str, Any]]:
        """Return a message, with the card as it was sent, and the messages that it forwards.

        Returns an empty list if there is no such message.
        """
        call = LarkRequest("GET", _message_path(message_id), query=_WHOLE_CARDS)
        return _items(await self._api.call(call, policy))

    async def message(self, message_id: str) -> Mapping[str, Any]:
        """Return a message, with the card as it was sent, or an empty mapping."""
        items = await self.message_with_forwarded(message_id)
        return items[0] if items else {}

    async def newest_messages(
        self, kind: str, container: str, *, until: float | None, limit: int
    ) -> list[Mapping[str, Any]]:
        """Return the newest messages of a `chat` or a `thread`, newest first, with one call.

        `until` is in seconds; a thread cannot be limited by time.
        """
        query = {
            "container_id_type": kind,
            "container_id": container,
            "sort_type": "ByCreateTimeDesc",
            "page_size": str(limit),
            **_WHOLE_CARDS,
        }
        if kind == "chat" and until is not None:
            query["end_time"] = str(int(until) + 1)
        data = await self._api.call(LarkRequest("GET", _MESSAGES, query=query), CONTEXT_POLICY)
        return _items(data)

    async def message_page(
        self, kind: str, container: str, *, since: float, token: str = ""
    ) -> MessagePage:
        """Return 50 messages of a `chat` or a `thread`, newest first; `token` is of the last page.

        `since` is in seconds; a thread cannot be limited by time.
        """
        query = {
            "container_id_type": kind,
            "container_id": container,
            "sort_type": "ByCreateTimeDesc",
            "page_size": "50",
        }
        if kind == "chat":
            query["start_time"] = str(max(int(since), 0))
        if token:
            query["page_token"] = token
        data = await self._api.call(LarkRequest("GET", _MESSAGES, query=query), _HISTORY_POLICY)
        following = str(data.get("page_token") or "") if data.get("has_more") else ""
        return MessagePage(_items(data), following)

    async def messages(
        self, kind: str, container: str, since: float
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """Yield the messages of a `chat` or a `thread` since a time in seconds, oldest first."""
        query = {
            "container_id_type": kind,
            "container_id": container,
            "sort_type": "ByCreateTimeAsc",
            "page_size": "50",
            **_WHOLE_CARDS,
        }
        if kind == "chat":
            query["start_time"] = str(int(since))
        for _ in range(_MAX_PAGES):
            data = await self._api.call(LarkRequest("GET", _MESSAGES, query=query), _READ_POLICY)
            for item in data.get("items") or ():
                yield item
            query["page_token"] = str(data.get("page_token") or "")
            if not data.get("has_more") or not query["page_token"]:
                return

    async def _sent(self, call: LarkRequest, policy: SendPolicy) -> SentPost:
        data = await self._api.call(call, policy)
        created = read_milliseconds(str(data.get("create_time", "")))
        return SentPost(_created_id(data, "message_id"), as_datetime(created))


def _message_path(message_id: str, rest: str = "") -> str:
    return f"{_MESSAGES}/{quote(message_id, safe='')}{rest}"


def _items(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = data.get("items")
    found = items if isinstance(items, list) else []
    return [item for item in found if isinstance(item, dict)]


def _created_id(data: Mapping[str, Any], name: str) -> str:
    """Return the id of the created object; without one the outcome of the call is unknown."""
    try:
        return _required_text(data, name)
    except LarkRejected as error:
        raise LarkUnavailable(f"success without a {name}", unconfirmed=True) from error


def _required_text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise LarkRejected(0, f"the response has no {name}")
    return value
