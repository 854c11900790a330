"""The interface between the chat application and one chat service."""

from collections.abc import Callable, Container, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from internal.agent.app.mentions import ChatMember
from internal.agent.app.received_messages import ReceivedMessages
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.questions import Question, QuestionRecord
from internal.agent.domain.tasks import Attachment, Rating
from internal.agent.ports.attachments import RemoteContent
from internal.i18n.chat import ChatPhrases

Reaction = Literal["working", "received", "done"]
"""A run works on the message; a run received it; that run has ended."""

RunPhase = Literal[
    "queued", "working", "awaiting_tasks", "waiting", "done", "incomplete", "failed", "cancelled"
]
"""`incomplete`: a run ended at a limit, or without its last calls."""


Refusal = Literal["", "content", "permission"]
"""Reason of a rejection to tell a person: a content check, a missing permission, or no reason."""


class TransportRejected(LarkspurError):
    """The service rejected the call and did nothing; a repetition would be rejected as well."""

    refusal: Refusal = ""


class TransportUnavailable(LarkspurError):
    """The call failed for now; another attempt is worthwhile after `wait` seconds.

    `unconfirmed`: the service may have carried it out. `isolated`: other calls of the account
    succeed, so a simpler form of the content may be accepted.
    """

    def __init__(
        self,
        sentence: str,
        wait: float = 0.0,
        *,
        unconfirmed: bool = False,
        isolated: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.wait = wait
        self.unconfirmed = unconfirmed
        self.isolated = isolated


class ReceivedMessage(NamedTuple):
    """An event to store: `raw` is JSON that `ChatTransport.parse` reads.

    `message_id` is the same for every delivery of one event. Events of one `chat_id` are processed
    in order; for events without a chat it is the id of a related object, such as a message or a
    user. `sent_at` is the time of a message by the clock of the service, None if unknown. `decoded`
    is `raw` as decoded by its transport, or None.
    """

    message_id: str
    chat_id: str
    user_id: str
    raw: str
    sent_at: datetime | None = None
    decoded: object = None


class StoredEvent(msgspec.Struct):
    """A stored event, decoded at most once: only its transport uses `decoded`."""

    raw: str
    decoded: object = None


class IncomingMessage(NamedTuple):
    """A message in a chat. `text` is None if its kind is unsupported and "" without words.

    `is_mention`: it mentions the bot or, as the chat application sees it, replies to the bot.

    `quoted_id` is the message it replies to, `thread_id` its thread and `thread_root_id` the first
    message of that thread; each may be "". A message of a thread replies to another one only if
    the service says so.
    """

    message_id: str
    chat_id: str
    user_id: str
    text: str | None
    is_direct: bool
    is_mention: bool
    is_from_person: bool
    sent_at: datetime | None
    quoted_id: str = ""
    thread_id: str = ""
    thread_root_id: str = ""
    is_external: bool = False
    """The sender belongs to another organization."""
    attachments: tuple[Attachment, ...] = ()
    """Its pictures and files, which the service still has; `ChatTransport.open_file` opens them."""
    is_from_bot: bool = False
    """Another bot wrote it."""
    forwarded: str = ""
    """Text of other people in the message: forwarded messages or a card."""
    is_partial: bool = False
    """The service has more of it; `ChatTransport.complete` returns that."""


class PastMessage(NamedTuple):
    """An earlier message of a chat.

    `user_id` is "" for a bot and `name` is "" if the service omits it. `is_own`: the bot sent it.
    `is_bundle`: its text consists of forwarded messages. A recalled message has no text.
    """

    message_id: str
    user_id: str
    text: str
    sent_at: datetime | None
    name: str = ""
    is_own: bool = False
    is_recalled: bool = False
    attachments: tuple[Attachment, ...] = ()
    is_bundle: bool = False


class RecalledMessage(NamedTuple):
    """The recall of a message, by its sender or by a person with that right."""

    message_id: str
    by_sender: bool = False


class EditedMessage(NamedTuple):
    """The news that a message was edited; its stored event has the id `edit_id`."""

    message_id: str


class RemovedFromChat(NamedTuple):
    """The news that the bot can no longer write to the chat, since `at` (None if unknown)."""

    at: datetime | None


class MessageReaction(NamedTuple):
    """A reaction of a person on a message that rates it, or its removal, at a time of the service.

    The ids of all rating reactions of a person on a message begin with `reaction_prefix`.
    """

    message_id: str
    user_id: str
    emoji: str
    rating: Rating
    at: datetime | None
    is_removed: bool = False


class ChatOpened(NamedTuple):
    """The news that the bot was added to a group or that its direct chat was opened, by a user.

    `name` is that of the group. `is_known`: the direct chat has messages already.
    """

    user_id: str
    is_direct: bool
    name: str = ""
    is_known: bool = False
    is_external: bool = False
    """The user belongs to another organization."""


class MenuChoice(NamedTuple):
    """An entry of the bot's menu that a user chose; `key` is the name of a command."""

    user_id: str
    key: str
    chosen_at: datetime | None


ChatEvent = (
    IncomingMessage
    | EditedMessage
    | RecalledMessage
    | RemovedFromChat
    | MessageReaction
    | ChatOpened
    | MenuChoice
)
"""A stored event, read."""


def reaction_prefix(message_id: str, user_id: str) -> str:
    """Return the beginning of the ids under which reactions of a user on a message are stored."""
    return f"reaction:{message_id}:{user_id}:"


def recall_id(message_id: str) -> str:
    """Return the id under which the recall of a message is stored."""
    return f"recall:{message_id}"


class ChatAction(NamedTuple):
    """A button or a form of a question's message that a user activated.

    `read_answer` returns its answer or, if there is none, the key of a phrase with the reason.
    """

    question_id: str
    user_id: str
    chat_id: str
    message_id: str
    read_answer: Callable[[Question], AnswerInput | str]
    is_external: bool = False
    """The user belongs to another organization."""


RunCommand = Literal["continue", "again", "new"]
"""Continue an ended run, try it again, or start a new conversation in its place."""


class RunAction(NamedTuple):
    """The button of a run's reply that a user activated."""

    command: RunCommand
    run_id: str
    user_id: str
    chat_id: str
    message_id: str
    is_external: bool = False
    """The user belongs to another organization."""


class StopAction(NamedTuple):
    """The Stop button of a run's message that a user activated."""

    run_id: str
    user_id: str
    chat_id: str
    is_external: bool = False
    """The user belongs to another organization."""


class SuggestionAction(NamedTuple):
    """A suggested message that a user chose with a button.

    `received` is stored like a message: `ChatTransport.parse` returns the message that the user
    would have written. Its id is that of the button, so that each user chooses it once.
    """

    received: ReceivedMessage
    text: str
    is_external: bool = False
    """The user belongs to another organization."""


class FileContent(NamedTuple):
    """A file; `words` name it where it cannot be sent. `content` is empty if it is too large."""

    name: str
    media_type: str
    content: bytes
    words: str
    caption: str = ""


class AlbumContent(NamedTuple):
    """Pictures that belong together, in their order; `words` name them all."""

    pictures: tuple[FileContent, ...]
    words: str
    caption: str = ""


class RunButton(NamedTuple):
    """A button below the reply of a run."""

    command: RunCommand
    run_id: str
    label: str


class TextContent(NamedTuple):
    """Markdown. `mentions` are ids of users to notify in addition to the addressee of the reply.

    `pictures` are files that the text may show inline, by their names. `buttons` offer next steps;
    the text describes the same steps for services without buttons.
    """

    text: str
    phrases: ChatPhrases
    mentions: tuple[str, ...] = ()
    pictures: tuple[FileContent, ...] = ()
    buttons: tuple[RunButton, ...] = ()


class GreetingContent(NamedTuple):
    """The introduction of the bot, in Markdown, with suggested messages as buttons."""

    text: str
    suggestions: tuple[str, ...]
    phrases: ChatPhrases
    is_direct: bool


class AskedElsewhere(NamedTuple):
    """Nobody in the chat of a question may answer it.

    `names` are the known names of its recipients; `page` is the address of its session, "" if it
    has none that others reach.
    """

    names: tuple[str, ...] = ()
    page: str = ""


class CopyFor(NamedTuple):
    """The message is a copy for a person of another chat.

    `asker` is the name of the person who wrote the task, "" if unknown, and `task` the text of it.
    """

    asker: str
    task: str


class QuestionContent(NamedTuple):
    """A question in its current state: open, with its possible answers, or settled.

    `reach` is None if the question can be answered in its own chat.
    """

    record: QuestionRecord
    phrases: ChatPhrases
    reach: AskedElsewhere | CopyFor | None = None


class QuestionNotice(NamedTuple):
    """A short message about a settled question whose own message cannot be updated."""

    record: QuestionRecord
    phrases: ChatPhrases


class Thoughts(NamedTuple):
    """The reasoning of a run, as far as the provider shows it, and its duration."""

    text: str = ""
    seconds: int = 0


class RunContent(NamedTuple):
    """The progress of a run: a title, lines, a footer and thoughts, all without markup.

    `updates` counts earlier updates; no update follows a final one. `run_id` is the run that a
    button stops, "" for no button.
    """

    phase: RunPhase
    title: str
    lines: tuple[str, ...]
    phrases: ChatPhrases
    updates: int = 0
    is_final: bool = False
    footer: str = ""
    run_id: str = ""
    thoughts: Thoughts = Thoughts()


Content = (
    TextContent
    | GreetingContent
    | QuestionContent
    | QuestionNotice
    | RunContent
    | FileContent
    | AlbumContent
)


class ChatPost(NamedTuple):
    """Content for a chat, as a reply to a message or, with "", without one.

    A `chat_id` that is the id of a user is the direct chat of that user.

    `replaces` is a message with the progress of a run. The content replaces it or, if it can no
    longer be updated, is sent as a new message.
    """

    chat_id: str
    reply_to: str
    content: Content
    replaces: str = ""


class SentPost(NamedTuple):
    """A post that was sent, at a time by the clock of the service, None if unknown.

    `pictures` are the names of the pictures known to be shown in its text.
    """

    message_id: str
    sent_at: datetime | None = None
    pictures: tuple[str, ...] = ()


class ActionResult(NamedTuple):
    """The response to an action; with a `question` its message shows that from now on."""

    level: Literal["success", "info", "warning", "error"]
    text: str
    question: QuestionContent | None = None


class TransportHealth(NamedTuple):
    """The state of the connection, its start (RFC 3339) and the reason if it is not connected.

    `notes` are facts about messages that the service did not deliver, and `losses` about the
    unrecovered ones. `last_event` is the time of the last event from the service (RFC 3339), "" if
    none arrived since this process started.
    """

    status: str
    since: str
    why: str = ""
    notes: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    last_event: str = ""


OnMessage = Callable[[ReceivedMessage], Future[Any]]
"""Stores a message; may be called from any thread. Messages are processed in call order."""
UserAction = ChatAction | StopAction | RunAction | SuggestionAction
OnAction = Callable[[UserAction], Coroutine[Any, Any, ActionResult]]


class ChatTransport(Protocol):
    """One account of a chat service.

    Calls to the service raise `TransportRejected` or `TransportUnavailable`.
    """

    @property
    def name(self) -> str:
        """The name of the channel in the registry."""

    @property
    def app(self) -> str:
        """The account at the service."""

    @property
    def health(self) -> TransportHealth:
        """The state of the connection, without a call to the service."""

    async def run(self, on_message: OnMessage, on_action: OnAction) -> None:
        """Stay connected until cancelled; nothing is received afterwards.

        A message is acknowledged when the future of `on_message` is done; if it has an exception,
        or none is returned, the service must send the message again.
        """

    async def follow_history(self, received: ReceivedMessages, on_message: OnMessage) -> None:
        """Look up messages that the service did not deliver, and store them, until cancelled.

        One process of an account does this at a time. It may be called again after an error.

        Raises:
            StoreError: the database cannot be used.
        """

    async def close(self) -> None:
        """Release the connections that the other methods use."""

    async def parse(self, stored: StoredEvent) -> ChatEvent | None:
        """Return a stored event, parsed, or None if it cannot be read."""

    async def read_edited(self, edit: StoredEvent, known: StoredEvent | None) -> ReceivedMessage:
        """Return an edited message as the service has it, as if it were sent at its edit.

        `edit` is the stored event of the edit, `known` that of the message, None if there is none.
        """

    async def complete(self, message: IncomingMessage) -> IncomingMessage:
        """Return a partial message with its content from the service; `text` None without any."""

    async def send(self, post: ChatPost, *, idempotency_key: str, simplicity: int = 0) -> SentPost:
        """Send a post. The service sends the same key and form only once.

        `simplicity` is the number of forms to leave out, the best first; the simplest remains.
        """

    async def find_sent(
        self, post: ChatPost, since: datetime, *, known: Container[str] = (), simplicity: int = 0
    ) -> SentPost | None:
        """Return a post that was sent completely since then, None if there is none.

        It was sent with at most this `simplicity`. The posts with `known` ids are other ones.
        """

    async def update(self, message_id: str, content: QuestionContent | RunContent) -> None:
        """Replace the content of a sent post."""

    async def remove(self, message_id: str) -> None:
        """Remove a sent post. One that is gone already is no error."""

    async def urge(self, message_id: str, user_id: str) -> None:
        """Alert a user to a post, however that user has muted its chat."""

    async def add_reaction(self, message_id: str, reaction: Reaction) -> str:
        """Add a reaction and return its id; adding it twice returns the same id."""

    async def remove_reaction(self, message_id: str, reaction_id: str) -> None:
        """Remove a reaction."""

    def open_file(self, uri: str) -> AbstractAsyncContextManager[RemoteContent]:
        """Open a file of a message by the URI of its attachment.

        A URI starts with the names of the channel and of the account, `NAME:ACCOUNT/`. Opening and
        reading raise RemoteFileUnavailable.
        """

    def is_user(self, listed: str) -> bool:
        """Return True if an entry of an access list is the id of a user."""

    async def display_name(self, user_id: str) -> str:
        """Return the name of a user."""

    def known_time_zone(self, user_id: str) -> str:
        """Return the time zone of a user whose name was read, "" if it is not known."""

    async def list_members(self, chat_id: str) -> Sequence[ChatMember]:
        """Return the people in a chat."""

    async def read_message(self, message_id: str) -> PastMessage:
        """Return a message of a chat with its forwarded or shared content, in at most two calls."""

    async def read_recent(self, message: IncomingMessage, limit: int) -> Sequence[PastMessage]:
        """Return the newest messages before a message, in its thread or else in its chat.

        With one call; oldest first, at most `limit`, without recalled ones.
        """

    async def has_posted_in(self, thread_id: str) -> bool:
        """Return True if the bot has posted in a thread lately, with one call."""
