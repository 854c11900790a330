"""What the agent asks of the stores of a channel with chats: what to send, who shows what."""

from typing import NamedTuple, Protocol

import msgspec

from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Channel, StopReason
from internal.agent.ports.database import Read, Write


class Outgoing(msgspec.Struct, frozen=True):
    """Something that was promised to a chat, such as the one reply of a run.

    `key` is unique and stays the same for ever: a resend is made under it. `reply_to` is the
    message that is answered, "" for none. `stop_reason` and `error` tell how a run ended; words
    that are no run's answer have neither. With a `question_id` it is that question, or, when its
    key ends in `:closed`, the news of what became of it.
    """

    key: str
    channel: Channel
    app: str
    chat_id: str
    reply_to: str
    body: str
    run_id: str = ""
    stop_reason: StopReason | None = None
    error: str = ""
    question_id: str = ""


class Pending(NamedTuple):
    """An outgoing message that is not settled. `first_tried` is RFC 3339, None before that."""

    number: int
    outgoing: Outgoing
    attempts: int
    first_tried: str | None


class DeadLetter(NamedTuple):
    """An outgoing message that was given up. `doubtful`: it may have been sent."""

    number: int
    outgoing: Outgoing
    doubtful: bool
    fault: str
    settled: str


class Outbox(Protocol):
    """What is to be sent. The messages of a chat are settled in order."""

    def add(self, outgoing: Outgoing, now: str, /) -> Write[bool]:
        """Promise a message; False when its key is known already."""
        ...

    def due(self, channel: Channel, app: str, now: str, limit: int, /) -> Read[list[Pending]]:
        """Return the oldest unsettled message of each chat, of those that may be tried now."""
        ...

    def trying(self, number: int, now: str, /) -> Write[int | None]:
        """Count an attempt before it is made; return how many there were, None when settled."""
        ...

    def postpone(self, number: int, next_try: str, fault: str, /) -> Write[None]:
        """Note why an attempt failed and when the next one may be made."""
        ...

    def sent(self, number: int, remote_id: str, now: str, /) -> Write[bool]:
        """Settle a message that was sent; `remote_id` is the channel's name for it."""
        ...

    def bury(self, number: int, fault: str, now: str, /, *, doubtful: bool) -> Write[bool]:
        """Give a message up; `doubtful` when it may have been sent."""
        ...

    def remote_id(self, key: str, /) -> Read[str]:
        """Return the channel's name for a message that was sent, "" for any other."""
        ...

    def asked_as(self, remote_id: str, /) -> Read[str]:
        """Return the id of the question that a sent message is, "" for any other message."""
        ...

    def dead(self, limit: int, /) -> Read[list[DeadLetter]]:
        """Return what was given up, newest first."""
        ...


class Showing(NamedTuple):
    """What a door has shown of a run: up to which position, and its own state as JSON."""

    run_id: RunId
    last_position: int
    state: str


class Showings(Protocol):
    """Who shows a run at a door, so that one card has one writer."""

    def claim(
        self, run_id: RunId, door: str, owner: str, lease_until: str, now: str, /
    ) -> Write[Showing | None]:
        """Take the showing of a run; None when it is closed or somebody else's lease holds."""
        ...

    def keep(self, showing: Showing, door: str, owner: str, lease_until: str, /) -> Write[bool]:
        """Store what was shown; False when it is not ours any more."""
        ...

    def close(self, showing: Showing, door: str, owner: str, /) -> Write[bool]:
        """Store that nothing more is to be shown; False when it is not ours any more."""
        ...

    def abandoned(self, door: str, now: str, /) -> Read[list[Showing]]:
        """Return the open showings whose lease is over."""
        ...
