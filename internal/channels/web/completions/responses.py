"""The Responses API of OpenAI, for clients that support no other API.

As for chat completions, a request is a task, and its answer the response. The id of a response is
derived from its run, so that `previous_response_id` names the session to continue.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
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
from internal.channels.web.completions.conversation import TurnRequest, take_turn
from internal.channels.web.completions.models import DEFAULT_MODEL, PLAIN_MODEL, chosen_model
from internal.channels.web.completions.offered_tools import refuse_demanded_tools
from internal.channels.web.completions.plain_reply import PlainReply, ReplyLimits
from internal.channels.web.completions.replies import CompletionReply, ReplyEnd
from internal.channels.web.completions.request_headers import (
    idempotency_key,
    named_session,
    named_user,
)
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
from internal.channels.web.completions.run_reply import RunReply
from internal.channels.web.delivery import SESSION_HEADER, Delivery, errors_of_created_run
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.requests import while_connected
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
    return await (_plain_response if body.model == PLAIN_MODEL else _run_response)(request)


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


async def _run_response(request: ResponseRequest) -> Response:
    key = idempotency_key(request)
    with Delivery(request, is_repeatable=key is None) as delivery:
        turn = await take_turn(request, await _turn_request(request, key), delivery)
        reply, submitted = RunReply(request, turn, delivery), turn.submitted
        response = msgspec.structs.replace(_begun(request, reply), larkspur=submitted)
        headers = {SESSION_HEADER: str(submitted.session_id)}
        if request.body.stream:
            events = ResponseStream(reply, response).events()
            return delivery.stream(submitted, events, {**headers, "cache-control": "no-cache"})
        with errors_of_created_run(headers):
            ended = ended_response(response, await reply.whole())
    return Response(msgspec.json.encode(ended), 200, headers, "application/json")


async def _plain_response(request: ResponseRequest) -> Response:
    body = request.body
    if body.previous_response_id:
        raise InvalidRequest(f"{PLAIN_MODEL} has no session to continue: send all messages.")
    answers: dict[str, str] = {}
    for name in references(body.input):
        answers[name] = (await _find_message(request, name)).answer
    messages = read_input(body.input, body.instructions, answers)
    limits = ReplyLimits(body.max_output_tokens, body.temperature)
    reply = PlainReply(request, messages, limits)
    response = msgspec.structs.replace(_begun(request, reply), store=False)
    if body.stream:
        await while_connected(request.receive, reply.start())
        events = ResponseStream(reply, response).events()
        return StreamingResponse(events, 200, {"cache-control": "no-cache"}, "text/event-stream")
    end = await while_connected(request.receive, reply.whole())
    return Response(
        msgspec.json.encode(ended_response(response, end)), media_type="application/json"
    )


def _begun(request: ResponseRequest, reply: CompletionReply) -> ResponseObject:
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


async def _turn_request(request: ResponseRequest, key: str | None) -> TurnRequest:
    body, named = request.body, named_session(request)
    previous = await _previous(request)
    items: str | Sequence[Item] = body.input
    if previous is None and not named and (names := references(items)):
        # the session has the messages that are referred to, and those before them
        previous, items = await _find_message(request, names[-1]), items_after_reference(items)
    return TurnRequest(
        read_input(items, body.instructions, {}),
        TaskOptions(model=chosen_model(request.services, body.model)),
        session=named,
        user=named_user(request, body.user),
        idempotency_key=scoped_key("responses", key),
        previous=previous,
    )


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
    """Return the run that wrote a message.

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
