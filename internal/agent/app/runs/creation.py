"""Creation: submissions become tasks, runs and sessions, in one transaction."""

from typing import NamedTuple

import msgspec

from internal.agent.app.files.session_files import use_attachments
from internal.agent.app.idempotency import RepeatableRequest
from internal.agent.app.runs.context import stage_started
from internal.agent.app.runs.visibility import Writing
from internal.agent.domain import ids as new
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict, Forbidden, InvalidRequest, StoreError
from internal.agent.domain.events.envelope import EventRecord, RunIds
from internal.agent.domain.events.types import Event, InputReceived, LifecycleUpdated
from internal.agent.domain.ids import MessageId, RunId, SessionId, TaskId
from internal.agent.domain.own_commands import shown_commands
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import (
    ENDED,
    Attachment,
    Channel,
    ClaimedTask,
    Origin,
    Run,
    RunSpec,
    Session,
    Status,
    Task,
)
from internal.agent.domain.text import MAX_JSON_BYTES, first_line, truncate_json
from internal.agent.domain.unwritten_messages import RESUME_PROMPT
from internal.agent.ports.runtime import RunSlot
from internal.agent.store.database import Read, Write
from internal.agent.store.stores import Stores

MAX_INSTRUCTION_CHARACTERS = 200_000


class Submission(msgspec.Struct, frozen=True):
    """A task as a channel submits it, for a session by id or for the current session of a scope.

    Without either a new session is opened. `message` is the accepted message that contains the
    task. `owner` names the terminal process that executes the task itself; "" leaves it to the
    dispatcher. `direct` is True in a chat with the bot alone. `resumes` is the failed run that the
    task continues from its checkpoint; `is_resumed`: a person let an ended task go on. `prompt` is
    what the model reads instead of the instruction, such as the instruction with the name of the
    person who wrote it; "" is the instruction alone.
    A session of `one_shot` submissions alone is one-shot. `reports` are the ended subtasks that it
    tells the person about. `joins` is the task in the background that a message is for. `writing`
    says when it was written: it steers and interrupts no run that began later. `joined` are further
    accepted messages whose texts it contains, with their content as `raw`; see `message_content`.
    `request` recognises the same submission without an idempotency key.
    """

    instruction: str
    spec: RunSpec
    channel: Channel
    session_id: SessionId | None = None
    attachments: tuple[Attachment, ...] = ()
    idempotency_key: str | None = None
    owner: str = ""
    lease_until: str = ""
    scope: str = ""
    message: InboundMessage | None = None
    direct: bool = False
    resumes: RunId | None = None
    is_resumed: bool = False
    prompt: str = ""
    one_shot: bool = False
    reports: tuple[TaskId, ...] = ()
    joins: TaskId | None = None
    writing: Writing = None
    joined: tuple[InboundMessage, ...] = ()
    request: RepeatableRequest | None = None

    @property
    def model_text(self) -> str:
        """The text for the model."""
        return self.prompt or self.instruction


class Submitted(msgspec.Struct, frozen=True):
    """The ids of a submitted task and its status at that moment."""

    task_id: TaskId
    run_id: RunId
    session_id: SessionId
    status: Status


class TaskIds(msgspec.Struct, frozen=True):
    """New ids, generated before the transaction so that repeating it gives the same result."""

    session_id: SessionId
    task_id: TaskId
    run_id: RunId
    message_id: MessageId

    def another(self) -> "TaskIds":
        """Return the ids of another task of the same transaction."""
        return self._derived("")

    def for_task(self, task_id: TaskId) -> "TaskIds":
        """Return the ids of a task that the end of a task creates in the same transaction."""
        return self._derived(task_id)

    def _derived(self, salt: str) -> "TaskIds":
        return TaskIds(
            SessionId(new.derive_id(self.session_id, salt)),
            TaskId(new.derive_id(self.task_id, salt)),
            RunId(new.derive_id(self.run_id, salt)),
            MessageId(new.derive_id(self.message_id, salt)),
        )


def new_task_ids() -> TaskIds:
    """Generate the ids that a new task may need."""
    return TaskIds(new.new_session_id(), new.new_task_id(), new.new_run_id(), new.new_message_id())


def clean_text(text: str) -> str:
    """Return the text without surrogates and NUL characters, which cannot be stored."""
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


def clean_instruction(text: str) -> str:
    """Return the text as it can be stored.

    Raises:
        InvalidRequest: the text is empty or too long.
    """
    text = clean_text(text)
    if not text.strip():
        raise InvalidRequest("The task is empty.", reason_code="task_empty")
    if len(text) > MAX_INSTRUCTION_CHARACTERS:
        raise InvalidRequest(
            f"The task has {len(text):,} characters; the maximum is {MAX_INSTRUCTION_CHARACTERS:,}."
            " Attach long material as a file.",
            reason_code="task_too_long",
            count=len(text),
            limit=MAX_INSTRUCTION_CHARACTERS,
        )
    return text


def open_session(
    stores: Stores,
    session_id: SessionId,
    owner: Principal,
    *,
    channel: Channel,
    now: str,
    scope: str = "",
    one_shot: bool = False,
) -> Write[None]:
    """Store a new session without a title."""
    session = Session(session_id, "", channel, owner.id, now, now, scope=scope, one_shot=one_shot)
    yield from stores.sessions.add(session)


class StoredTask(NamedTuple):
    """The events of a new task, and the task itself if it was claimed."""

    events: list[EventRecord]
    claimed: ClaimedTask | None = None


