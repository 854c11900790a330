"""Routes for messages and runs that were given up."""

import msgspec

from internal.agent.domain.chats import DeadLetter
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Limit, RequestModel


class DeadLettersView(msgspec.Struct, frozen=True):
    """Messages and runs that were given up, newest first."""

    dead_letters: list[DeadLetter]


class DeadLettersQuery(RequestModel, frozen=True):
    """The number of dead letters to return."""

    limit: Limit = 50


class RetryRequest(RequestModel, frozen=True):
    """Whether a message is sent again that may have been sent, and may then appear twice."""

    may_repeat: bool = False


async def list_dead_letters(
    request: ApiRequest[DeadLettersQuery, EmptyRequest],
) -> DeadLettersView:
    """List the messages and runs that were given up. Requires the owner role."""
    letters = request.services.gateway.dead_letters
    return DeadLettersView(await letters.list_all(request.principal, limit=request.query.limit))


async def retry(request: ApiRequest[EmptyRequest, RetryRequest]) -> None:
    """Process or send a message again, or continue the task of a run. Requires the owner role."""
    await request.services.gateway.dead_letters.retry(
        request.path["letter_id"],
        request.principal,
        request.channel,
        may_repeat=request.body.may_repeat,
    )


async def dismiss(request: ApiRequest[EmptyRequest, EmptyRequest]) -> None:
    """Remove a dead letter from the list. Requires the owner role."""
    await request.services.gateway.dead_letters.dismiss(
        request.path["letter_id"], request.principal, request.channel
    )
