"""Conversations of programs that send their whole history: the sessions that continue them."""

from collections.abc import Collection
from functools import partial

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import Principal
from internal.agent.ports.runtime import Clock
from internal.agent.store.conversations import StoredConversation
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores


class Conversations:
    """Finds the session of a history. A transcript is a hash that the channel computes.

    A principal finds own sessions only.
    """

    def __init__(self, database: Database, stores: Stores, clock: Clock) -> None:
        self._database, self._stores, self._clock = database, stores.conversations, clock

    async def take(self, principal: Principal, transcript: str) -> StoredConversation | None:
        """Take the session with a transcript; None if there is none.

        Of two requests with the same transcript one takes the session; for the other it is taken.
        """
        is_known = partial(self._stores.is_known, principal.id, transcript)
        if not await self._database.read(is_known, is_short=True):
            return None
        return await self._database.write(partial(self._stores.take, principal.id, transcript))

    async def release(self, principal: Principal, transcript: str, session_id: SessionId) -> None:
        """Give a session back that was taken for something that was not done."""
        release = partial(self._stores.release, principal.id, transcript, session_id)
        await self._database.write(release)

    async def remember(
        self,
        principal: Principal,
        transcripts: Collection[str],
        submitted: Submitted,
        *,
        asks: bool,
    ) -> None:
        """Store which transcripts the program may have now that a run has said something.

        `asks`: it was a question.
        """
        said = StoredConversation(submitted.session_id, submitted.run_id, asks, is_taken=False)
        now = rfc3339(self._clock.now())
        put = partial(self._stores.put, principal.id, transcripts, said, now=now)
        await self._database.write(put)
