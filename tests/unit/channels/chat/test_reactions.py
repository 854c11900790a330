"""The rating that follows from all reactions of a person on a message."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.tasks import Rating
from internal.channels.chat.reactions import current_rating
from internal.channels.chat.transport import MessageReaction


def reaction(emoji: str, second: int, *, removed: bool = False) -> MessageReaction:
    rating: Rating = "down" if emoji == "MinusOne" else "up"
    at = datetime.fromtimestamp(second, UTC)
    return MessageReaction("om_1", "ou_1", emoji, rating, at, removed)


def test_the_newest_reaction_that_was_not_removed_counts() -> None:
    up, down = reaction("HEART", 1), reaction("MinusOne", 2)
    assert current_rating([]) is None
    assert current_rating([up, down]) == "down"
    assert current_rating([up, down, reaction("MinusOne", 3, removed=True)]) == "up"
    assert current_rating([up, reaction("HEART", 1, removed=True)]) is None


@given(st.permutations([reaction("HEART", 1), reaction("MinusOne", 2), reaction("HEART", 3)]))
def test_the_order_of_arrival_does_not_matter(arrived: list[MessageReaction]) -> None:
    assert current_rating(arrived) == "up"
