"""The chunks of a streamed chat completion."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec

from internal.channels.web.completions.completion_objects import completion_usage, finish_reason
from internal.channels.web.completions.replies import PING, CompletionReply, ReplyEnd
from internal.channels.web.errors import HttpError


class CompletionHead(NamedTuple):
    """Common fields of the objects of a completion: id, time in seconds since 1970, and model."""

    id: str
    created: int
    model: str


class CompletionStream:
    """Server-sent events: the text of a reply, its end, and the usage if it is wanted."""

    def __init__(
        self, reply: CompletionReply, head: CompletionHead, *, includes_usage: bool
    ) -> None:
        self._reply = reply
        self._head = {**head._asdict(), "object": "chat.completion.chunk"}
        self._includes_usage = includes_usage

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the events."""
        yield self._chunk({"role": "assistant", "content": ""})
        try:
            async with aclosing(self._reply_chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            await self._reply.leave()

    async def _reply_chunks(self) -> AsyncGenerator[bytes]:
        try:
            async with aclosing(self._reply.pieces()) as pieces:
                async for piece in pieces:
                    yield self._chunk({"content": piece}) if piece else PING
            end = await self._reply.end()
        except HttpError as error:
            yield _event({"error": {"message": str(error), "code": error.code}})
        else:
            for chunk in self._end(end):
                yield chunk
        yield b"data: [DONE]\n\n"

    def _end(self, end: ReplyEnd) -> list[bytes]:
        chunks = [self._chunk({"content": end.rest})] if end.rest else []
        chunks.append(self._chunk({}, finish_reason(is_cut=end.is_cut)))
        if self._includes_usage:
            usage = completion_usage(end.usage)
            chunks.append(_event({**self._head, "choices": [], "usage": usage}))
        return chunks

    def _chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event({**self._head, "choices": [choice]})


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(content) + b"\n\n"
