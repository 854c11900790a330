"""Context window: estimate the size of a request and leave out what does not fit.

Sizes are estimates in tokens, rounded up: an ASCII character is a third of a token, any other two
thirds to one and a third depending on its bytes, an image as much as the largest that providers
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
TRIM_TARGET = 0.7
"""A trim goes down to this share of the budget, so that not every request needs one."""

MIN_RESULT_CHARS = 500


class ContextWindow(msgspec.Struct, frozen=True):
    """Which messages of a Turn are sent, as indexes. User messages of the run are always sent.

    Earlier conversation is sent from `history_from` on, the messages of the run from `work_from`
    on, each tool result with at most `result_limit` characters.
    """

    history_from: int = 0
    work_from: int = 0
    result_limit: int | None = None


def text_tokens(text: str) -> int:
    """Return the estimated tokens of a text."""
    if text.isascii():
        return len(text) // 3 + 1
    wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2 + 1
    return max(len(text) - wide, 0) // 3 + wide + 1


def message_tokens(message: Message) -> int:
    """Return the estimated tokens of a message."""
    return OVERHEAD_TOKENS + sum(_part_tokens(part) for part in message.parts)


def tools_tokens(tools: Iterable[ToolSpec]) -> int:
    """Return the estimated tokens of the tool schemas."""
    return sum(
        text_tokens(tool.name + tool.description)
        + text_tokens(msgspec.json.encode(tool.parameters).decode())
        for tool in tools
    )


def select_messages(
    messages: Sequence[Message], task_index: int, window: ContextWindow
) -> tuple[Message, ...]:
    """Return the messages to send: roles alternate, every call has its result."""
    kept = [
        *messages[window.history_from : task_index],
        *(message for message in messages[task_index : window.work_from] if _is_user_text(message)),
        *messages[max(window.work_from, task_index) :],
    ]
    if window.result_limit is not None:
        kept = [_shortened(message, window.result_limit) for message in kept]
    return tuple(merge_messages(kept))


def fit_window(
    messages: Sequence[Message], task_index: int, window: ContextWindow, budget: int
) -> ContextWindow:
    """Return a window within the budget, or the smallest possible one.

    The oldest exchanges are left out first, always a call with its result. The newest one stays.
    """
    if window_tokens(messages, task_index, window) <= budget:
        return window
    goal = int(budget * TRIM_TARGET)
    for start in _history_starts(messages, task_index, window.history_from):
        window = msgspec.structs.replace(window, history_from=start)
        if window_tokens(messages, task_index, window) <= goal:
            return window
    for start in _work_starts(messages, task_index, window.work_from):
        window = msgspec.structs.replace(window, work_from=start)
        if window_tokens(messages, task_index, window) <= goal:
            return window
    limit = window.result_limit or 2**15
    while limit > MIN_RESULT_CHARS and window_tokens(messages, task_index, window) > budget:
        limit = max(limit // 2, MIN_RESULT_CHARS)
        window = msgspec.structs.replace(window, result_limit=limit)
    return window


def window_tokens(messages: Sequence[Message], task_index: int, window: ContextWindow) -> int:
    """Return the estimated tokens of the messages in a window."""
    return sum(message_tokens(message) for message in select_messages(messages, task_index, window))


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


def _is_user_text(message: Message) -> bool:
    """Return True for a user message without tool results."""
    return message.role == "user" and not any(
        isinstance(part, ToolResult) for part in message.parts
    )


def _history_starts(messages: Sequence[Message], task_index: int, start: int) -> list[int]:
    texts = [at for at in range(start + 1, task_index) if _is_user_text(messages[at])]
    return [*texts, task_index] if start < task_index else []


def _work_starts(messages: Sequence[Message], task_index: int, start: int) -> list[int]:
    replies = [
        at
        for at in range(max(start, task_index) + 1, len(messages))
        if messages[at].role == "assistant"
    ]
    return replies[1:] if start <= task_index else replies


def _shortened(message: Message, limit: int) -> Message:
    return Message(
        message.role,
        tuple(
            _shortened_result(part, limit) if isinstance(part, ToolResult) else part
            for part in message.parts
        ),
    )


def _shortened_result(result: ToolResult, limit: int) -> ToolResult:
    # the note about omitted characters has a size as well
    text = min(result.text, truncate(result.text, limit), key=text_tokens)
    return ToolResult(result.call_id, text, result.failed)
