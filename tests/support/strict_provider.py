"""The strictest provider: rejects a conversation that any known provider would reject."""

from collections.abc import Sequence

import msgspec

from internal.agent.domain.messages import Message, Text, Thinking, ToolCall, ToolResult
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.ports.llm import ModelRequest
from internal.llm.anthropic_request import encode_request
from internal.model_providers.dialect import Dialect
from tests.support.anthropic_server import check_request

HEADERS = {"x-api-key": "key", "anthropic-version": "2026-10-21"}


class ProviderRejection(AssertionError):
    """The conversation is rejected; the message says why."""


def check_messages(messages: Sequence[Message], said: Sequence[str] = ()) -> None:
    """Raise ProviderRejection for an invalid conversation, or if texts of `said` are missing."""
    _require(messages, "there are no messages")
    seen: set[str] = set()
    open_calls: tuple[str, ...] = ()
    for at, message in enumerate(messages):
        role = "assistant" if at % 2 else "user"
        _require(message.role == role, f"message {at} is of the role {message.role}, not {role}")
        _require(message.parts, f"message {at} is empty")
        _check_results(at, message, open_calls)
        for part in message.parts:
            _check_part(at, message, part)
        open_calls = tuple(call.call_id for call in message.calls)
        _require(
            len(open_calls) == len(set(open_calls)), f"message {at} has an id twice: {open_calls}"
        )
        _require(
            not seen.intersection(open_calls),
            f"message {at} has an id of an earlier one: {open_calls}",
        )
        seen.update(open_calls)
    _require(not open_calls, f"calls without results: {open_calls}")
    _require(messages[-1].role == "user", "the last message is the model's own")
    received = "\n".join(message.text for message in messages if message.role == "user")
    position = 0
    for text in said:
        position = received.find(text, position)
        _require(position >= 0, f"texts are missing or out of order: {text!r}")
        position += len(text)


def check_request_encoding(messages: Sequence[Message], config: RunConfig, *, final: bool) -> None:
    """Raise an error if Anthropic's API would reject the encoded request."""
    request = ModelRequest(
        model="claude-x",
        system=config.system,
        messages=tuple(messages),
        tools=config.tools,
        tool_choice="none" if final else "auto",
        max_output_tokens=1000,
    )
    body = encode_request(request, Dialect())
    check_request(HEADERS, msgspec.json.decode(body))
    kept = msgspec.structs.replace(request, messages=messages)
    assert encode_request(kept, Dialect()) == encode_request(kept, Dialect()) == body


def _check_results(at: int, message: Message, open_calls: tuple[str, ...]) -> None:
    results = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
    first = message.parts[: len(results)]
    _require(
        all(isinstance(part, ToolResult) for part in first), f"message {at}: results are not first"
    )
    _require(
        tuple(results) == open_calls,
        f"message {at} answers {results}, the calls before it are {open_calls}",
    )


def _check_part(at: int, message: Message, part: object) -> None:
    user = message.role == "user"
    match part:
        case Text(text):
            _require(text.strip(), f"message {at} has an empty text")
            text.encode()
        case Thinking(text, signature, redacted):
            _require(not user, f"message {at}: a user message has thinking")
            _require(text or signature or redacted, f"message {at} has empty thinking")
            f"{text}{signature}{redacted}".encode()
        case ToolCall(call_id, _, arguments):
            _require(not user, f"message {at}: a user message has calls")
            _require(call_id.strip(), f"message {at} has a call without id")
            msgspec.json.encode(arguments)
        case ToolResult(text=text):
            _require(user, f"message {at}: a model's message has results")
            text.encode()
        case _:
            _require(user, f"message {at}: a model's message has a picture")


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise ProviderRejection(reason)
