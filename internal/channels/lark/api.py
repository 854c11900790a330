"""The one place that calls Lark's REST API: tokens, retries, time limits, what failures mean.

The long connection is the SDK's; these calls are our own. The SDK's cost a TLS handshake each, keep
a refused token for hours and block the loop for a new one (lark-oapi 1.7.5), and its models of
calls 170 MB.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.text import truncate_line
from internal.agent.ports.runtime import Clock
from internal.channels.lark.connection import Login

if TYPE_CHECKING:
    import httpx

TOKEN_BAD = frozenset({99991661, 99991663})
_SLOW_DOWN = frozenset({99991400, 230020, 11232, 230049, 1000004, 1000005})
_RESET = "x-ogw-ratelimit-reset"
_TOKEN_PATH = "/open-apis/auth/v3/tenant_access_token/internal"  # noqa: S105  # an address
_EARLY_SECONDS = 600.0
_AT_ONCE = 16
_CREDENTIAL_WAIT = 30.0
_TOO_MANY, _SERVER_ERROR = 429, 500


class LarkRefused(LarkspurError):
    """Lark said no, and nothing was done: the same call would be refused again."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(f"Lark refused ({code}): {sentence}")
        self.code = code


class LarkBusy(LarkspurError):
    """No use now, worth another try in `wait` seconds. `doubtful`: it may have been done."""

    def __init__(self, sentence: str, wait: float = 0.0, *, doubtful: bool = False) -> None:
        super().__init__(sentence)
        self.wait = wait
        self.doubtful = doubtful


class Patience(NamedTuple):
    """How often a call is tried, the longest wait in between, and the time of one try, seconds."""

    tries: int = 4
    longest_wait: float = 10.0
    seconds: float = 15.0


PATIENT = Patience()
COSMETIC = Patience(tries=1, seconds=10.0)
"""For what may be left out: progress and reactions give way to answers."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call. Repeating it must be harmless: it reads, replaces, or carries a `uuid`."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None
    file: tuple[str, str, bytes] | None = None


class _Answer(msgspec.Struct):
    code: int
    msg: str = ""
    data: dict[str, Any] | None = None
    bot: dict[str, Any] | None = None
    tenant_access_token: str = ""
    expire: float = 0


_answer = msgspec.json.Decoder(_Answer)


class LarkApi:
    """Calls as one app. `close` when it is no longer needed."""

    def __init__(self, login: Login, clock: Clock) -> None:
        self._login, self._clock = login, clock
        self._http: httpx.AsyncClient | None = None
        self._token, self._fresh_until = "", 0.0
        self._renewing, self._opening = asyncio.Lock(), asyncio.Lock()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def call(self, call: Call, patience: Patience = PATIENT) -> dict[str, Any]:
        """Make a call and return its data.

        Raises:
            LarkRefused: Lark says no.
            LarkBusy: all tries failed, or the next one is too far away.
        """
        doubtful, tried = False, 0
        while True:
            try:
                return await self._with_token(call, patience.seconds)
            except LarkBusy as busy:
                tried += 1
                doubtful = doubtful or busy.doubtful
                wait = max(busy.wait, random.uniform(0.25, 0.5) * 2**tried)  # noqa: S311 - no secret
                if tried == patience.tries or wait > patience.longest_wait:
                    raise LarkBusy(str(busy), busy.wait, doubtful=doubtful) from busy
            await asyncio.sleep(wait)

    async def _with_token(self, call: Call, seconds: float) -> dict[str, Any]:
        """Make a call; a token that Lark does not take any more is replaced once."""
        token = await self._valid_token()
        try:
            return await self._authorized(call, token, seconds)
        except LarkRefused as refused:
            if refused.code not in TOKEN_BAD:
                raise
        if self._token == token:
            self._token = ""
        try:
            return await self._authorized(call, await self._valid_token(), seconds)
        except LarkRefused as refused:
            if refused.code in TOKEN_BAD:
                raise LarkBusy(str(refused), wait=_CREDENTIAL_WAIT) from refused
            raise

    async def _authorized(self, call: Call, token: str, seconds: float) -> dict[str, Any]:
        answer = await self._send(call, {"authorization": f"Bearer {token}"}, seconds)
        return answer.data or ({"bot": answer.bot} if answer.bot else {})

    async def _valid_token(self) -> str:
        """Return the tenant's token, fetching one before the old one ends."""
        async with self._renewing:
            if self._token and self._clock.monotonic() < self._fresh_until:
                return self._token
            body = {"app_id": self._login.app_id, "app_secret": self._login.secret}
            begun = self._clock.monotonic()
            try:
                answer = await self._send(Call("POST", _TOKEN_PATH, body=body), {}, 10.0)
            except LarkRefused as refused:  # somebody can mend it: what is to be sent waits
                raise LarkBusy(f"no token: {refused}", wait=_CREDENTIAL_WAIT) from refused
            self._token = answer.tenant_access_token
            self._fresh_until = begun + max(answer.expire - _EARLY_SECONDS, answer.expire / 2)
            return self._token

    async def _send(self, call: Call, headers: Mapping[str, str], seconds: float) -> _Answer:
        http = await self._client()
        import httpx  # noqa: PLC0415  # the one import point, with the one below

        files = None if call.file is None else {"file": _part(call.file)}
        try:
            async with self._slots, asyncio.timeout(seconds):
                response = await http.request(
                    call.method,
                    call.path,
                    params=call.query,
                    json=call.body,
                    data=call.form,
                    files=files,
                    headers=headers,
                )
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise LarkBusy(f"Lark cannot be reached: {_named(error)}") from error
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise LarkBusy(f"Lark's answer was lost: {_named(error)}", doubtful=True) from error
        return _read(response)

    async def _client(self) -> "httpx.AsyncClient":
        if self._http is None:
            async with self._opening:
                if self._http is None:
                    self._http = await asyncio.to_thread(_open, self._login.origin)
        return self._http


