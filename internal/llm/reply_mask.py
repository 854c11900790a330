"""Masks the secrets that a model or its provider repeats in a reply."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

import msgspec

from internal.agent.domain.messages import Part
from internal.agent.domain.secrets import StreamMask, mask_secrets_in_json
from internal.agent.ports.llm import (
    ModelResponse,
    ModelStreamEvent,
    ReplyRevised,
    StreamRestarted,
    TextDelta,
)

_parts = msgspec.json.Decoder(tuple[Part, ...])


async def mask_reply(
    stream: AsyncGenerator[ModelStreamEvent, None],
) -> AsyncGenerator[ModelStreamEvent, None]:
    """Yield the events of a stream with every secret masked, and close the stream."""
    mask = _ReplyMask()
    async with aclosing(stream):
        async for event in stream:
            for shown in mask.feed(event):
                yield shown


class _ReplyMask:
    """Masks the secrets in one streamed reply, also one that is split between two deltas."""

    def __init__(self) -> None:
        self._streams = {False: StreamMask(), True: StreamMask()}  # by `reasoning`

    def feed(self, event: ModelStreamEvent) -> Iterator[ModelStreamEvent]:
        """Yield an event as it may be seen. The start of a secret is held back until the next."""
        match event:
            case TextDelta(text, n, reasoning):
                if shown := self._streams[reasoning].feed(text):
                    yield TextDelta(shown, n, reasoning)
            case ModelResponse(parts):
                for reasoning, stream in self._streams.items():
                    if shown := stream.flush():
                        yield TextDelta(shown, 1, reasoning)
                yield msgspec.structs.replace(event, parts=mask_parts(parts))
            case ReplyRevised(thought, answer):
                self._forget()
                texts = {False: answer, True: thought}
                safe = {kind: stream.feed(texts[kind]) for kind, stream in self._streams.items()}
                yield ReplyRevised(safe[True], safe[False])
            case StreamRestarted():
                self._forget()
                yield event
            case _:
                yield event

    def _forget(self) -> None:
        self._streams = {False: StreamMask(), True: StreamMask()}


def mask_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a message with every secret masked, in arguments of calls as well."""
    encoded = msgspec.json.encode(parts)
    masked = mask_secrets_in_json(encoded)
    return parts if masked == encoded else _parts.decode(masked)
