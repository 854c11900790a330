"""Routes for messages to chats that were given up."""

import msgspec

from internal.agent.domain.chats import DeadLetter
from internal.agent.domain.errors import NotFound
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.schemas import EmptyRequest, Limit, RequestModel


class DeadLetterView(msgspec.Struct, frozen=True):
    """A message that was given up at `given_up_at` (RFC 3339), because of `reason`.

    `about` is the person's message, `text` what was to be sent: "" for a question, which has a
    `question_id`.
    """

    number: int
    channel: str
    chat_id: str
    about: str
    text: str
    run_id: str
    question_id: str
    reason: str
    may_have_been_sent: bool
    given_up_at: str


class DeadLettersView(msgspec.Struct, frozen=True):
    """Messages that were given up, newest first."""

    dead_letters: list[DeadLetterView]


class DeadLettersQuery(RequestModel, frozen=True):
    """The number of messages to return."""

    limit: Limit = 50


class ResendRequest(RequestModel, frozen=True):
    """Whether a message is sent again that may have been sent, and may then appear twice."""

    may_repeat: bool = False


async def list_dead_letters(
    request: ApiRequest[DeadLettersQuery, EmptyRequest],
) -> DeadLettersView:
    """List the messages to chats that were given up. Requires the owner role."""
    queries, limit = request.services.gateway.queries, request.query.limit
    found = await queries.dead_letters(request.principal, limit=limit)
    return DeadLettersView([_view(letter) for letter in found])


async def resend(request: ApiRequest[EmptyRequest, ResendRequest]) -> None:
    """Send a message that was given up again, as if it were new."""
    if request.number is None:
        raise NotFound(f"There is no undelivered message {request.path['number'][:80]}.")
    await request.services.gateway.resend(
        request.number, request.principal, request.channel, may_repeat=request.body.may_repeat
    )


def _view(letter: DeadLetter) -> DeadLetterView:
    outgoing = letter.outgoing
    return DeadLetterView(
        number=letter.number,
        channel=outgoing.channel,
        chat_id=outgoing.chat_id,
        about=letter.instruction,
        text=outgoing.body,
        run_id=outgoing.run_id,
        question_id=outgoing.question_id,
        reason=letter.failure,
        may_have_been_sent=letter.unconfirmed,
        given_up_at=letter.settled,
    )
