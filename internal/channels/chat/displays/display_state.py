"""Stored state of a run's display, and the place of the run's reply."""

import msgspec

from internal.agent.domain.chats import RunDisplay

UNKNOWN_SECONDS = 60.0
"""A call with unknown outcome may still change the message for so long."""
MAX_SILENT_SECONDS = 300.0
"""A reply replaces the message that was sent at most so long ago: replacing notifies nobody."""
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 5.0, 600.0
GIVE_UP_SECONDS = 24 * 3600.0


class DisplayState(msgspec.Struct):
    """The displayed state, stored with the lease. Times are seconds since the epoch.

    `reacting` and `sending` are stored before their calls. If they are set without an id, the call
    is repeated and returns the id of the existing object. `unknown_until` is stored before an
    update and restored when its outcome is known. `lost`: the message can no longer be updated.
    `resting`: the run waits for a person. `asked`: it has waited, and its question is below the
    message. `part` counts the messages before this one, which are above a question; `retired` are
    the ones not yet removed. After the run has ended, its progress is no longer written and
    `reply_place` is the message that the reply replaces, or "". `failures` counts failed attempts,
    since `failing_since`, to show the last state and to remove the reaction.
    """

    reacting: bool = False
    reaction: str = ""
    sending: bool = False
    message: str = ""
    sent_at: float = 0.0
    unknown_until: float = 0.0
    edits: int = 0
    lost: bool = False
    resting: bool = False
    asked: bool = False
    part: int = 0
    retired: list[str] = msgspec.field(default_factory=list)
    ended: bool = False
    reply_place: str = ""
    failures: int = 0
    failing_since: float = 0.0

    @property
    def has_message(self) -> bool:
        """True if there may be a message that can be updated."""
        return bool(self.message or self.sending) and not self.lost

    def move_below(self) -> None:
        """Go on in a new message, which is below the question; the present one is removed."""
        self.retired.append(self.message)
        self.message, self.sending, self.sent_at, self.unknown_until = "", False, 0.0, 0.0
        self.edits, self.lost, self.asked, self.part = 0, False, False, self.part + 1

    def end(self, now: float) -> None:
        """Decide where the reply belongs, once and for all attempts to send it."""
        self.ended = True
        is_settled = bool(self.message) and not self.lost and now >= self.unknown_until
        # a reply above the question would not be seen
        if is_settled and not self.asked and now - self.sent_at <= MAX_SILENT_SECONDS:
            self.reply_place = self.message

    def note_failure(self, now: float) -> float | None:
        """Count a failed attempt; return the seconds until the next one, None to give up."""
        self.failing_since = self.failing_since or now
        self.failures += 1
        if now - self.failing_since > GIVE_UP_SECONDS:
            return None
        return min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(self.failures - 1, 10))


def read_state(display: RunDisplay) -> DisplayState:
    """Return the state of a display; the initial one if nothing is stored."""
    return msgspec.json.decode(display.state or b"{}", type=DisplayState)
