"""The functions about context windows, for plain messages."""

from collections.abc import Callable, Collection, Iterable, Sequence

from internal.agent.domain.messages import Message
from internal.agent.domain.react import context_window
from internal.agent.domain.react.context_window import ContextWindow, MergedMessages, weigh
from internal.agent.domain.react.request_messages import WeighedMessage


def weighed(messages: Iterable[Message]) -> list[WeighedMessage]:
    return [*map(weigh, messages)]


def merge_messages(messages: Iterable[Message]) -> list[Message]:
    merged = MergedMessages()
    merged.add(weighed(messages))
    return [*merged.request()]


def select_messages(
    messages: Sequence[Message], task_index: int, window: ContextWindow
) -> tuple[Message, ...]:
    return tuple(context_window.select_messages(weighed(messages), task_index, window))


def window_tokens(messages: Sequence[Message], task_index: int, window: ContextWindow) -> int:
    return context_window.window_tokens(weighed(messages), task_index, window)


def retained_calls(
    messages: Sequence[Message], tools: Collection[str], budget: int
) -> tuple[str, ...]:
    return context_window.retained_calls(weighed(messages), tools, budget)


def fit_window(
    messages: Sequence[Message],
    task_index: int,
    window: ContextWindow,
    budget: int,
    *,
    retained: Callable[[], tuple[str, ...]] = tuple,
) -> ContextWindow:
    return context_window.fit_window(
        weighed(messages), task_index, window, budget, retained=retained
    )
