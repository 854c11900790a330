"""The way back to a client: every answer gets the headers that all have."""

from starlette.types import Message, Send

_ALWAYS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
_NO_STORE = (b"cache-control", b"no-store")


class Sender:
    """Sends an answer. `status` is 0 until it has begun; `raw` is for what follows the head."""

    def __init__(self, send: Send, request_id: str, more: list[tuple[bytes, bytes]]) -> None:
        self.raw = send
        self.status = 0
        self._headers = [*_ALWAYS, (b"x-request-id", request_id.encode()), *more]

    async def __call__(self, message: Message) -> None:
        """Send a message of ASGI."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = message["headers"]
            said = {name for name, _ in own}
            more = [header for header in (*self._headers, _NO_STORE) if header[0] not in said]
            message["headers"] = [*own, *more]
        await self.raw(message)
