"""Transcripts that programs have of their conversations, and the sessions that continue them."""

from collections.abc import Collection
from typing import NamedTuple

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.store.database import Batch, Read, Statement, Write


class StoredConversation(NamedTuple):
    """A session whose conversation has a certain transcript, which ends with a run's message.

    `asks`: the message was a question. `is_taken`: the session already went on from there.
    """

    session_id: SessionId
    run_id: RunId
    asks: bool
    is_taken: bool


class ConversationStore:
    """Transcripts by principal: of another one none is ever found."""

    def take(self, principal: str, transcript: str, /) -> Write[StoredConversation | None]:
        """Take the newest session with a transcript, to continue its conversation.

        A session that was taken before is returned if there is no other, None if there is none at
        all.
        """
        rows = yield Statement("conversation", (principal, transcript))
        if not rows:
            return None
        session_id, run_id, asks, taken = rows[0]
        if not taken:
            yield Statement("take_conversation", (principal, transcript, session_id))
        return StoredConversation(session_id, run_id, bool(asks), bool(taken))

    def is_known(self, principal: str, transcript: str, /) -> Read[bool]:
        """Return whether a session has a transcript."""
        return bool((yield Statement("conversation", (principal, transcript))))

    def release(self, principal: str, transcript: str, session_id: SessionId, /) -> Write[None]:
        """Give a session back that was taken, since nothing came of it."""
        yield Statement("release_conversation", (principal, transcript, session_id))

    def put(
        self,
        principal: str,
        transcripts: Collection[str],
        conversation: StoredConversation,
        *,
        now: str,
    ) -> Write[None]:
        """Store the transcripts that a program may have of a conversation now."""
        session_id, run_id, asks, _ = conversation
        rows = [(principal, each, session_id, run_id, asks, now) for each in transcripts]
        yield Batch("put_conversation", rows)
