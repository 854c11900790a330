"""Reactions of people on answers: they are feedback on the task, as the page stores it."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime

from internal.agent.app.feedback import AnswerRating
from internal.agent.app.gateway import Gateway
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.tasks import Rating
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.transport import (
    ChatTransport,
    MessageReaction,
    StoredEvent,
    reaction_prefix,
)

log = logging.getLogger(__name__)

_UNKNOWN = datetime.fromtimestamp(0, UTC)


class ReactionFeedback:
    """Stores the reactions of the users of one account."""

    def __init__(self, transport: ChatTransport, gateway: Gateway, people: ChatUsers) -> None:
        self._transport, self._gateway, self._people = transport, gateway, people

    async def store(self, row: InboundMessage, reaction: MessageReaction) -> str:
        """Store a person's rating of a message after a reaction, and return the outcome.

        The rating follows from all known reactions of the person to the message, so that their
        order of arrival does not matter.
        """
        prefix = reaction_prefix(reaction.message_id, reaction.user_id)
        stored = await self._gateway.delivery.list_raw(row.channel, row.app, prefix)
        events = [
            reaction if raw == row.raw else await self._transport.parse(StoredEvent(raw))
            for raw in stored
        ]
        known = [each for each in events if isinstance(each, MessageReaction)]
        given = AnswerRating(
            reaction.message_id,
            self._people.principal_id(reaction.user_id),
            current_rating(known),
            rfc3339(max((_time(each) for each in known), default=_UNKNOWN)),
            row,
        )
        task_id = await self._gateway.rate_answer(given)
        return "it changed no feedback" if task_id is None else f"it is feedback on {task_id}"


def current_rating(reactions: Iterable[MessageReaction]) -> Rating | None:
    """Return the rating of a person's newest reaction that was not removed, or None."""
    newest: dict[str, MessageReaction] = {}
    for each in sorted(reactions, key=lambda each: (_time(each), each.is_removed)):
        newest[each.emoji] = each
    left = [each for each in newest.values() if not each.is_removed]
    return max(left, key=_time).rating if left else None


def _time(reaction: MessageReaction) -> datetime:
    return reaction.at or _UNKNOWN
