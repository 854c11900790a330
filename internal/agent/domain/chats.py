"""Records that chat channels exchange with the agent: messages in and out, settings, displays."""

from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.ids import RunId
from internal.agent.domain.permissions.network import NetworkSetting
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.tasks import (
    Attachment,
    Channel,
    StopReason,
)


class InboundMessage(msgspec.Struct, frozen=True):
    """A message as its channel received it: `raw` is JSON, `received` RFC 3339.

    `sent` is the time of the message by the clock of the chat service, "" if unknown. `thread_id`
    and `attachments` are known when the message is processed; they are not stored with it.
    """

    channel: Channel
    app: str
    message_id: str
    chat_id: str
    principal: str
    raw: str
    received: str
    sent: str = ""
    thread_id: str = ""
    attachments: tuple[Attachment, ...] = ()


_EDIT = "edit:"


def edit_id(message_id: str, version: str) -> str:
    """Return the id under which an edit of a message is stored; `version` identifies the edit."""
    return f"{_EDIT}{message_id}:{version}"


def edited_message_id(message_id: str) -> str:
    """Return the id of the edited message; other ids are returned unchanged."""
    if not message_id.startswith(_EDIT):
        return message_id
    return message_id.removeprefix(_EDIT).partition(":")[0]


class OutgoingMessage(msgspec.Struct, frozen=True):
    """A message to a chat, such as the reply to a run.

    `key` is unique and stable: every attempt to send the message uses it. `reply_to` is the message
    to answer, "" for no reply. `stop_reason` and `error` describe the end of a run and are unset
    for other messages. With a `question_id` the message is that question or, when the key ends in
    `:closed`, the notice that the question was settled. The `chat_id` of a copy of a question is
    the id of its recipient: the message goes to the direct chat of that user.

    A message with `attachments` consists of these files: one as a picture or a file, several as a
    ZIP archive. Its `body` names them in words.
    """

    key: str
    channel: Channel
    app: str
    chat_id: str
    reply_to: str
    body: str
    run_id: str = ""
    stop_reason: StopReason | None = None
    error: str = ""
    question_id: str = ""
    attachments: tuple[Attachment, ...] = ()


CLOSED = ":closed"


def question_key(question_id: str, recipient: str = "") -> str:
    """Return the key of the message with a question, or of its copy for a recipient."""
    return f"{question_id}:copy:{recipient}" if recipient else f"{question_id}:asked"


def closing_key(question_id: str, recipient: str = "") -> str:
    """Return the key of the notice that a question, or its copy for a recipient, was settled."""
    return f"{question_key(question_id, recipient) if recipient else question_id}{CLOSED}"


def copy_recipient(outgoing: OutgoingMessage) -> str:
    """Return the recipient of a copy of a question, "" for any other message."""
    key = question_key(outgoing.question_id, outgoing.chat_id)
    return outgoing.chat_id if outgoing.key.removesuffix(CLOSED) == key else ""


def reply_key(run_id: str) -> str:
    """Return the key of the reply of a run."""
    return f"{run_id}:answer"


def file_key(run_id: str, artifact_id: str = "") -> str:
    """Return the key of the message with a file of a run, or with all of them."""
    return f"{run_id}:file:{artifact_id}" if artifact_id else f"{run_id}:files"


_GIVEN_BACK = ":given-back"


def given_back_key(number: int) -> str:
    """Return the key of the message that gives a message back, by the number of that one."""
    return f"message-{number}{_GIVEN_BACK}"


def gives_back(key: str) -> bool:
    """Return True if a message gives one back that no model has read: its body."""
    return key.endswith(_GIVEN_BACK)


_GREETING = ":greeting:"


def greeting_key(app: str, chat_id: str, *, is_direct: bool) -> str:
    """Return the key of the message with which the bot introduces itself to a chat."""
    return f"{app}{_GREETING}{'direct' if is_direct else 'group'}:{chat_id}"


