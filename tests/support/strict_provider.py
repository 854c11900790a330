"""A provider that takes a conversation only when it keeps every rule that any provider has."""

from collections.abc import Sequence

import msgspec

from internal.agent.domain.messages import Message, Text, Thinking, ToolCall, ToolResult
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.ports.llm import ModelRequest
from internal.llm.anthropic_request import encode_request
from tests.support.anthropic_server import check_request

HEADERS = {"x-api-key": "key", "anthropic-version": "2026-10-21"}


class ProviderRejection(AssertionError):
    """Why the conversation is refused."""


def check_messages(messages: Sequence[Message], said: Sequence[str] = ()) -> None:
    """Raise Objection for what a strict provider refuses, or when words of `said` are not there."""
    _need(messages, "there are no messages")
    seen: set[str] = set()
    opened: tuple[str, ...] = ()
    for at, message in enumerate(messages):
        role = "assistant" if at % 2 else "user"
        _need(message.role == role, f"message {at} is of the role {message.role}, not {role}")
        _need(message.parts, f"message {at} is empty")
        _check_results(at, message, opened)
        for part in message.parts:
            _check_part(at, message, part)
        opened = tuple(call.call_id for call in message.calls)
        _need(len(opened) == len(set(opened)), f"message {at} has an id twice: {opened}")
        _need(not seen.intersection(opened), f"message {at} has an id of an earlier one: {opened}")
        seen.update(opened)
    _need(not opened, f"calls without results: {opened}")
    _need(messages[-1].role == "user", "the last message is the model's own")
    heard = "\n".join(message.text for message in messages if message.role == "user")
    place = 0
    for words in said:
        place = heard.find(words, place)
        _need(place >= 0, f"words are missing or out of order: {words!r}")
        place += len(words)


def check_request_encoding(messages: Sequence[Message], terms: RunConfig, *, final: bool) -> None:
    """Raise Refusal when Anthropic's API would refuse the request that is made of it."""
    request = ModelRequest(
        model="claude-x",
        system=terms.system,
        messages=tuple(messages),
        tools=terms.tools,
        tool_choice="none" if final else "auto",
        max_output_tokens=1000,
    )
    check_request(HEADERS, msgspec.json.decode(encode_request(request)))


def _check_results(at: int, message: Message, opened: tuple[str, ...]) -> None:
    results = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
    first = message.parts[: len(results)]
    _need(
        all(isinstance(part, ToolResult) for part in first), f"message {at}: results are not first"
    )
    _need(
        tuple(results) == opened,
        f"message {at} answers {results}, the calls before it are {opened}",
    )


def _check_part(at: int, message: Message, part: object) -> None:
    user = message.role == "user"
    match part:
        case Text(text):
            _need(text.strip(), f"message {at} has an empty text")
            text.encode()
        case Thinking(text, signature, redacted):
            _need(not user, f"message {at}: a person's message has thinking")
            _need(text or signature or redacted, f"message {at} has empty thinking")
            f"{text}{signature}{redacted}".encode()
        case ToolCall(call_id, _, arguments):
            _need(not user, f"message {at}: a person's message has calls")
            _need(call_id.strip(), f"message {at} has a call without id")
            msgspec.json.encode(arguments)
        case ToolResult(text=text):
            _need(user, f"message {at}: a model's message has results")
            text.encode()
        case _:
            _need(user, f"message {at}: a model's message has a picture")


def _need(condition: object, objection: str) -> None:
    if not condition:
        raise ProviderRejection(objection)
