"""What the agent asks of a model."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from internal.agent.domain.messages import Message, Part
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import PriceTable, Usage

ToolChoice = Literal["auto", "none"]


class ModelRequest(msgspec.Struct, frozen=True):
    """One call of a model. The roles of `messages` alternate and start with `user`."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_output_tokens: int = 8192
    temperature: float | None = None


class TextDelta(msgspec.Struct, frozen=True):
    """The next words of a reply: `n` of the model's pieces joined. `reasoning`: not the answer."""

    text: str
    n: int = 1
    reasoning: bool = False


class StreamRestarted(msgspec.Struct, frozen=True):
    """The connection broke: what was said so far is void, the reply begins again."""

    reason: str


class ModelResponse(msgspec.Struct, frozen=True):
    """A whole reply, the last piece of every stream.

    `stop` is `length` when the model ran into `max_output_tokens`. A call whose arguments were no
    JSON object is there with `malformed` set. `parts` may be empty.
    """

    parts: tuple[Part, ...]
    usage: Usage
    stop: Literal["end", "tools", "length", "refused"]
    model: str
    request_id: str = ""


ModelStreamEvent = TextDelta | StreamRestarted | ModelResponse


class ModelLimits(msgspec.Struct, frozen=True):
    """Two numbers, in tokens: what fits in altogether, and how long one reply may be."""

    context_window: int
    max_output_tokens: int


class ModelClient(Protocol):
    """A way to one or several models. Safe to use from many runs at once."""

    provider: str

    def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the reply as it comes, then one Reply. Closing the generator ends the call.

        Raises:
            ModelKeyRefused: the key is missing or wrong.
            ModelBusy: rate limited or overloaded, before or inside the stream.
            ModelUnreachable: the connection failed or broke, or what came was not the protocol.
            ContextTooLong: the provider says that the request does not fit.
            ModelRejected: the provider will not take this request.
        """
        ...

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class ModelBook:
    """Limits and prices by model name."""

    prices: PriceTable
    limits: Callable[[str], ModelLimits]
    temperature: float | None = None
