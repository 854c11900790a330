"""The offline demo model: a few rules that drive the real plan, tools and answers.

It needs no key and no network, keeps no state, and gives the same messages the same response.
"""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from internal.agent.domain.messages import Part, Text, ToolCall
from internal.agent.domain.text import replace_surrogates_in
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelRequest, ModelResponse, ModelStreamEvent, TextDelta
from internal.model_providers.registry import OFFLINE_MODEL

_PIECE = r"[\u3000-\u9fff\uff00-\uffef]|\S+?(?=[\u3000-\u9fff\uff00-\uffef])|\S+\s*|\s+"


class OfflineModel:
    """The demo model as a `ModelClient`. Its responses carry the model name `offline-demo`."""

    provider = "offline"

    def check_key(self) -> None:
        """Do nothing: no key is needed."""

    def preload(self) -> None:
        """Start reading the rules in the background."""
        threading.Thread(target=_read_rules).start()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the text word by word, then one `ModelResponse`."""
        from internal.llm.offline.conversation import Conversation  # noqa: PLC0415 - as below

        async for event in stream_parts(request, tuple(Conversation(request).reply())):
            yield event

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


async def stream_parts(
    request: ModelRequest, parts: tuple[Part, ...]
) -> AsyncGenerator[ModelStreamEvent, None]:
    """Yield the text of a reply word by word, then the reply with an estimate of its tokens."""
    for part in parts:
        for piece in re.findall(_PIECE, part.text) if isinstance(part, Text) else ():
            yield TextDelta(piece)
            await asyncio.sleep(0)  # let other tasks run, as a remote model would
    called = any(isinstance(part, ToolCall) for part in parts)
    yield ModelResponse(
        parts=parts,
        usage=Usage(
            input_tokens=_tokens(request.system) + _tokens([*request.messages]),
            output_tokens=_tokens(parts),
        ),
        stop="tools" if called else "end",
        model=OFFLINE_MODEL,
    )


def _read_rules() -> None:
    from internal.llm.offline.conversation import Conversation  # noqa: PLC0415 - slow import

    Conversation.read_rules()


def _encodable(value: object) -> Any:
    return replace_surrogates_in(msgspec.to_builtins(value))


def _tokens(value: object) -> int:
    """Estimate tokens: four bytes of UTF-8 per token."""
    return len(msgspec.json.encode(_encodable(value))) // 4
