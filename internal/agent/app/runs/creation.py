"""Intake: how a person's words become a task, in one transaction."""

import msgspec

from internal.agent.domain import ids as new
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict, InvalidRequest
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.events.types import InputReceived, LifecycleUpdated
from internal.agent.domain.ids import MessageId, RunId, SessionId, TaskId
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import (
    ENDED,
    Attachment,
    Channel,
    Origin,
    Run,
    RunSpec,
    Session,
    Status,
    Task,
)
from internal.agent.domain.text import truncate_json
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores

MAX_INSTRUCTION_CHARACTERS = 200_000
"""A task's text may be this many characters; more belongs into an attachment."""


RESUME_PROMPT = "Go on where this task stopped; do not repeat what is done:"


class Submission(msgspec.Struct, frozen=True):
    """A task as a door hands it in, into the session of that id, or the one at hand in `scope`.

    Without either it opens a new session. `message` is the accepted message that it comes from.
    `owner` names the terminal process that runs the task itself; "" leaves it to the dispatcher.
    `direct`: it was said in a chat of two.
    """

    instruction: str
    brief: RunSpec
    channel: Channel
    session_id: SessionId | None = None
    attachments: tuple[Attachment, ...] = ()
    idempotency_key: str | None = None
    owner: str = ""
    lease_until: str = ""
    scope: str = ""
    message: InboundMessage | None = None
    direct: bool = False


class Submitted(msgspec.Struct, frozen=True):
    """What became of it. `status` is the task's status at that moment."""

    task_id: TaskId
    run_id: RunId
    session_id: SessionId
    status: Status


class TaskIds(msgspec.Struct, frozen=True):
    """Ids drawn before a transaction, so that it can be run again and mean the same."""

    session_id: SessionId
    task_id: TaskId
    run_id: RunId
    message_id: MessageId


def new_task_ids() -> TaskIds:
    """Draw the ids that a new task may need."""
    return TaskIds(new.new_session_id(), new.new_task_id(), new.new_run_id(), new.new_message_id())


def clean_instruction(text: str) -> str:
    """Return a person's words as they may be stored.

    Raises:
        Malformed: there are none, or too many.
    """
    text = text.encode("utf-8", "replace").decode().replace("\0", "�")
    if not text.strip():
        raise InvalidRequest("The task is empty: say what is to be done.")
    if len(text) > MAX_INSTRUCTION_CHARACTERS:
        raise InvalidRequest(
            f"The task has {len(text):,} characters; the maximum is {MAX_INSTRUCTION_CHARACTERS:,}."
            " Attach long material as a file."
        )
    return text


def open_session(
    stores: Stores,
    session_id: SessionId,
    channel: Channel,
    owner: Principal,
    now: str,
    scope: str = "",
) -> Write[None]:
    """Store a new, empty session."""
    yield from stores.sessions.add(Session(session_id, "", channel, owner.id, now, now, scope))


def create_task(
    stores: Stores,
    submission: Submission,
    session_id: SessionId,
    fresh: TaskIds,
    origin: Origin,
    now: str,
) -> Write[list[EventRecord]]:
    """Store the task, its run, and their first events, for a session that exists."""
    task = Task(
        id=fresh.task_id,
        session_id=session_id,
        kind="chat",
        lane=session_id,
        instruction=submission.instruction,
        origin=origin,
        brief=submission.brief,
        status="queued",
        created=now,
        attachments=submission.attachments,
    )
    run = Run(
        id=fresh.run_id,
        task_id=task.id,
        session_id=session_id,
        lane=task.lane,
        status="queued",
        fence=0,
        last_seq=0,
        owner=submission.owner,
        terminal=bool(submission.owner),
    )
    yield from stores.tasks.add(task, submission.idempotency_key)
    yield from stores.runs.add(run, now, submission.lease_until)
    received = InputReceived(
        task=truncate_json(submission.instruction),
        channel=submission.channel,
        sender=origin.principal,
        attachments=submission.attachments,
    )
    queued = LifecycleUpdated(status="queued", phase="accept")
    ids = RunIds(session_id, task.id, run.id)
    return (yield from stores.events.append_idle(ids, (received, queued), now))


def inbox_message(
    submission: Submission, fresh: TaskIds, principal: Principal, now: str
) -> InboundMessage:
    """Return the inbox row of a submission: the accepted message with the words as understood."""
    raw = msgspec.json.encode({"text": submission.instruction}).decode()
    if submission.message is not None:
        return msgspec.structs.replace(submission.message, raw=raw)
    return InboundMessage(
        channel=submission.channel,
        app="",
        message_id=fresh.message_id,
        chat_id="",
        principal=principal.id,
        raw=raw,
        received=now,
    )


def resume_submission(task: Task, channel: Channel, message: InboundMessage | None) -> Submission:
    """Return the task that goes on where another one ended, in its session.

    Raises:
        Conflict: that one has not ended, or is done.
    """
    if task.status not in ENDED:
        raise Conflict(f"The task has not ended: it is {task.status}.")
    if task.stop_reason == "final_answer":
        raise Conflict("The task is done: there is nothing to go on with.")
    return Submission(
        instruction=f"{RESUME_PROMPT}\n\n{task.instruction.removeprefix(RESUME_PROMPT).strip()}",
        brief=task.brief,
        channel=channel,
        session_id=task.session_id,
        attachments=task.attachments,
        message=message,
        direct=task.origin.direct,
    )
