"""Signed POST requests to addresses of the settings, private ones included."""

import asyncio
from typing import TYPE_CHECKING

from pydantic import SecretStr

from internal.agent.ports.runtime import Clock
from internal.egress.messages import Failure, SessionRequest, SessionResponse, quoted_url
from internal.egress.policy import webhook_policy
from internal.egress.session_loader import load_sessions
from internal.hooks.answer import MAX_ANSWER_BYTES, HookFailed
from internal.hooks.signature import sign

if TYPE_CHECKING:
    from internal.egress.session import HttpSession

_KEEPALIVE_SECONDS = 5.0


class SignedPoster:
    """Sends JSON. Follows no redirects and uses no proxy."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._http: HttpSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        message_id: str,
        secret: SecretStr | None,
        timeout_seconds: float,
    ) -> SessionResponse:
        """Send one request and return the response.

        Raises:
            HookFailed: there is no response in time, or it is too large.
        """
        if self._http is None:
            open_session = await asyncio.to_thread(load_sessions, webhook_policy)
            self._http = self._http or open_session(keepalive_seconds=_KEEPALIVE_SECONDS)
        http = self._http
        now = int(self._clock.now().timestamp())
        headers = {
            "accept": "*/*",
            "accept-encoding": "gzip, deflate",
            "content-type": "application/json",
            "user-agent": "larkspur",
            "webhook-id": message_id,
            "webhook-timestamp": str(now),
        }
        if secret is not None:
            signature = sign(secret.get_secret_value(), message_id, now, body)
            headers["webhook-signature"] = signature
        try:
            request = SessionRequest("POST", quoted_url(url), headers, body)
            async with asyncio.timeout(timeout_seconds):
                response = await http.fetch(request, MAX_ANSWER_BYTES + 1)
        except TimeoutError as error:
            raise HookFailed(f"did not answer within {timeout_seconds:g} s") from error
        except http.errors as error:
            raise HookFailed(f"cannot be reached: {_reason(http.explain(error))}") from error
        if len(response.body) > MAX_ANSWER_BYTES:
            raise HookFailed(f"answered more than {MAX_ANSWER_BYTES} bytes")
        return response


def _reason(failure: Failure) -> str:
    match failure.kind:
        case "certificate":
            return f"certificate verify failed: {failure.reason}"
        case "closed" if not failure.reason:
            return "it disconnected without an answer"
        case "no_tls" if not failure.reason:
            return "it does not speak TLS"
        case kind:
            return failure.reason or kind
