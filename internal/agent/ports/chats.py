"""What the agent asks of the store of chats: how the tasks of a chat are wanted."""

from typing import NamedTuple, Protocol

from internal.agent.domain.plans import PlanReview
from internal.agent.ports.database import Read, Write


class ChatWish(NamedTuple):
    """What people of a chat asked for its coming tasks; None and "" leave it to the settings."""

    plan_review: PlanReview | None = None
    model: str = ""


class Chats(Protocol):
    """Wishes by chat; a chat is named over all channels, such as `lark:cli_a1:oc_b2`."""

    def wish(self, chat: str, /) -> Read[ChatWish]:
        """Return what is wished for a chat."""
        ...

    def keep(self, chat: str, wish: ChatWish, /) -> Write[None]:
        """Store the wish of a chat in place of the last one."""
        ...
