"""Context window: estimate the size of a request and leave out the messages that do not fit.

Sizes are estimates in tokens, rounded up: an ASCII character is a third of a token, any other two
thirds to one and a third depending on its bytes, an image as much as its pixels, at most as the
largest that providers count.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from internal.agent.domain.messages import (
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    join_messages,
)
from internal.agent.domain.react.request_messages import RequestMessages, WeighedMessage
from internal.agent.domain.text import text_tokens, truncate
from internal.agent.domain.tools import ToolSpec

MAX_IMAGE_TOKENS = 1600
PIXELS_PER_TOKEN = 750
"""Anthropic counts an image as width times height in pixels, divided by 750."""

OVERHEAD_TOKENS = 8
MAX_SHORT_ID_CHARS = 64
"""Ids of calls that are longer are counted."""
REFUSED_RESULT = "[a result that the content filter of the model's provider refused, left out]"
IMAGE_NOTE = "(an image, left out)"
MIN_RESERVED_OUTPUT = 8_192
CONTEXT_MARGIN = 0.95
"""Share of the context window that is filled; token counts are estimates."""

TRIM_TARGET = 0.7
"""A trim goes down to this share of the budget, so that not every request needs one."""

RETAINED_SHARE = 0.3
"""Share of the budget that results of retained tools may have, so that the run can go on."""

MIN_TEXT_CHARS = 500
"""Characters that are left of a shortened text: its beginning and its end."""

_MAX_LIMIT = 2**15


class ContextWindow(msgspec.Struct, frozen=True):
    """Which messages of a Turn are sent, as indexes. User messages of the run are always sent.

    Attributes:
        history_from: messages of earlier runs before this one are left out.
        exchanges_from: calls and results before this message are left out.
        results_from: results before this message have at most `MIN_TEXT_CHARS` characters.
        limit: the characters of every other result, and of the essential messages.
        essential: the last question and answer of the earlier runs, which are never left out.
        retained: ids of calls that stay, with their results, when others around them are left out.
        refused: ids of calls whose results a content filter refused; a note takes their place.
    """

    history_from: int = 0
    exchanges_from: int = 0
    results_from: int = 0
    limit: int | None = None
    essential: tuple[int, ...] = ()
    retained: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def message_budget(
    system: str, tools: Iterable[ToolSpec], *, context_window: int, max_output_tokens: int
) -> int:
    """Return the tokens that are left for the messages of a request, at least 1.

    The reply gets the part of the window that the messages leave, and never less than is reserved
    for it.
    """
    fixed = text_tokens(system) + tools_tokens(tools)
    reserved = reserved_output(context_window, max_output_tokens)
    return max(int(context_window * CONTEXT_MARGIN) - reserved - fixed, 1)


def reserved_output(context_window: int, max_output_tokens: int) -> int:
    """Return the tokens that are kept free for a reply, however long the messages are."""
    share = max(context_window // 8, MIN_RESERVED_OUTPUT)
    return min(max_output_tokens, share, context_window // 2)


def image_tokens(image: Image) -> int:
    """Return the estimated tokens of an image; an unknown size counts as the largest."""
    pixels = image.width * image.height
    return min(pixels // PIXELS_PER_TOKEN + 1, MAX_IMAGE_TOKENS) if pixels else MAX_IMAGE_TOKENS


def message_tokens(message: Message) -> int:
    """Return the estimated tokens of a message."""
    tokens = OVERHEAD_TOKENS
    for part in message.parts:  # a loop: every request counts every message several times
        tokens += text_tokens(part.text) if type(part) is Text else _part_tokens(part)
    return tokens


def tools_tokens(tools: Iterable[ToolSpec]) -> int:
    """Return the estimated tokens of the tool schemas."""
    return sum(tool.tokens for tool in tools)


def weigh(message: Message) -> WeighedMessage:
    """Return a message with its estimated tokens."""
    has_images = False
    for part in message.parts:
        if type(part) is not Text:  # at once: most parts of a long history are texts
            has_images |= isinstance(part, Image) or (
                isinstance(part, ToolResult) and bool(part.images)
            )
    return WeighedMessage(message, message_tokens(message), is_exchange(message), has_images)


class MergedMessages:
    """Messages with neighbours of the same role merged, and their estimated tokens."""

    def __init__(self) -> None:
        self.tokens = 0
        self._weighed: list[WeighedMessage] = []
        self._wire_ids: set[str] = set()
        self._has_equal_ids = False

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._weighed)

    def add(self, added: Iterable[WeighedMessage]) -> None:
        """Add messages; messages without parts are left out."""
        for each in added:
            last = self._weighed[-1] if self._weighed else None
            if not each.message.parts:
                continue
            if each.is_exchange and each.message.role == "assistant":
                self._add_ids(each.message)
            if last is None or last.message.role != each.message.role:
                self._weighed.append(each)
                self.tokens += each.tokens
            else:
                joined = weigh(join_messages(last.message, each.message))
                self._weighed[-1] = joined
                self.tokens += joined.tokens - last.tokens

    def request(self) -> RequestMessages:
        """Return the messages so far."""
        weighed = tuple(self._weighed)
        return RequestMessages(weighed, self.tokens, has_equal_ids=self._has_equal_ids)

    def _add_ids(self, message: Message) -> None:
        for wire_id in filter(None, [call.wire_id for call in message.calls]):
            self._has_equal_ids |= wire_id in self._wire_ids
            self._wire_ids.add(wire_id)


def select_messages(
    weighed: Sequence[WeighedMessage], task_index: int, window: ContextWindow
) -> RequestMessages:
    """Return the messages to send: roles alternate, every call has its result."""
    return _merged(weighed, task_index, window).request()


def _merged(
    weighed: Sequence[WeighedMessage], task_index: int, window: ContextWindow
) -> MergedMessages:
    merged = MergedMessages()
    merged.add(selected(weighed, task_index, window))
    return merged


def selected(
    weighed: Sequence[WeighedMessage], task_index: int, window: ContextWindow, *, start: int = 0
) -> Iterable[WeighedMessage]:
    """Return the messages of a window in the form of the request, before they are merged.

    The form of a message depends only on its index and the window, so the messages before `start`
    can be those of an earlier call.
    """
    if window == ContextWindow(essential=window.essential):  # nothing is left out or shortened
        return weighed[start:] if start else weighed
    return _selected(weighed, task_index, window, start)


def _selected(
    weighed: Sequence[WeighedMessage], task_index: int, window: ContextWindow, start: int
) -> Iterator[WeighedMessage]:
    first = min(window.history_from, task_index)
    for at in range(start, len(weighed)):
        each = weighed[at]
        if at in window.essential or (
            at >= first and (at >= window.exchanges_from or not each.is_exchange)
        ):
            yield _fitted(at, each, window)
        elif at >= first and (retained := _retained_part(each.message, window.retained)):
            yield _fitted(at, weigh(retained), window)


def retained_calls(
    weighed: Sequence[WeighedMessage], tools: Collection[str], budget: int
) -> tuple[str, ...]:
    """Return the ids of the calls of some tools whose results should stay in the context.

    The newest come first, of equal calls only one, as far as their results have at most
    `RETAINED_SHARE` of a budget in tokens.
    """
    remaining = int(budget * RETAINED_SHARE)
    results: dict[str, ToolResult] = {}
    seen: set[bytes] = set()
    retained: list[str] = []
    for message in (each.message for each in reversed(weighed) if each.is_exchange):
        results.update({one.call_id: one for one in message.parts if isinstance(one, ToolResult)})
        for call in reversed(message.calls):
            result = results.get(call.call_id)
            if call.name not in tools or result is None or result.failed:
                continue
            key = msgspec.json.encode([call.name, call.arguments], order="sorted")
            if key in seen:
                continue
            seen.add(key)
            remaining -= _part_tokens(result)
            if remaining < 0:
                return tuple(retained)
            retained.append(call.call_id)
    return tuple(retained)


def fit_window(
    weighed: Sequence[WeighedMessage],
    task_index: int,
    window: ContextWindow,
    budget: int,
    *,
    retained: Callable[[], tuple[str, ...]] = tuple,
) -> ContextWindow:
    """Return a window within the budget, or the smallest possible one.

    The oldest content is left out first: results are shortened, then calls of earlier runs are left
    out with their results, then earlier runs, then calls of this run. The user messages of this
    run, its newest calls, and the last question and answer before it always remain; they are
    shortened when nothing else is left. `retained` returns the ids of calls that stay as well, as
    long as the runs that they belong to; it is called only if something is left out.
    """
    tokens = window_tokens(weighed, task_index, window)
    if tokens <= budget:
        return window
    before, window = window, msgspec.structs.replace(window, retained=retained())
    steps = [window, *_smaller_windows(weighed, task_index, window)]
    goal = int(budget * TRIM_TARGET)
    at = bisect_left(steps, -goal, key=lambda each: -window_tokens(weighed, task_index, each))
    smaller = steps[min(at, len(steps) - 1)]
    limit = window.limit or 2 * _MAX_LIMIT
    while limit > MIN_TEXT_CHARS and window_tokens(weighed, task_index, smaller) > budget:
        limit = max(limit // 2, MIN_TEXT_CHARS)
        smaller = msgspec.structs.replace(smaller, limit=limit)
    return smaller if window_tokens(weighed, task_index, smaller) < tokens else before


def window_tokens(weighed: Sequence[WeighedMessage], task_index: int, window: ContextWindow) -> int:
    """Return the estimated tokens of the messages in a window."""
    return _merged(weighed, task_index, window).tokens


def is_exchange(message: Message) -> bool:
    """Return True for a message with tool calls or results."""
    return any(isinstance(part, ToolCall | ToolResult) for part in message.parts)


def shorten_results(message: Message, max_chars: int) -> Message:
    """Return the message with at most `max_chars` characters of every tool result.

    Images of the results are left out; a note takes their place.
    """
    return _shorten_results(message, lambda _call_id: max_chars)


def _shorten_results(message: Message, max_chars: Callable[[str], int | None]) -> Message:
    """Shorten the result of each call to its number of characters; None leaves it unchanged."""
    parts = (
        ToolResult(part.call_id, _shortened_result(part, limit), part.failed, (), part.wire_id)
        if isinstance(part, ToolResult) and (limit := max_chars(part.call_id)) is not None
        else part
        for part in message.parts
    )
    if not is_exchange(message):
        return message
    return Message(message.role, tuple(parts), message.origin)


def shorten_text(message: Message, max_chars: int) -> Message:
    """Return the text of a message, shortened to at most `max_chars` characters.

    Calls and images are left out. At least a note stays.
    """
    text = message.text.strip()
    if not text or any(isinstance(part, Image) for part in message.parts):
        text = f"{IMAGE_NOTE}\n{text}".strip()
    return Message(message.role, (Text(_shortened(text, max_chars)),))


def _part_tokens(part: Part) -> int:
    match part:
        case Text(text):
            return text_tokens(text)
        case ToolResult(text=text, images=images, wire_id=wire_id):
            return text_tokens(text) + sum(map(image_tokens, images)) + _id_tokens(wire_id)
        case Thinking(text, signature, redacted, opaque):
            return sum(map(text_tokens, (text, signature, redacted))) + _opaque_tokens(opaque)
        case Image():
            return image_tokens(part)
        case ToolCall(_, name, arguments, _, opaque, wire_id):
            given = msgspec.json.encode(arguments).decode()
            fields = _opaque_tokens(opaque) + _id_tokens(wire_id)
            return text_tokens(name) + text_tokens(given) + fields


def _opaque_tokens(opaque: dict[str, Any] | None) -> int:
    return text_tokens(msgspec.json.encode(opaque).decode()) if opaque else 0


def _id_tokens(wire_id: str) -> int:
    """Return the tokens of an id that contains a signature; others are a part of the overhead."""
    return text_tokens(wire_id) if len(wire_id) > MAX_SHORT_ID_CHARS else 0


def _smaller_windows(
    weighed: Sequence[WeighedMessage], task_index: int, window: ContextWindow
) -> Iterator[ContextWindow]:
    """Yield smaller and smaller windows, down to the newest exchange of the run."""
    exchanges = [at for at, each in enumerate(weighed) if each.is_exchange]
    calls = [at for at in exchanges if weighed[at].message.calls]
    newest = calls[-1] if calls and calls[-1] >= task_index else len(weighed)
    for at in exchanges:
        if window.results_from <= at < newest and not weighed[at].message.calls:
            window = msgspec.structs.replace(window, results_from=at + 1)
            yield window
    starts = [at for at in calls if at < task_index]
    for at in (at for at in (*starts, task_index) if at > window.exchanges_from):
        window = msgspec.structs.replace(window, exchanges_from=at)
        yield window
    texts = [at for at in range(task_index) if _is_user_text(weighed[at])]
    for at in (at for at in (*texts, task_index) if at > window.history_from):
        window = msgspec.structs.replace(window, history_from=at)
        yield window
    for at in (at for at in calls if at > max(window.exchanges_from, task_index)):
        window = msgspec.structs.replace(window, exchanges_from=at)
        yield window


def _fitted(at: int, weighed: WeighedMessage, window: ContextWindow) -> WeighedMessage:
    if window.refused and weighed.is_exchange:
        weighed = _without_refused_results(weighed, window.refused)
    message = weighed.message
    if window.limit is not None and at in window.essential:
        fitted = shorten_text(message, window.limit)
    elif not weighed.is_exchange:
        return weighed
    elif at >= window.results_from:
        fitted = message if window.limit is None else shorten_results(message, window.limit)
    else:
        retained = dict.fromkeys(window.retained, window.limit)
        fitted = _shorten_results(message, lambda call_id: retained.get(call_id, MIN_TEXT_CHARS))
    return weighed if fitted is message else weigh(fitted)


def _without_refused_results(weighed: WeighedMessage, refused: Collection[str]) -> WeighedMessage:
    message = weighed.message
    results = (part for part in message.parts if isinstance(part, ToolResult))
    if all(result.call_id not in refused for result in results):
        return weighed
    parts = (
        msgspec.structs.replace(part, text=REFUSED_RESULT, images=())
        if isinstance(part, ToolResult) and part.call_id in refused
        else part
        for part in message.parts
    )
    return weigh(msgspec.structs.replace(message, parts=tuple(parts)))


def _retained_part(message: Message, retained: Collection[str]) -> Message | None:
    """Return the rest of a message that is left out: the retained calls or results, if any.

    The thoughts stay with the calls that they led to: a provider may check that.
    """
    parts = tuple(
        part
        for part in message.parts
        if isinstance(part, Thinking)
        or (isinstance(part, ToolCall | ToolResult) and part.call_id in retained)
    )
    if all(isinstance(part, Thinking) for part in parts):
        return None
    return Message(message.role, parts, message.origin)


def _is_user_text(weighed: WeighedMessage) -> bool:
    return weighed.message.role == "user" and not weighed.is_exchange


def _shortened_result(result: ToolResult, max_chars: int) -> str:
    text = f"{IMAGE_NOTE}\n{result.text}".strip() if result.images else result.text
    return _shortened(text, max_chars)


def _shortened(text: str, max_chars: int) -> str:
    # the note about omitted characters has a size as well
    return min(text, truncate(text, max_chars), key=text_tokens)
