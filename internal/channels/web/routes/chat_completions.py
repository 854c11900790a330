"""The chat completions of OpenAI's API, for clients that already speak it.

A request is a task, and its answer the completion. The session keeps the conversation: a client
that names it in the header `x-larkspur-session` sends its new message only. Without the header, the
messages before the last one become part of the task, and the session is new.
"""

import asyncio
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.responses import Response, StreamingResponse

from internal.agent.app.events.subscription import StreamItem
from internal.agent.app.idempotency import scoped_key
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import InvalidRequest, NotFound
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Run
from internal.agent.domain.usage import Usage
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.routes.attachments import store_attachments
from internal.channels.web.schemas import AttachmentInput, EmptyRequest, Key, RequestModel
from internal.channels.web.services import WebServices

MAX_WAIT_SECONDS = 3_600
"""A run that takes longer goes on; its completion is an error that says so."""
SESSION_HEADER = "x-larkspur-session"
DEFAULT_MODEL = "larkspur"
"""The name of the model that the settings choose."""

_PING_SECONDS = 15.0
_DATA_URL = re.compile(r"data:(image/[a-z0-9.+-]{1,40});base64,(.*)", re.DOTALL | re.IGNORECASE)
_IMAGE_NAMES = {"image/jpeg": "jpg", "image/svg+xml": "svg"}
_DELTA, _PARTIAL = "workflow.node.output.delta", "partial"
_SUMMARY = "workflow.node.output.summary"
_TEXT_EVENTS = frozenset({_DELTA, _PARTIAL, _SUMMARY})


class ImageUrl(msgspec.Struct, frozen=True):
    """An image: a data URL. Addresses are not fetched."""

    url: str


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a message: a text, or an image."""

    type: Literal["text", "image_url"]
    text: str = ""
    image_url: ImageUrl | None = None


class CompletionInput(msgspec.Struct, frozen=True):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[tuple[ContentPart, ...], Meta(max_length=200)] | None = None

    @property
    def parts(self) -> tuple[ContentPart, ...]:
        """The content as parts."""
        if isinstance(self.content, str):
            return (ContentPart("text", self.content),)
        return self.content or ()

    @property
    def text(self) -> str:
        """The text of the message."""
        return "\n".join(part.text for part in self.parts if part.type == "text")


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream contains besides the answer."""

    include_usage: bool = False


Tool = Annotated[dict[str, Any], Meta(max_length=100)]


class ChatCompletionRequest(RequestModel, frozen=True, forbid_unknown_fields=False):
    """A request. Fields that are not listed, such as `temperature`, have no effect."""

    messages: Annotated[tuple[CompletionInput, ...], Meta(min_length=1, max_length=1_000)]
    model: str = DEFAULT_MODEL
    stream: bool = False
    stream_options: StreamOptions | None = None
    tools: Annotated[tuple[Tool, ...], Meta(max_length=1_000)] = ()


class CompletionMessage(msgspec.Struct, frozen=True):
    """The answer."""

    content: str
    role: Literal["assistant"] = "assistant"


class CompletionChoice(msgspec.Struct, frozen=True):
    """The only choice. `length`: a limit ended the run before it was done."""

    message: CompletionMessage
    finish_reason: Literal["stop", "length"]
    index: int = 0


