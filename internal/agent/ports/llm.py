"""Model clients: requests, streamed replies, limits and prices."""

import math
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import Message, Part
from internal.agent.domain.react.steps import ReplyStop
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import PriceTable, Usage

DEFAULT_MAX_OUTPUT_TOKENS = 8_192
"""The longest reply of a model whose limit is unknown."""
MAX_REPLY_CHARACTERS = 2_000_000
"""Far more than 128,000 tokens. A longer reply is cut, as if the model had reached its limit."""
MISSING_IMAGE = "(an image that is not available)"
"""Text in place of an image that `ModelRequest.images` does not hold."""
ToolChoice = Literal["auto", "none"]


class ModelRequest(msgspec.Struct, frozen=True):
    """A request to a model. The roles of `messages` alternate and start with `user`.

    They are `RequestMessages` if their encodings are to be kept for later requests. `images` holds
    the images of the messages in base64, by SHA-256, without the unreadable ones. `origin` is the
    provider and the model of the request, as in `Message.origin`; with fallbacks the first of them,
    "" for the first of all. `found` are tools that are not offered but known to the model: calls of
    them in its text are calls.
    """

    model: str
    system: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS
    temperature: float | None = None
    patience_seconds: float = math.inf
    """Time for which the call may be repeated while the model is overloaded or unreachable."""
    images: Mapping[str, str] = {}
    origin: str = ""
    found: tuple[ToolSpec, ...] = ()


class TextDelta(msgspec.Struct, frozen=True):
    """The next text of a reply, `n` pieces joined. `reasoning`: not part of the answer."""

    text: str
    n: int = 1
    reasoning: bool = False


class ReplyRevised(msgspec.Struct, frozen=True):
    """The text so far was taken for the other kind; `reasoning` and `answer` are all of it."""

    reasoning: str
    answer: str = ""


class StreamRestarted(msgspec.Struct, frozen=True):
    """The connection broke: discard the text so far, the reply starts again."""

    reason: str


RetryReason = Literal["overloaded", "rate_limited", "loading", "unreachable"]


class RetryScheduled(msgspec.Struct, frozen=True):
    """The call failed; after `seconds` it is made again, for the `attempt`-th time.

    `attempts` is the number of the last attempt as far as it is known now, `cause` the error.
    """

    reason: RetryReason
    seconds: float
    attempt: int
    attempts: int = 0
    cause: str = ""


class ReplyPicture(msgspec.Struct, frozen=True):
    """A picture in a reply; the text has its `name` at its place. It becomes a file of the run."""

    name: str
    media_type: str
    content: bytes


class ModelResponse(msgspec.Struct, frozen=True):
    """The complete reply, the last item of every stream.

    `stop` is "length" if the model reached `max_output_tokens`. A call whose arguments are not a
    JSON object, or may have been cut, has `malformed` set. `parts` may be empty. `origin` is the
    provider and the model that answered, as in `Message.origin`. `instead_of` is the first
    requested model if it could not answer, else "". `repairs` are the kinds of repairs that the
    client made in the calls.
    """

    parts: tuple[Part, ...]
    usage: Usage
    stop: ReplyStop
    model: str
    request_id: str = ""
    origin: str = ""
    instead_of: str = ""
    repairs: tuple[str, ...] = ()
    pictures: tuple[ReplyPicture, ...] = ()


ModelStreamEvent = (
    TextDelta | ReplyRevised | StreamRestarted | RetryScheduled | RequestLoss | ModelResponse
)


class ModelLimits(msgspec.Struct, frozen=True):
    """The context window and the longest reply of a model, in tokens."""

    context_window: int
    max_output_tokens: int


class ModelClient(Protocol):
    """Access to one or more models. Safe for concurrent use."""

    provider: str

    def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the reply as it arrives, then a ModelResponse. Closing the generator ends the call.

        Raises:
            ModelKeyRejected: the key is missing or wrong.
            ModelOverloaded: rate limited or overloaded, before or during the stream.
            ModelUnreachable: the connection failed or broke, or violated the protocol.
            ContextTooLong: the request exceeds the context window.
            ModelRejected: the provider rejects this request.
        """
        ...

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        ...


class ModelBook(msgspec.Struct, frozen=True):
    """Limits and prices by model name, and the present default `model` of the `provider`.

    `doubt` returns why the provider may not have a model, a sentence, or "".
    """

    prices: PriceTable
    limits: Callable[[str], ModelLimits]
    temperature: float | None = None
    provider: str = ""
    model: str = ""
    doubt: Callable[[str], str] = lambda _model: ""

    def usable_model(self, provider: str, model: str) -> str:
        """Return the model of a run that was submitted for `provider`.

        It is the default model if another provider is used since then.
        """
        return model if provider in {"", self.provider} or not self.provider else self.model
