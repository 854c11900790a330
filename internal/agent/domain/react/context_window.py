"""Context: how much a request weighs, and what is left out when it is too much.

Weights are estimates in tokens, on the safe side: an ASCII character is a third of a token, any
other two thirds to one and a third by its bytes, a picture as much as the largest that providers
count.
"""

from collections.abc import Iterable, Sequence

import msgspec

from internal.agent.domain.messages import (
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    merge_messages,
)
from internal.agent.domain.text import truncate
from internal.agent.domain.tools import ToolSpec

IMAGE_TOKENS = 1600
OVERHEAD_TOKENS = 8
ROOM_AFTER_TRIM = 0.7
"""A trim goes down to this share of the budget, so that not every call trims again."""

SHORTEST_RESULT = 500


class ContextWindow(msgspec.Struct, frozen=True):
    """What of a Turn's messages is sent. Indices into them; the person's words always are.

    Earlier conversation is sent from `history_from` on, the run's own work from `work_from` on,
    each tool result with at most `result_limit` characters.
    """

    history_from: int = 0
    work_from: int = 0
    result_limit: int | None = None


def text_tokens(text: str) -> int:
    """Return the weight of a text."""
    if text.isascii():
        return len(text) // 3 + 1
    wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2 + 1
    return max(len(text) - wide, 0) // 3 + wide + 1


def message_tokens(message: Message) -> int:
    """Return the weight of a message."""
    return OVERHEAD_TOKENS + sum(_part_tokens(part) for part in message.parts)


def tools_tokens(tools: Iterable[ToolSpec]) -> int:
    """Return the weight of the tools' schemas."""
    return sum(
        text_tokens(tool.name + tool.description)
        + text_tokens(msgspec.json.encode(tool.parameters).decode())
        for tool in tools
    )


def select_messages(
    messages: Sequence[Message], task_at: int, window: ContextWindow
) -> tuple[Message, ...]:
    """Return what is sent: roles alternate, every call has its result, the task is there."""
    kept = [
        *messages[window.history_from : task_at],
        *(said for said in messages[task_at : window.work_from] if _is_said(said)),
        *messages[max(window.work_from, task_at) :],
    ]
    if window.result_limit is not None:
        kept = [_shortened(message, window.result_limit) for message in kept]
    return tuple(merge_messages(kept))


def fit_window(
    messages: Sequence[Message], task_at: int, window: ContextWindow, budget: int
) -> ContextWindow:
    """Return a window under the budget, or as small as it can be: the oldest exchanges go first.

    Whole exchanges are left out, a call never without its result; the newest one always stays.
    """
    if window_tokens(messages, task_at, window) <= budget:
        return window
    goal = int(budget * ROOM_AFTER_TRIM)
    for start in _history_starts(messages, task_at, window.history_from):
        window = msgspec.structs.replace(window, history_from=start)
        if window_tokens(messages, task_at, window) <= goal:
            return window
    for start in _work_starts(messages, task_at, window.work_from):
        window = msgspec.structs.replace(window, work_from=start)
        if window_tokens(messages, task_at, window) <= goal:
            return window
    limit = window.result_limit or 2**15
    while limit > SHORTEST_RESULT and window_tokens(messages, task_at, window) > budget:
        limit = max(limit // 2, SHORTEST_RESULT)
        window = msgspec.structs.replace(window, result_limit=limit)
    return window


def window_tokens(messages: Sequence[Message], task_at: int, window: ContextWindow) -> int:
    """Return the weight of what a window lets through."""
    return sum(message_tokens(message) for message in select_messages(messages, task_at, window))


def _part_tokens(part: Part) -> int:
    match part:
        case Text(text) | ToolResult(text=text):
            return text_tokens(text)
        case Thinking(text, signature, redacted):
            return text_tokens(text) + text_tokens(signature) + text_tokens(redacted)
        case Image():
            return IMAGE_TOKENS
        case ToolCall(_, name, arguments):
            return text_tokens(name) + text_tokens(msgspec.json.encode(arguments).decode())


def _is_said(message: Message) -> bool:
    """Say whether a message is a person's words and not the result of a call."""
    return message.role == "user" and not any(
        isinstance(part, ToolResult) for part in message.parts
    )


def _history_starts(messages: Sequence[Message], task_at: int, start: int) -> list[int]:
    said = [at for at in range(start + 1, task_at) if _is_said(messages[at])]
    return [*said, task_at] if start < task_at else []


def _work_starts(messages: Sequence[Message], task_at: int, start: int) -> list[int]:
    replies = [
        at
        for at in range(max(start, task_at) + 1, len(messages))
        if messages[at].role == "assistant"
    ]
    return replies[1:] if start <= task_at else replies


def _shortened(message: Message, limit: int) -> Message:
    return Message(
        message.role,
        tuple(
            _shortened_result(part, limit) if isinstance(part, ToolResult) else part
            for part in message.parts
        ),
    )


def _shortened_result(result: ToolResult, limit: int) -> ToolResult:
    # what says how much is missing weighs something too
    text = min(result.text, truncate(result.text, limit), key=text_tokens)
    return ToolResult(result.call_id, text, result.failed)