class CompletionUsage(msgspec.Struct, frozen=True):
    """Tokens of the run; those that were read from a cache count as prompt."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(msgspec.Struct, frozen=True):
    """A completion. `larkspur` names the task and its session, for the other routes."""

    id: str
    created: int
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: CompletionUsage
    larkspur: Submitted
    object: Literal["chat.completion"] = "chat.completion"


class CompletionModel(msgspec.Struct, frozen=True):
    """A model that a request can name."""

    id: str
    created: int = 0
    object: Literal["model"] = "model"
    owned_by: str = "larkspur"


class CompletionModels(msgspec.Struct, frozen=True):
    """The models that requests can name; the first one is the default."""

    data: tuple[CompletionModel, ...]
    object: Literal["list"] = "list"


async def list_completion_models(
    request: ApiRequest[EmptyRequest, EmptyRequest],
) -> CompletionModels:
    """List the models for chat completions."""
    names = (DEFAULT_MODEL, *_available(request.services))
    return CompletionModels(tuple(map(CompletionModel, names)))


async def create_chat_completion(
    request: ApiRequest[EmptyRequest, ChatCompletionRequest],
) -> Response:
    """Run a task and return its answer, at once or as a stream."""
    body, services = request.body, request.services
    submitted = await _submit(request)
    head = _head(request, submitted)
    if body.stream:
        chunks = _CompletionStream(request, submitted, head).chunks()
        headers = {SESSION_HEADER: submitted.session_id, "cache-control": "no-cache"}
        return StreamingResponse(chunks, 200, headers, "text/event-stream")
    _, run = await services.gateway.wait_for_run(submitted, request.principal, MAX_WAIT_SECONDS)
    content = await _answer(request, submitted, run)
    completion = ChatCompletion(
        head["id"],
        head["created"],
        head["model"],
        (CompletionChoice(CompletionMessage(content), _finish_reason(run)),),
        _usage(run.usage),
        submitted,
    )
    headers = {SESSION_HEADER: submitted.session_id}
    return Response(msgspec.json.encode(completion), 200, headers, "application/json")


async def _submit(request: ApiRequest[EmptyRequest, ChatCompletionRequest]) -> Submitted:
    body, services = request.body, request.services
    if body.tools:
        raise InvalidRequest("tools are not supported: the agent uses the tools of the gateway.")
    named = request.context.headers(SESSION_HEADER.encode())
    session_id = SessionId(named[0].decode("latin-1")) if named else None
    *earlier, last = body.messages
    if last.role != "user":
        raise InvalidRequest("The last message must be one of the user.")
    images = [_attachment(part, n) for n, part in enumerate(_images(last), 1)]
    options = TaskOptions(model=_model(services, body.model))
    submission = Submission(
        instruction=last.text if session_id else _instruction(earlier, last),
        spec=build_run_spec(services.defaults, options, request.principal, None),
        channel=request.channel,
        session_id=session_id,
        attachments=await store_attachments(
            services.gateway.files, tuple(images), request.principal.id
        ),
        idempotency_key=scoped_key("completions", _key(request)),
        one_shot=session_id is None,
    )
    return await services.gateway.submit(submission, request.principal)


def _key(request: ApiRequest[EmptyRequest, ChatCompletionRequest]) -> str | None:
    keys = request.context.headers(b"idempotency-key")
    try:
        return msgspec.convert(keys[0].decode("latin-1"), Key) if keys else None
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"Invalid header Idempotency-Key: {error}.") from error


def _instruction(earlier: Sequence[CompletionInput], last: CompletionInput) -> str:
    """Return the last message after a transcript of those before it."""
    said = [f"{message.role}: {message.text}" for message in earlier if message.text.strip()]
    if not said:
        return last.text
    transcript = "\n\n".join(said)
    return f"The conversation so far:\n\n{transcript}\n\nMy message now:\n\n{last.text}"


def _available(services: WebServices) -> list[str]:
    return [model.name for model in services.models.models if model.available]


def _model(services: WebServices, name: str) -> str | None:
    if name in {"", DEFAULT_MODEL}:
        return None
    if name not in (known := _available(services)):
        listed = ", ".join((DEFAULT_MODEL, *known))
        raise NotFound(f"There is no model {name[:80]}. The models are: {listed}.")
    return name


def _images(message: CompletionInput) -> list[str]:
    return [part.image_url.url for part in message.parts if part.image_url is not None]


def _attachment(url: str, number: int) -> AttachmentInput:
    match = _DATA_URL.fullmatch(url)
    if match is None:
        raise InvalidRequest("An image must be a data URL, such as data:image/png;base64,….")
    media_type, data = match[1].lower(), match[2]
    try:
        content = b64decode(data, validate=True)
    except (Base64Error, ValueError) as error:
        raise InvalidRequest(f"The data of image {number} is not valid base64.") from error
    suffix = _IMAGE_NAMES.get(media_type, media_type.partition("/")[2])
    return AttachmentInput(f"image-{number}.{suffix}", media_type, content)


def _head(
    request: ApiRequest[EmptyRequest, ChatCompletionRequest], submitted: Submitted
) -> dict[str, Any]:
    """Return the fields that all objects of a completion have."""
    created = int(request.services.clock.now().timestamp())
    return {"id": f"chatcmpl-{submitted.run_id}", "created": created, "model": request.body.model}


def _finish_reason(run: Run) -> Literal["stop", "length"]:
    complete = run.status != "completed" or run.stop_reason in {None, "final_answer"}
    return "stop" if complete else "length"


def _usage(usage: Usage) -> CompletionUsage:
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return CompletionUsage(prompt, usage.output_tokens, prompt + usage.output_tokens)


async def _answer(request: ApiRequest[Any, Any], submitted: Submitted, run: Run) -> str:
    """Return the answer of a settled run; of one that waits, what it asks.

    Raises:
        HttpError: the run failed, or has not ended in time.
    """
    if not run.is_settled:
        message = f"The run has not ended in time and goes on: task {submitted.task_id}."
        raise HttpError(504, "timeout", message)
    if run.status == "failed":
        raise HttpError(502, "run_failed", run.error or "The run failed.")
    if run.status != "waiting":
        return run.answer
    asked = await request.services.gateway.queries.questions(
        request.principal, session_id=submitted.session_id
    )
    lines = [
        f"{question.title} Answer it on the page or with: larkspur answer {question.id}"
        for question, record in ((record.question, record) for record, _ in asked)
        if record.run_id == submitted.run_id
    ]
    return "\n".join(["The task waits for an answer.", *lines])


class _CompletionStream:
    """The chunks of a completion. A client that disconnects does not stop the run."""

    def __init__(
        self,
        request: ApiRequest[EmptyRequest, ChatCompletionRequest],
        submitted: Submitted,
        head: dict[str, Any],
    ) -> None:
        self._request = request
        self._submitted = submitted
        self._head = {**head, "object": "chat.completion.chunk"}
        self._node = ""
        """The reply that is being sent."""
        self._reply = ""
        """Its text so far."""
        self._pieces = 0
        """The number of pieces in it."""
        self._gap = False
        """An empty line comes before the next text."""

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield server-sent events: the text of all replies, the end, the usage if wanted."""
        yield self._chunk({"role": "assistant", "content": ""})
        watched = frozenset({self._submitted.session_id})
        async with aclosing(self._request.services.gateway.watch(watched, None)) as batches:
            async for batch in _with_pings(batches):
                if batch is None:
                    yield b": still running\n\n"
                    continue
                for text in filter(None, map(self._text_of, batch)):
                    yield self._chunk({"content": text})
                if any(map(_may_settle, batch)) and (run := await self._settled()):
                    async for chunk in self._end(run):
                        yield chunk
                    return

    async def _end(self, run: Run) -> AsyncGenerator[bytes]:
        try:
            answer = await _answer(self._request, self._submitted, run)
        except HttpError as error:
            yield _event({"error": {"message": str(error), "code": error.code}})
        else:
            if rest := self._missing(answer):
                yield self._chunk({"content": rest})
            yield self._chunk({}, _finish_reason(run))
            options = self._request.body.stream_options
            if options is not None and options.include_usage:
                yield _event({**self._head, "choices": [], "usage": _usage(run.usage)})
        yield b"data: [DONE]\n\n"

    async def _settled(self) -> Run | None:
        read = partial(
            self._request.services.gateway.queries.task_with_run, self._submitted.task_id
        )
        _, run = await read(self._request.principal)
        return run if run.is_settled else None

    def _text_of(self, item: StreamItem) -> str:
        """Return the new text of an event of the run."""
        if not isinstance(item, EventRecord) or item.run_id != self._submitted.run_id:
            return ""
        if item.event not in _TEXT_EVENTS:
            return ""
        payload = msgspec.json.decode(item.json)["payload"]
        node = payload["node_id"]
        if not node.endswith(":say"):  # reasoning, or the output of a tool
            return ""
        if node != self._node:
            self._node, self._pieces = node, 0
            self._gap, self._reply = self._gap or bool(self._reply), ""
        return self._advance(self._text_so_far(item.event, payload))

    def _text_so_far(self, event: str, payload: dict[str, Any]) -> str:
        """Return the text of a reply up to an event, as far as it is known."""
        if event == _SUMMARY:
            return str(payload["content"])
        if event == _PARTIAL:
            self._pieces = payload["k"]
            return str(payload["text"])
        if payload["k"] - payload["n"] != self._pieces:  # missed: the next partial has it
            return self._reply
        self._pieces = payload["k"]
        return f"{self._reply}{payload['text']}"

    def _missing(self, answer: str) -> str:
        """Return what has not been sent of the answer, which has no blanks at its ends."""
        said = self._reply.rstrip()
        if said and answer.startswith(said):
            return answer.removeprefix(said).removeprefix(self._reply.removeprefix(said))
        return self._advance(answer)

    def _advance(self, text: str) -> str:
        """Take the text of the current reply up to now, and return what has not been sent of it.

        Blanks before it are not sent: the stored answer has none.
        """
        text = text.lstrip()
        new = text.removeprefix(self._reply)
        if not text.startswith(self._reply):  # the model began the reply again
            self._gap = True
        self._reply = text
        if not new:
            return ""
        gap, self._gap = "\n\n" * self._gap, False
        return gap + new

    def _chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event({**self._head, "choices": [choice]})


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(content) + b"\n\n"


def _may_settle(item: StreamItem) -> bool:
    return not isinstance(item, EventRecord) or item.event != _DELTA


async def _with_pings(
    batches: AsyncGenerator[list[StreamItem]],
) -> AsyncGenerator[list[StreamItem] | None]:
    """Yield the batches, and None whenever there was none for a while."""
    following = asyncio.create_task(_next(batches))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=_PING_SECONDS)
            if not done:
                yield None
                continue
            batch = following.result()
            if batch is None:
                return
            yield batch
            following = asyncio.create_task(_next(batches))
    finally:
        following.cancel()
        await asyncio.wait({following})


async def _next(batches: AsyncGenerator[list[StreamItem]]) -> list[StreamItem] | None:
    return await anext(batches, None)
