"""History: selection of the messages of earlier runs with which a run starts.

A session that fits the budget is sent unchanged. A longer one has three parts: the newest messages
unchanged; before them, messages with shortened tool results; before those, only the texts of people
and the model, without tool calls. The boundaries between the parts depend only on the stored
messages and the budget, and they move in large steps: the requests of consecutive runs mostly begin
with the same messages, so that a provider can use its cache. The last question and its answer
always belong to the history.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.ids import RunId
from internal.agent.domain.messages import Message
from internal.agent.domain.react.context_window import (
    MIN_TEXT_CHARS,
    is_exchange,
    shorten_results,
    shorten_text,
    weigh,
)
from internal.agent.domain.react.request_messages import WeighedMessage

MessageKind = Literal["task", "answer", "words", "exchange"]
"""`task` begins a run, `answer` ends it, `exchange` has calls or results, `words` is the rest. The
last text of a run without an answer is `words` too; its calls are left out with the exchanges."""

WHOLE_SHARE = 0.45
SHORT_SHARE = 0.2
WORDS_SHARE = 0.2
ESSENTIAL_SHARE = 0.03
"""Shares of the budget. The last one is for each of up to three essential messages, counted as if
a token were a character, so that every script fits."""

STEP_SHARE = 0.5
"""A boundary moves when a part is full, so far that at least about this share of it stays."""


class StoredMessage(msgspec.Struct, frozen=True, gc=False):
    """A message of a session. Numbers count the messages of a session from 1.

    `size` is about the bytes of memory that it takes, with its encoding for a provider. Without
    reference cycles, as `Message` is.
    """

    number: int
    run_id: RunId
    kind: MessageKind
    created: str
    weighed: WeighedMessage
    size: int = 0

    @property
    def message(self) -> Message:
        """The message itself."""
        return self.weighed.message

    @property
    def tokens(self) -> int:
        """The estimated tokens of the message."""
        return self.weighed.tokens


class HistoryRef(msgspec.Struct, frozen=True):
    """Names the messages of a history; the messages of a session are never changed.

    A checkpoint holds it in place of the messages, so that a run writes as much in a long session
    as in a new one.

    Attributes:
        budget: the tokens that the selected messages may have.
        last: the number of the newest message of the selection.
        until: the messages after `last` up to this number follow unchanged: the messages of a
            failed run that the run continues, and of the runs after it.
        count: the number of messages in the history.
    """

    budget: int = 0
    last: int = 0
    until: int = 0
    count: int = 0


class History(NamedTuple):
    """The messages of earlier runs, and the indexes of the messages that are never left out."""

    weighed: Sequence[WeighedMessage] = ()
    essential: tuple[int, ...] = ()
    ref: HistoryRef = HistoryRef()

    @property
    def messages(self) -> list[Message]:
        """The messages themselves."""
        return [each.message for each in self.weighed]


class Part(NamedTuple):
    """A part of a history: its budget in tokens, and how it shortens messages, if it does."""

    budget: int
    shorten: Callable[[Message], Message] | None = None

    def shortened(self, row: StoredMessage) -> StoredMessage:
        """Return a message in the form of this part."""
        if self.shorten is None or (message := self.shorten(row.message)) is row.message:
            return row
        return msgspec.structs.replace(row, weighed=weigh(message))

    def start(self, newest_first: Sequence[StoredMessage]) -> int:
        """Return the number of the first of these messages in the part, 0 if all of them fit.

        Of the numbers that fill the part by `STEP_SHARE` or more, it is the one that is divisible
        by the highest power of two: it stays the same while messages are added, until the part is
        full.
        """
        total, lowest = 0, newest_first[0].number + 1 if newest_first else 0
        highest = lowest
        for row in newest_first:
            total += row.weighed.tokens
            if total > self.budget:
                return _roundest(lowest, highest)
            lowest = row.number
            if total <= self.budget * STEP_SHARE:
                highest = lowest
        return 0


class HistoryParts(NamedTuple):
    """The parts of a history, for a budget in tokens."""

    everything: Part
    whole: Part
    short: Part
    words: Part

    @classmethod
    def of(cls, budget: int) -> "HistoryParts":
        """Divide a budget."""
        max_chars = max(int(budget * ESSENTIAL_SHARE), MIN_TEXT_CHARS)
        return cls(
            Part(budget),
            Part(int(budget * WHOLE_SHARE)),
            Part(
                int(budget * SHORT_SHARE), lambda message: shorten_results(message, MIN_TEXT_CHARS)
            ),
            Part(int(budget * WORDS_SHARE), lambda message: shorten_text(message, max_chars)),
        )


def message_kinds(messages: Sequence[Message]) -> list[MessageKind]:
    """Return the kinds of the messages of one run."""
    kinds: list[MessageKind] = ["exchange" if is_exchange(each) else "words" for each in messages]
    for at in range(len(messages) - 1, 0, -1):
        if messages[at].role == "assistant" and messages[at].text.strip():
            kinds[at] = "words" if messages[at].calls else "answer"
            break
    return ["task", *kinds[1:]] if kinds else []


def _roundest(lowest: int, highest: int) -> int:
    """Return the number from `lowest` to `highest` with the highest power of two as a divisor."""
    while (rounder := highest & (highest - 1)) >= lowest:
        highest = rounder
    return highest
