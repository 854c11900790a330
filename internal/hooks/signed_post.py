"""Signed POST requests to addresses of the settings, private ones included."""

import asyncio
import os
import ssl
from typing import TYPE_CHECKING, NamedTuple

from pydantic import SecretStr

from internal.agent.ports.runtime import Clock
from internal.hooks.answer import MAX_ANSWER_BYTES, HookFailed
from internal.hooks.signature import sign

if TYPE_CHECKING:
    import httpx

_IDLE_TIMEOUT_SECONDS = 600.0
"""The settings allow no longer timeout; each request has its own."""


class PostResponse(NamedTuple):
    """The status and the body of a response, and where it leads, "" for nowhere."""

    status: int
    body: bytes
    location: str = ""


class SignedPoster:
    """Sends JSON. Follows no redirects and uses no proxy."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._http: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        message_id: str,
        secret: SecretStr | None,
        timeout_seconds: float,
    ) -> PostResponse:
        """Send one request and return the response.

        Raises:
            HookFailed: there is no response in time, or it is too large.
        """
        import httpx  # noqa: PLC0415 - slow import; this is its only place

        if self._http is None:
            client = httpx.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=_IDLE_TIMEOUT_SECONDS
            )
            self._http = client
        now = int(self._clock.now().timestamp())
        headers = {
            "content-type": "application/json",
            "user-agent": "larkspur",
            "webhook-id": message_id,
            "webhook-timestamp": str(now),
        }
        if secret is not None:
            signature = sign(secret.get_secret_value(), message_id, now, body)
            headers["webhook-signature"] = signature
        try:
            async with (
                asyncio.timeout(timeout_seconds),
                self._http.stream("POST", url, content=body, headers=headers) as response,
            ):
                content = b""
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:
                        raise HookFailed(f"answered more than {MAX_ANSWER_BYTES} bytes")
                location = response.headers.get("location", "")
                return PostResponse(response.status_code, content, location)
        except TimeoutError as error:
            raise HookFailed(f"did not answer within {timeout_seconds:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HookFailed(f"cannot be reached: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return the reason of the system, which httpx hides behind a sentence of its own."""
    reason = str(error) or type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        # the numbers of OpenSSL are others
        if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
            # those of the resolver are negative
            reason = os.strerror(cause.errno) if cause.errno > 0 else cause.strerror or reason
        cause = cause.__cause__ or cause.__context__
    return reason