def greeting_kind(key: str) -> Literal["", "direct", "group"]:
    """Return the kind of chat that a message greets, "" for any other message."""
    _, found, rest = key.rpartition(_GREETING)
    if not found:
        return ""
    return "direct" if rest.startswith("direct:") else "group"


class PendingMessage(NamedTuple):
    """An outgoing message to send.

    `first_attempt` and `unknown_since`, the first attempt with unknown outcome, are RFC 3339, None
    if there was none. `isolated_failures` counts the attempts that failed while the service worked
    otherwise.
    """

    number: int
    outgoing: OutgoingMessage
    attempts: int
    first_attempt: str | None
    unknown_since: str | None = None
    isolated_failures: int = 0


class OutgoingState(NamedTuple):
    """Whether an outgoing message waits to be sent, and its id in the channel, "" if not sent."""

    is_pending: bool
    remote_id: str


class AcceptedMessage(NamedTuple):
    """A message that was accepted and not processed, and the attempts to process it.

    `attempts` counts the started attempts, except where the processing was stopped or a service
    could not be reached. The next one is due at `next_attempt` (RFC 3339, "" for now). `failure` is
    the reason why the last one failed, "" if it has no outcome.
    """

    message: InboundMessage
    attempts: int = 0
    next_attempt: str = ""
    failure: str = ""

    @property
    def may_crash(self) -> bool:
        """True if the process may have died because of the last attempt."""
        return self.attempts > 0 and not self.failure


class MessageMark(NamedTuple):
    """A reaction of the bot on a message that a run received, by its id in the channel.

    `is_done`: the message was carried out, so that a last reaction shows it.
    """

    number: int
    message_id: str
    reaction: str
    is_done: bool


class UnprocessedMessage(NamedTuple):
    """A received message that was set aside at `failed` because it cannot be processed.

    `text` is the text of the person, "" if unknown.
    """

    number: int
    message: InboundMessage
    text: str
    attempts: int
    failure: str
    failed: str


class UnsentMessage(NamedTuple):
    """An outgoing message that was given up. `unconfirmed`: it may have been sent.

    `instruction` is the task that it belongs to, "" without a task.
    """

    number: int
    outgoing: OutgoingMessage
    unconfirmed: bool
    failure: str
    settled: str
    attempts: int = 0
    instruction: str = ""


DeadLetterKind = Literal["incoming", "outgoing", "run"]


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """What Larkspur gave up at `given_up_at` (RFC 3339) because of `reason`, after `attempts`.

    It is a received message that cannot be processed (`incoming`), a message that cannot be sent
    (`outgoing`), or a run that failed because its process died each time (`run`). A person retries
    or dismisses it by its `id`.

    `about` is the person's message, "" if unknown, and `text` what was to be sent: "" for a
    question, which has a `question_id`. `chat_id` is "" for a run that no chat started.
    """

    id: str
    kind: DeadLetterKind
    channel: Channel
    chat_id: str
    about: str
    reason: str
    attempts: int
    given_up_at: str
    principal: str = ""
    text: str = ""
    run_id: str = ""
    question_id: str = ""
    may_have_been_sent: bool = False


class OutboxBacklog(NamedTuple):
    """Counts of an account's messages that wait too long, or were given up recently."""

    waiting: int
    given_up: int


MAX_CHAT_INSTRUCTIONS_BYTES = 8 * 1024


class ChatSettings(NamedTuple):
    """Settings for the tasks of one chat; None and "" mean the value of the configuration.

    `instructions` are for the model, at most `MAX_CHAT_INSTRUCTIONS_BYTES` as UTF-8.
    """

    plan_review: PlanReview | None = None
    model: str = ""
    network: NetworkSetting | None = None
    profile: str = ""
    instructions: str = ""


class RunDisplay(NamedTuple):
    """The display of a run in a channel: the last shown position and the channel's state (JSON)."""

    run_id: RunId
    last_position: int
    state: str
