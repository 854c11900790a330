"""The Responses API of OpenAI, for clients that know nothing else.

As for chat completions, a request is a task, and its answer the response. The id of a response is
that of its run, so that `previous_response_id` names the session to continue.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.responses import Response, StreamingResponse

from internal.agent.app.idempotency import scoped_key
from internal.agent.app.runs.creation import Submitted
from internal.agent.app.task_options import TaskOptions
from internal.agent.domain.errors import InvalidRequest, NotFound
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Run, Task
from internal.channels.web.completions.answers import answer_of, reached_limit
from internal.channels.web.completions.attended_response import AttendedResponse
from internal.channels.web.completions.chat_completions import (
    idempotency_key,
    named_session,
)
from internal.channels.web.completions.conversation import (
    SESSION_HEADER,
    ConversationTurn,
    TurnRequest,
    take_turn,
)
from internal.channels.web.completions.models import DEFAULT_MODEL, PLAIN_MODEL, chosen_model
from internal.channels.web.completions.offered_tools import refuse_demanded_tools
from internal.channels.web.completions.plain import plain_reply
from internal.channels.web.completions.replies import PlainReply, Reply, ReplyEnd, RunReply
from internal.channels.web.completions.response_fields import RESPONSE_FIELDS, check_included
from internal.channels.web.completions.response_input import (
    Item,
    items_after_reference,
    read_input,
    references,
)
from internal.channels.web.completions.response_objects import (
    MESSAGE_PREFIX,
    RESPONSE_PREFIX,
    ResponseObject,
    ResponseStatus,
    ended_response,
    failed_response,
)
from internal.channels.web.completions.response_stream import ResponseStream
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.schemas import EmptyRequest, RequestModel

_UNFINISHED: dict[str, ResponseStatus] = {"queued": "queued", "running": "in_progress"}

Metadata = Annotated[dict[str, Any], Meta(max_length=64)]


class CreateResponseRequest(RequestModel, frozen=True, forbid_unknown_fields=False):
    """A request. `RESPONSE_FIELDS` says what is done with fields that are not listed.

    `temperature` and `max_output_tokens` are for the plain model; a run has its own.
    """

    input: str | Annotated[tuple[Item, ...], Meta(min_length=1, max_length=1_000)]
    model: str = DEFAULT_MODEL
    instructions: str = ""
    previous_response_id: str | None = None
    stream: bool = False
    include: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    metadata: Metadata | None = None
    tool_choice: Any = None
    user: Annotated[str, Meta(max_length=1_000)] = ""
    temperature: float | None = None
    max_output_tokens: int | None = None


ResponseRequest = ApiRequest[EmptyRequest, CreateResponseRequest]


async def create_response(request: ResponseRequest) -> Response:
    """Run a task and return its answer as a response, at once or as a stream."""
    body = request.body
    RESPONSE_FIELDS.check(request.content)
    refuse_demanded_tools(tool_choice=body.tool_choice)
    check_included(body.include)
    if body.model == PLAIN_MODEL:
        return await _plain_response(request)
    turn = await _take_turn(request)
    reply = RunReply(request, turn)
    response = msgspec.structs.replace(_begun(request, reply), larkspur=turn.submitted)
    headers = {SESSION_HEADER: str(turn.submitted.session_id)}
    return await _answered(request, reply, response, headers=headers)


async def show_response(request: ApiRequest[EmptyRequest, EmptyRequest]) -> ResponseObject:
    """Return a response with the state that its run has now."""
    task, run = await _find(request, request.path["response_id"])
    model = task.spec.model
    submitted = Submitted(task.id, run.id, run.session_id, task.status)
    response = ResponseObject(
        id=f"{RESPONSE_PREFIX}{run.id}",
        created_at=int(datetime.fromisoformat(task.created).timestamp()),
        model=DEFAULT_MODEL if model == request.services.defaults.model else model,
        status="in_progress",
        larkspur=submitted,
    )
    if not run.is_settled:
        return msgspec.structs.replace(response, status=_UNFINISHED.get(run.status, "in_progress"))
    try:
        answer = await answer_of(request, submitted, run)
    except HttpError as error:
        return failed_response(response, error)
    end = ReplyEnd(answer, "", run.usage, reached_limit(run), run.status)
    return ended_response(response, end)


async def _answered(
    request: ResponseRequest, reply: Reply, response: ResponseObject, headers: dict[str, str]
) -> Response:
    if request.body.stream:
        headers = {**headers, "cache-control": "no-cache"}
        events = ResponseStream(reply, response).events()
        return StreamingResponse(events, 200, headers, "text/event-stream")
    end = await reply.end()
    if end is None:
        raise HttpError(503, "stopping", "The gateway stops; the run goes on when it is back.")
    ended = ended_response(response, end)
    return Response(msgspec.json.encode(ended), 200, headers, "application/json")


async def _plain_response(request: ResponseRequest) -> Response:
    body = request.body
    if body.previous_response_id:
        raise InvalidRequest(f"{PLAIN_MODEL} has no session to continue: send all messages.")
    answers: dict[str, str] = {}
    for name in references(body.input):
        answers[name] = (await _find_message(request, name)).answer
    reply = plain_reply(
        request,
        read_input(body.input, body.instructions, answers),
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
    )
    return AttendedResponse(partial(_plain_answer, request, reply))


async def _plain_answer(request: ResponseRequest, reply: PlainReply) -> Response:
    if request.body.stream:
        await reply.start()
    response = msgspec.structs.replace(_begun(request, reply), store=False)
    return await _answered(request, reply, response, headers={})


def _begun(request: ResponseRequest, reply: Reply) -> ResponseObject:
    body = request.body
    return ResponseObject(
        id=f"{RESPONSE_PREFIX}{reply.id}",
        created_at=int(request.services.clock.now().timestamp()),
        model=body.model,
        status="in_progress",
        previous_response_id=body.previous_response_id,
        instructions=body.instructions or None,
        metadata=body.metadata or {},
        temperature=body.temperature,
        max_output_tokens=body.max_output_tokens,
    )


async def _take_turn(request: ResponseRequest) -> ConversationTurn:
    body, named = request.body, named_session(request)
    previous = await _previous(request)
    items: str | Sequence[Item] = body.input
    if previous is None and not named and (names := references(items)):
        # the session has the messages that are referred to, and those before them
        previous, items = await _find_message(request, names[-1]), items_after_reference(items)
    turn = TurnRequest(
        read_input(items, body.instructions, {}),
        TaskOptions(model=chosen_model(request.services, body.model)),
        session=named,
        user=body.user,
        idempotency_key=scoped_key("responses", idempotency_key(request)),
        previous=previous,
    )
    return await take_turn(request, turn)


async def _previous(request: ResponseRequest) -> Run | None:
    """Return the run of the response that a request continues.

    Raises:
        HttpError: there is no such response of the caller.
        InvalidRequest: the header names another session.
    """
    response_id = request.body.previous_response_id
    if not response_id:
        return None
    try:
        _, run = await _find(request, response_id)
    except NotFound as error:
        text = f"previous_response_id: {error}"
        raise HttpError(404, "previous_response_not_found", text) from error
    if named_session(request) not in {"", run.session_id}:
        raise InvalidRequest(f"The header {SESSION_HEADER} names another session.")
    return run


async def _find_message(request: ResponseRequest, name: str) -> Run:
    """Return the run that said a message.

    Raises:
        NotFound: there is no such message of the caller.
    """
    try:
        return (await _find(request, name.replace(MESSAGE_PREFIX, RESPONSE_PREFIX, 1)))[1]
    except NotFound as error:
        raise NotFound(f"There is no message {name[:80]}.") from error


async def _find(request: ApiRequest[Any, Any], response_id: str) -> tuple[Task, Run]:
    """Return the task and the run of a response.

    Raises:
        NotFound: there is no such response of the caller.
    """
    run_id = RunId(response_id.removeprefix(RESPONSE_PREFIX))
    if run_id != response_id:
        with suppress(NotFound):
            return await request.services.gateway.queries.run_with_task(run_id, request.principal)
    raise NotFound(f"There is no response {response_id[:80]}.")