def _open(origin: str) -> "httpx.AsyncClient":
    import httpx  # noqa: PLC0415  # the one import point: comes with the SDK, only when Lark is on

    limits = httpx.Limits(max_connections=_AT_ONCE, keepalive_expiry=30.0)
    # no proxy: the long connection takes none either
    return httpx.AsyncClient(base_url=origin, limits=limits, timeout=None, trust_env=False)  # noqa: S113  # every call has its own


def _read(response: "httpx.Response") -> _Answer:
    """Return Lark's answer.

    Raises:
        LarkRefused, LarkBusy: it is a failure.
    """
    status = response.status_code
    try:
        answer = _answer.decode(response.content)
    except msgspec.DecodeError as error:
        if status < _SERVER_ERROR and not response.is_success:
            raise LarkRefused(status, "HTTP, without a reason") from error
        raise LarkBusy(f"Lark answered HTTP {status} without JSON", doubtful=True) from error
    if answer.code == 0 and response.is_success:
        return answer
    said = f"{answer.code} {truncate_line(answer.msg, 300)}"
    if answer.code in _SLOW_DOWN or status == _TOO_MANY:
        raise LarkBusy(f"Lark is busy: {said}", wait=_seconds(response.headers.get(_RESET, "")))
    if status >= _SERVER_ERROR:
        raise LarkBusy(f"Lark failed: HTTP {status}, {said}", doubtful=True)
    raise LarkRefused(answer.code, truncate_line(answer.msg, 300))


def _seconds(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 3600.0)
    except ValueError:
        return 0.0


def _part(file: tuple[str, str, bytes]) -> tuple[str, bytes, str]:
    name, media_type, content = file
    return name, content, media_type


def _named(error: Exception) -> str:
    return truncate_line(f"{type(error).__name__} {error}", 200)
