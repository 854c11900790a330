"""Routes for the feedback of people on answers."""

import msgspec

from internal.agent.app.feedback import FeedbackItem
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Limit, RequestModel


class FeedbackView(msgspec.Struct, frozen=True):
    """The feedback on tasks, the newest tasks first."""

    feedback: list[FeedbackItem]


class FeedbackQuery(RequestModel, frozen=True):
    """The number of tasks to return."""

    limit: Limit = 50


async def list_feedback(request: ApiRequest[FeedbackQuery, EmptyRequest]) -> FeedbackView:
    """List the feedback on the answers of tasks. Requires the owner role."""
    gateway = request.services.gateway
    return FeedbackView(await gateway.list_feedback(request.principal, limit=request.query.limit))
