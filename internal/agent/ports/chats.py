"""What the agent asks of the store of chats: how the tasks of a chat are wanted."""

from typing import NamedTuple

from internal.agent.domain.plans import PlanReview


class ChatWish(NamedTuple):
    """What people of a chat asked for its coming tasks; None and "" leave it to the settings."""

    plan_review: PlanReview | None = None
    model: str = ""
