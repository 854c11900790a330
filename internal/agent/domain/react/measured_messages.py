"""Measured messages: derived data of a Turn's messages, computed once, and their selection."""

from collections.abc import Sequence

from internal.agent.domain.messages import Message, user_message
from internal.agent.domain.react import context_window
from internal.agent.domain.react.context_window import ContextWindow, MergedMessages
from internal.agent.domain.react.deferred_tools import wrap_calls
from internal.agent.domain.react.request_messages import RequestMessages, WeighedMessage
from internal.agent.domain.react.run_config import RunConfig


class MessageSelection:
    """The messages in a window. `sent` are its messages for the request, which has further ones."""

    def __init__(self, task_index: int, window: ContextWindow, config: RunConfig) -> None:
        self._key = (task_index, window, config.instructions, config.deferred)
        self.fitted = self._sent = MergedMessages()
        if config.instructions or config.deferred:
            self._sent = MergedMessages()
        if config.instructions:
            self._sent.add([context_window.weigh(user_message(config.instructions))])
        self._count = 0
        self._request: RequestMessages | None = None

    def is_for(self, task_index: int, window: ContextWindow, config: RunConfig) -> bool:
        """Return True if this is the selection for these settings."""
        return self._key == (task_index, window, config.instructions, config.deferred)

    def update(self, weighed: Sequence[WeighedMessage]) -> None:
        """Select from new messages; `weighed` are all of them."""
        if self._count == len(weighed):
            return
        task_index, window, _, deferred = self._key
        new = [*context_window.selected(weighed, task_index, window, start=self._count)]
        self._count, self._request = len(weighed), None
        self.fitted.add(new)
        if self._sent is not self.fitted:
            self._sent.add(wrap_calls(new, deferred))

    @property
    def request(self) -> RequestMessages:
        """The messages in the form that is sent."""
        self._request = self._request or self._sent.request()
        return self._request


class MeasuredMessages:
    """Data derived from the messages of a Turn, and extended only when messages are added."""

    def __init__(self) -> None:
        self.weighed: list[WeighedMessage] = []
        self.call_ids: set[str] = set()
        self._selection: MessageSelection | None = None

    def are_of(self, messages: Sequence[Message]) -> bool:
        """Return False if the messages are others, not these and more."""
        last = len(self.weighed) - 1
        return last < 0 or (last < len(messages) and self.weighed[last].message is messages[last])

    def update(self, messages: Sequence[Message]) -> None:
        """Take notice of new messages."""
        if len(messages) > len(self.weighed):
            self.add([context_window.weigh(each) for each in messages[len(self.weighed) :]])

    def add(self, weighed: Sequence[WeighedMessage]) -> None:
        """Add messages that are weighed already."""
        self.weighed += weighed
        exchanges = (each.message for each in weighed if each.is_exchange)
        for call in (call for each in exchanges for call in each.calls):
            self.call_ids.add(call.call_id)
            if call.wire_id:
                self.call_ids.add(call.wire_id)

    def select(self, task_index: int, window: ContextWindow, config: RunConfig) -> MessageSelection:
        """Return the messages to send."""
        if self._selection is None or not self._selection.is_for(task_index, window, config):
            self._selection = MessageSelection(task_index, window, config)
        self._selection.update(self.weighed)
        return self._selection
