"""The objects of OpenAI's chat completions."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.usage import Usage

FinishReason = Literal["stop", "length"]
"""`length`: a limit ended the run, or the reply, before it was done."""


class CompletionMessage(msgspec.Struct, frozen=True):
    """The answer."""

    content: str
    role: Literal["assistant"] = "assistant"


class CompletionChoice(msgspec.Struct, frozen=True):
    """The only choice."""

    message: CompletionMessage
    finish_reason: FinishReason
    index: int = 0


class CompletionUsage(msgspec.Struct, frozen=True):
    """Tokens of the run; those that were read from a cache count as prompt."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(msgspec.Struct, frozen=True):
    """A completion. `larkspur` names the task and its session, for the other routes.

    A reply of the plain model has neither.
    """

    id: str
    created: int
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: CompletionUsage
    larkspur: Submitted | UnsetType = UNSET
    object: Literal["chat.completion"] = "chat.completion"


def completion_usage(usage: Usage) -> CompletionUsage:
    """Return the tokens as completions count them."""
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return CompletionUsage(prompt, usage.output_tokens, prompt + usage.output_tokens)


def finish_reason(*, is_cut: bool) -> FinishReason:
    """Return why a reply ended."""
    return "length" if is_cut else "stop"
