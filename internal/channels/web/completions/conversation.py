"""Conversations: the messages of a request become the next turn of a session.

A client names its session in a header, or sends its whole history: then the session is the one
whose transcript is that history. A session receives the messages that it does not know.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from internal.agent.app.background_task import wait_for_completion
from internal.agent.app.events.subscription import Cursor
from internal.agent.app.idempotency import RepeatableRequest
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.runs.questions import Actor
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import Conflict, InvalidRequest, NotFound
from internal.agent.domain.events.envelope import milliseconds_between, rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import Attachment, Run, RunSpec
from internal.agent.ports.instructions import MAX_TEXT_BYTES
from internal.channels.web.completions.answers import answer_of
from internal.channels.web.completions.asked_questions import list_asked, read_reply
from internal.channels.web.completions.messages import (
    ConversationMessage,
    SentFile,
    Unreadable,
    read_file,
)
from internal.channels.web.completions.transcripts import (
    loose_hash,
    message_splits,
    prompt_with_transcript,
    run_hash,
    transcript_hash,
    transcript_hashes,
)
from internal.channels.web.delivery import Delivery
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.routes.attachments import store_attachments
from internal.channels.web.schemas import AttachmentInput
from internal.i18n.chat import ChatTexts

NEW_SESSION = "new"
"""The value of the session header for a new session, whatever the history."""

MAX_FILES = 50
"""Files of the messages of a request that become attachments of its task."""

AnyRequest = ApiRequest[Any, Any]
_TEXTS = ChatTexts()


class TurnRequest(NamedTuple):
    """The next turn of a conversation, as an API reads it from a request.

    `session` is the id of the session, `NEW_SESSION`, or "" for the session whose transcript equals
    the earlier messages. `user` is the user that the program names: conversations of other users
    are not continued. With `previous`, the run of the last answer, all messages are new.
    """

    messages: Sequence[ConversationMessage]
    options: TaskOptions
    session: str = ""
    user: str = ""
    idempotency_key: str | None = None
    previous: Run | None = None


class _Place(NamedTuple):
    """The session position at which a turn continues.

    `earlier` are the messages that the session does not know, `now` the new messages. `taken` is
    the hash of the transcript by which the session was taken, or "".
    """

    session_id: SessionId | None
    earlier: Sequence[ConversationMessage]
    now: Sequence[ConversationMessage]
    taken: str = ""


class _Started(NamedTuple):
    """A submitted turn, with the fields of `ConversationTurn`."""

    submitted: Submitted
    remark: str = ""
    start: Cursor | None = None


class _Given(NamedTuple):
    """Task input from a turn: the text for people, the text for the model, and the files."""

    text: str
    prompt: str
    files: tuple[Attachment, ...]


class ConversationTurn:
    """A submitted turn of a conversation.

    Attributes:
        submitted: The run whose answer is the next message.
        remark: The next message if there is nothing to wait for: the reason why the message
            answered no question; otherwise "".
        start: The cursor before the run's events about the turn; None starts at the first event.
    """

    def __init__(
        self,
        request: AnyRequest,
        turn: TurnRequest,
        submitted: Submitted,
        *,
        remark: str = "",
        taken: str = "",
        start: Cursor | None = None,
        is_joined: bool = False,
    ) -> None:
        self.submitted, self.remark, self.start = submitted, remark, start
        # the run is that of an earlier request, which was sent again
        self._is_joined = is_joined
        self._request, self._turn, self._taken = request, turn, taken
        self._heard, self._is_over = "", False

    def hear(self, text: str) -> None:
        """Take in that a text was sent, which is a part of the answer."""
        self._heard += text

    async def finish(self, run: Run, answer: str) -> None:
        """Remember the answer of a settled run, before the client has all of it.

        The client sends back either the text it received or the answer alone.
        """
        await self._remember({self._heard, answer, ""}, asks=run.status == "waiting")

    async def answer(self, run: Run) -> str:
        """Return the answer of a run that is settled.

        Raises:
            HttpError: the run failed, or has not ended in time.
        """
        if self.remark:
            return self.remark
        try:
            return await answer_of(self._request, self.submitted, run)
        except HttpError as error:
            if run.is_settled:
                await self._give_up()
            if self._is_joined and run.status == "failed":
                now = rfc3339(self._request.services.clock.now())
                seconds = milliseconds_between(run.ended, now) // 1_000
                again = f"(The same request failed {seconds} seconds ago and was not repeated.)"
                raise HttpError(error.status, error.code, f"{error} {again}") from error
            raise

    async def _give_up(self) -> None:
        """Restore the conversation to its state before the turn: its run has failed."""
        if self._taken:
            conversations = self._request.services.gateway.conversations
            session_id = self.submitted.session_id
            await conversations.release(self._request.principal, self._taken, session_id)
        await self._remember({self._heard, ""}, asks=False)

    async def leave(self) -> None:
        """Remember the text sent so far when the client leaves early; no effect after the end."""
        if not self._is_over:
            # to its end, as the client is gone and the request is cancelled
            await wait_for_completion(self._remember({self._heard, ""}, asks=False))

    async def _remember(self, answers: set[str], *, asks: bool) -> None:
        self._is_over = True
        if self._turn.session not in {"", NEW_SESSION}:
            return  # the client sends no history, or one that is not that of the session
        hashes = {run_hash(self.submitted.run_id)}
        if self._turn.previous is None:  # else the messages are only the end of a history
            hashes |= transcript_hashes(self._turn.user, _said(self._turn), answers)
        conversations = self._request.services.gateway.conversations
        await conversations.remember(self._request.principal, hashes, self.submitted, asks=asks)


async def take_turn(request: AnyRequest, turn: TurnRequest, delivery: Delivery) -> ConversationTurn:
    """Submit the last message of a conversation as an answer to its run, or as its next task.

    A repeated request joins the run of the first one.

    Raises:
        InvalidRequest: the messages do not fit, such as a last one that is not of the user.
        NotFound: there is no such session.
        RequestError: as raised by `Gateway.submit` and `Gateway.answer`.
    """
    if (joined := await delivery.joined()) is not None:
        return ConversationTurn(request, turn, joined, is_joined=True)
    said = _said(turn)
    _check_last(said)
    spec = _spec(request, turn)
    place = await _find_place(request, turn, said)
    try:
        started = await _start(request, turn, place, spec=spec, repeatable=delivery.repeatable)
    except BaseException:
        if place.taken and place.session_id is not None:
            conversations = request.services.gateway.conversations
            await conversations.release(request.principal, place.taken, place.session_id)
        raise
    return ConversationTurn(
        request,
        turn,
        started.submitted,
        remark=started.remark,
        taken=place.taken,
        start=started.start,
    )


def _said(turn: TurnRequest) -> list[ConversationMessage]:
    return [each for each in turn.messages if each.role != "instructions"]


def _check_last(said: Sequence[ConversationMessage]) -> None:
    """Check that the last message is one of the user, and can be read.

    Raises:
        InvalidRequest: it is not.
    """
    if not said or said[-1].role != "user":
        raise InvalidRequest("The last message must be one of the user.")
    for part in said[-1].parts:
        if isinstance(part, Unreadable):
            raise InvalidRequest(
                f"A message cannot have a part of the type {part.type[:40]}, or it lacks its data:"
                " send text, image_url, file or input_audio, the last three with their data in"
                " base64."
            )


def _spec(request: AnyRequest, turn: TurnRequest) -> RunSpec:
    """Return how the task runs, with the instructions of the program."""
    texts = [each.text.strip() for each in turn.messages if each.role == "instructions"]
    instructions = "\n\n".join(filter(None, texts))
    if (size := len(instructions.encode("utf-8", "replace"))) > MAX_TEXT_BYTES:
        raise InvalidRequest(
            f"The system messages have {size:,} bytes together; the maximum is"
            f" {MAX_TEXT_BYTES:,}. Attach long material as a file, or put it into a skill."
        )
    spec = build_run_spec(request.services.defaults, turn.options, request.principal, None)
    return msgspec.structs.replace(spec, instructions=instructions)


async def _find_place(
    request: AnyRequest, turn: TurnRequest, said: Sequence[ConversationMessage]
) -> _Place:
    *earlier, last = said
    if turn.previous is not None:
        place = await _find_session(request, run_hash(turn.previous.id))
        place = place or _Place(turn.previous.session_id, (), ())
        return place._replace(earlier=earlier, now=(last,))
    if turn.session and turn.session != NEW_SESSION:
        return _Place(SessionId(turn.session), (), (last,))
    if not turn.session:
        for make_hash in (transcript_hash, loose_hash):
            for history, now in message_splits(said):
                transcript = make_hash(turn.user, history)
                if transcript and (place := await _find_session(request, transcript)):
                    return place._replace(now=now)
    return _Place(None, earlier, (last,))


async def _find_session(request: AnyRequest, transcript: str) -> _Place | None:
    """Return the session with a transcript, or a fork of one that went on; None without any."""
    gateway, principal = request.services.gateway, request.principal
    found = await gateway.conversations.take(principal, transcript)
    if found is None or (found.is_taken and found.asks):
        return None  # in the middle of a run there is nothing to fork
    if not found.is_taken:
        return _Place(found.session_id, (), (), transcript)
    try:
        fork = await gateway.fork_session(
            found.session_id, principal, request.channel, run_id=found.run_id, includes_run=True
        )
    except (Conflict, NotFound):  # the run goes on, or left nothing
        return None
    return _Place(fork.id, (), ())


async def _start(
    request: AnyRequest,
    turn: TurnRequest,
    place: _Place,
    *,
    spec: RunSpec,
    repeatable: RepeatableRequest | None,
) -> _Started:
    """Answer an open question or submit a task."""
    given = await _give(request, place)
    gateway, session_id = request.services.gateway, place.session_id
    asked = None if session_id is None else await list_asked(request, session_id)
    submission = Submission(
        instruction=given.text,
        prompt=given.prompt,
        spec=spec,
        channel=request.channel,
        session_id=session_id,
        attachments=given.files,
        idempotency_key=turn.idempotency_key,
        one_shot=session_id is None,
        request=repeatable,
    )
    if asked is None or not asked.records:
        return _Started(await gateway.submit(submission, request.principal))
    bounds = await gateway.queries.bounds()
    reply = read_reply(asked, given.text)
    if reply.answer is not None:
        actor = Actor(request.principal, request.channel)
        await gateway.answer(reply.record.question.id, reply.answer, actor, attachments=given.files)
    submitted = await _outermost(request, reply.record)
    await gateway.repeated_requests.record(repeatable, request.principal, submitted)
    return _Started(submitted, reply.remark, Cursor(bounds.epoch, bounds.head))


async def _outermost(request: AnyRequest, record: QuestionRecord) -> Submitted:
    """Return the run of a question, or the one above it that the conversation waits for."""
    queries, principal = request.services.gateway.queries, request.principal
    task, run = await queries.task_with_run(record.task_id, principal)
    while task.parent_task_id is not None:
        task, run = await queries.task_with_run(task.parent_task_id, principal)
    return Submitted(task.id, run.id, task.session_id, run.status)


async def _give(request: AnyRequest, place: _Place) -> _Given:
    """Return the task input from the messages of a turn, and store their files."""
    files = _Files()
    for message in place.earlier:
        for file in message.files:
            files.add_if_sent(file)
    own = [files.add(file) for message in place.now for file in message.files]
    text = "\n\n".join(filter(None, (message.text for message in place.now)))
    if not text.strip() and own:
        phrases = _TEXTS.phrases_for("".join(each.text for each in place.earlier))
        text = phrases("only_files", names=", ".join(own))
    prompt = prompt_with_transcript(place.earlier, text, files.name_of)
    stored = await store_attachments(
        request.services.gateway.files, files.inputs, request.principal.id
    )
    return _Given(text, prompt, stored)


class _Files:
    """The files of a request, each once, in the order of their messages."""

    def __init__(self) -> None:
        self._added: dict[str, AttachmentInput] = {}

    @property
    def inputs(self) -> tuple[AttachmentInput, ...]:
        return tuple(self._added.values())

    def name_of(self, file: SentFile) -> str:
        """Return the name of a file, "" if it was not added."""
        found = self._added.get(file.url)
        return found.name if found else ""

    def add(self, file: SentFile) -> str:
        """Add a file and return its name.

        Raises:
            InvalidRequest: it cannot be read, or there are too many.
        """
        if file.url not in self._added:
            if len(self._added) >= MAX_FILES:
                raise InvalidRequest(f"A request can have {MAX_FILES} files at most.")
            self._added[file.url] = read_file(file, self._number(file))
        return self._added[file.url].name

    def add_if_sent(self, file: SentFile) -> None:
        """Add a file of an earlier message, unless it is missing or cannot be read.

        A problem in the history of a conversation must not end it.
        """
        with suppress(InvalidRequest):
            self.add(file)

    def _number(self, file: SentFile) -> int:
        return 1 + sum(each.name.startswith(f"{file.kind}-") for each in self._added.values())
