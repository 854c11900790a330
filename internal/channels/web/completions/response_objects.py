"""The objects of OpenAI's Responses API."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.usage import Usage
from internal.channels.web.completions.answers import RUN_FAILED
from internal.channels.web.completions.replies import ReplyEnd
from internal.channels.web.errors import HttpError

ResponseStatus = Literal["completed", "failed", "in_progress", "cancelled", "queued", "incomplete"]
ErrorCode = Literal["server_error", "rate_limit_exceeded", "invalid_prompt"]
ItemStatus = Literal["in_progress", "completed", "incomplete"]
RESPONSE_PREFIX = "resp_"
"""Before the id of the run in the id of a response."""
MESSAGE_PREFIX = "msg_"
"""Before the id of the run in the id of its message."""

_ITEM_STATUSES: dict[ResponseStatus, ItemStatus] = {"completed": "completed"}
_TOO_MANY = 429


class OutputText(msgspec.Struct, frozen=True):
    """The text of a message."""

    text: str
    type: Literal["output_text"] = "output_text"
    annotations: tuple[dict[str, Any], ...] = ()
    logprobs: tuple[dict[str, Any], ...] = ()


class OutputMessage(msgspec.Struct, frozen=True):
    """The only item of an output."""

    id: str
    status: ItemStatus
    content: tuple[OutputText, ...]
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"


class ResponseError(msgspec.Struct, frozen=True):
    """Why a response failed."""

    message: str
    code: ErrorCode = "server_error"


class IncompleteDetails(msgspec.Struct, frozen=True):
    """Why a response is not complete: a limit ended the run or the reply before it was done."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class InputTokensDetails(msgspec.Struct, frozen=True):
    """Tokens of the input that were read from a cache or written into it."""

    cached_tokens: int
    cache_write_tokens: int


class OutputTokensDetails(msgspec.Struct, frozen=True):
    """Tokens of the output by kind; those of reasoning are not counted separately."""

    reasoning_tokens: int = 0


class ResponseUsage(msgspec.Struct, frozen=True):
    """Tokens of the run."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class TextFormat(msgspec.Struct, frozen=True):
    """The format of an answer."""

    type: Literal["text"] = "text"


class ResponseText(msgspec.Struct, frozen=True):
    """How an answer is written."""

    format: TextFormat = TextFormat()


class ResponseObject(msgspec.Struct, frozen=True, kw_only=True):
    """A response. `larkspur` names the task and its session, for the other routes."""

    id: str
    created_at: int
    model: str
    status: ResponseStatus
    output: tuple[OutputMessage, ...] = ()
    usage: ResponseUsage | None = None
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    previous_response_id: str | None = None
    instructions: str | None = None
    metadata: dict[str, Any] = {}
    object: Literal["response"] = "response"
    background: Literal[False] = False
    parallel_tool_calls: bool = True
    tool_choice: Literal["auto"] = "auto"
    tools: tuple[dict[str, Any], ...] = ()
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    text: ResponseText = ResponseText()
    store: bool = True
    larkspur: Submitted | UnsetType = UNSET


def output_of(response_id: str, text: str, status: ItemStatus) -> OutputMessage:
    """Return the message of a response."""
    name = f"{MESSAGE_PREFIX}{response_id.removeprefix(RESPONSE_PREFIX)}"
    return OutputMessage(name, status, (OutputText(text),))


def ended_response(response: ResponseObject, end: ReplyEnd) -> ResponseObject:
    """Return a response with the end of its reply. A run that waits for a person has answered."""
    status: ResponseStatus = "completed"
    if end.status == "cancelled":
        status = "cancelled"
    elif end.is_cut:
        status = "incomplete"
    return replace(
        response,
        status=status,
        output=(output_of(response.id, end.answer, _ITEM_STATUSES.get(status, "incomplete")),),
        usage=response_usage(end.usage),
        incomplete_details=IncompleteDetails() if status == "incomplete" else None,
    )


def failed_response(
    response: ResponseObject, error: HttpError, output: tuple[OutputMessage, ...] = ()
) -> ResponseObject:
    """Return a response that failed."""
    code: ErrorCode = "server_error"
    if error.status == _TOO_MANY:
        code = "rate_limit_exceeded"
    elif error.code == RUN_FAILED:
        # of the codes of this API the one after which clients do not repeat the request
        code = "invalid_prompt"
    return replace(response, status="failed", output=output, error=ResponseError(str(error), code))


def response_usage(usage: Usage) -> ResponseUsage:
    """Return the tokens as responses count them: cached tokens are part of the input."""
    given = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return ResponseUsage(
        given,
        InputTokensDetails(usage.cache_read_tokens, usage.cache_write_tokens),
        usage.output_tokens,
        OutputTokensDetails(),
        given + usage.output_tokens,
    )