def create_task(
    stores: Stores,
    submission: Submission,
    session_id: SessionId,
    *,
    ids: TaskIds,
    origin: Origin,
    now: str,
    slot: RunSlot | None = None,
) -> Write[StoredTask]:
    """Store a task of an existing session, its run and their first events.

    With a `slot` the run is claimed, unless its lane is busy, and its stage `prepare` announced.
    """
    task = Task(
        id=ids.task_id,
        session_id=session_id,
        kind="chat",
        lane=session_id,
        instruction=submission.instruction,
        origin=origin,
        spec=submission.spec,
        status="queued",
        created=now,
        attachments=submission.attachments,
        prompt=submission.prompt,
        reports=submission.reports,
    )
    run = Run(
        id=ids.run_id,
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
    yield from use_attachments(stores, submission.attachments, session_id, origin.principal)
    share = submission.spec.share_of(origin.principal)
    yield from stores.runs.add(run, now, submission.lease_until, share=share)
    title = first_line(submission.instruction)
    yield from stores.sessions.add_task(task, title, one_shot=submission.one_shot)
    commands, shown_bytes = shown_commands(submission.instruction, submission.prompt)
    received = InputReceived(
        task=truncate_json(submission.instruction, MAX_JSON_BYTES - shown_bytes),
        channel=submission.channel,
        sender=origin.principal,
        commands=commands or msgspec.UNSET,
        attachments=tuple(each for each in submission.attachments if each.is_stored),
        resumed=submission.is_resumed or msgspec.UNSET,
    )
    queued = LifecycleUpdated(status="queued", phase="accept")
    run_ids = RunIds.of(run)
    accepted: list[Event] = [received, queued]
    running = LifecycleUpdated(status="running", phase="prepare")
    started = [*accepted, running, stage_started("prepare")]
    claimed = None if slot is None else (yield from slot.claim(task, len(started)))
    if claimed is None:
        return StoredTask((yield from stores.events.append_idle(run_ids, accepted, now)))
    first_seq = claimed.last_seq - len(started) + 1
    at_once = [(event, now) for event in started]
    records = yield from stores.events.append(run_ids, first_seq, at_once)
    # as it is stored, with secrets masked
    stored = yield from load_task(stores, claimed)
    opens_session = session_id == ids.session_id
    return StoredTask(records, ClaimedTask(claimed, stored, opens_session))


def load_task(stores: Stores, run: Run) -> Read[Task]:
    """Return the task of a run.

    Raises:
        StoreError: it is not in the database.
    """
    task = yield from stores.tasks.get(run.task_id)
    if task is None:
        raise StoreError(f"the task of {run.id} is not in the database")
    return task


def message_content(text: str, prompt: str = "", attachments: tuple[Attachment, ...] = ()) -> str:
    """Return the content of an inbox row that is assigned to a run, as JSON."""
    content = {"text": text, "prompt": prompt, "attachments": attachments}
    return msgspec.json.encode(content).decode()


def inbox_message(
    submission: Submission, principal: Principal, *, ids: TaskIds, now: str
) -> InboundMessage:
    """Return the inbox row of a submission: its accepted message, or a new one, with its text."""
    if submission.message is not None:
        return with_content(submission.message, submission)
    row = InboundMessage(
        channel=submission.channel,
        app="",
        message_id=ids.message_id,
        chat_id="",
        principal=principal.id,
        raw="",
        received=now,
    )
    return with_content(row, submission)


def with_content(row: InboundMessage, submission: Submission) -> InboundMessage:
    """Return an inbox row with a submission as its `raw`, as `InboxStore.assign` reads it."""
    raw = message_content(submission.instruction, submission.prompt, submission.attachments)
    return msgspec.structs.replace(row, raw=raw)


def resume_submission(
    task: Task, run: Run, channel: Channel, message: InboundMessage | None
) -> Submission:
    """Return a submission that continues an ended task, whose last run is `run`, in its session.

    Raises:
        Conflict: the task has not ended, or it is completed.
    """
    if task.status not in ENDED:
        raise Conflict(
            f"The task has not ended: it is {task.status}.",
            reason_code="task_not_ended",
            status=task.status,
        )
    if task.stop_reason == "final_answer":
        raise Conflict(
            "The task is completed; there is nothing to resume.", reason_code="nothing_to_resume"
        )
    return Submission(
        instruction=_without_prompt(task.instruction),
        prompt=f"{RESUME_PROMPT}\n\n{_without_prompt(task.model_text)}",
        spec=task.spec,
        channel=channel,
        session_id=task.session_id,
        attachments=task.attachments,
        message=message,
        direct=task.origin.direct,
        resumes=run.id if run.status == "failed" else None,
        is_resumed=True,
    )


def _without_prompt(text: str) -> str:
    return text.removeprefix(RESUME_PROMPT).strip()


def checked_submission(submission: Submission, principal: Principal) -> Submission:
    """Check the right to submit and return the submission with its texts cleaned.

    Raises:
        Forbidden: the person may not submit tasks.
        InvalidRequest: the instruction is empty or too long.
    """
    if not principal.may("talk"):
        raise Forbidden("You may not submit tasks here.", reason_code="may_not_submit")
    instruction = clean_instruction(submission.instruction)
    prompt = clean_text(submission.prompt)
    return msgspec.structs.replace(submission, instruction=instruction, prompt=prompt)
