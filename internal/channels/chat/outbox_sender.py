"""Send the messages of the outbox: in order within a chat, chats independent of each other."""

import asyncio
import io
import logging
import random
import zipfile
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from msgspec.structs import astuple

from internal.agent.app.chat_delivery import (
    BegunMessage,
    ChangedNames,
    ChatDelivery,
    QuestionContext,
    ReplyContext,
)
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.processes.leadership import Leadership
from internal.agent.app.runs.finalization import INTERRUPTED_BY_OTHER, INTERRUPTED_REASON
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.chats import (
    CLOSED,
    OutgoingMessage,
    PendingMessage,
    copy_recipient,
    gives_back,
)
from internal.agent.domain.errors import FilesUnavailable, NotFound, StoreError
from internal.agent.domain.ids import QuestionId, SessionId
from internal.agent.domain.tasks import STATUS_BY_STOP_REASON, Attachment
from internal.agent.domain.text import truncate_line
from internal.agent.domain.usage import Spending
from internal.agent.ports.runtime import Clock
from internal.channels.chat.answers import escape_markdown
from internal.channels.chat.displays.error_buttons import error_buttons
from internal.channels.chat.greetings import greeting_content
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.poll_loop import PollLoop
from internal.channels.chat.transport import (
    AlbumContent,
    AskedElsewhere,
    ChatPost,
    CopyFor,
    FileContent,
    GreetingContent,
    QuestionContent,
    QuestionNotice,
    RunButton,
    SentPost,
    TextContent,
    TransportRejected,
    TransportUnavailable,
)
from internal.i18n.chat import ChatPhrases, ChatTexts
from internal.i18n.file_reasons import translate_problem

log = logging.getLogger(__name__)

UNCERTAIN_AFTER = timedelta(minutes=50)
"""Later attempts first look for the message: the service may have forgotten the key by then."""
GIVE_UP_AFTER = timedelta(hours=24)
POLL_SECONDS = 5.0
MAX_BACKOFF_SECONDS, MAX_ISOLATED_BACKOFF_SECONDS = 60.0, 600.0
"""The longest delays between attempts: if the service is down, and if only this message fails."""
FORM_FAILURES = 3
"""After this many failures of only this message the next form is tried; each further one counts."""
MAX_LOGGED_FAILURE = 300
MAX_FILE_BYTES = 30 * 1024 * 1024
"""Files of a message, together; larger ones are only named."""
MAX_ALBUM_PICTURES = 10
"""Pictures of one message; more are an archive."""
MAX_NAMED_CHANGES = 5
"""Changed files of a run that its reply names; the others are counted."""
MAX_NAMED_PROBLEMS = 10
"""Files of a reply that are named because they could not be read."""
_PAGE_SIZE = 100


class ReplyPlaces(Protocol):
    """Messages with the progress of runs, which their replies replace."""

    async def find_reply_place(self, pending: PendingMessage, /) -> str:
        """Return the message that an outgoing message replaces, or ""."""

    def finish(self, outgoing: OutgoingMessage, /) -> None:
        """Note that an outgoing message was sent or given up."""


class SessionPlaces(NamedTuple):
    """The session folders on this machine, and the address of the page, or ""."""

    folder: Callable[[SessionId], str]
    public_url: str = ""


class OutboxSender:
    """Sends the messages of one account until cancelled, while this process leads."""

    def __init__(
        self,
        people: ChatUsers,
        delivery: ChatDelivery,
        clock: Clock,
        *,
        files: SessionFiles,
        displays: ReplyPlaces,
        leadership: Leadership,
        texts: ChatTexts,
        places: SessionPlaces,
    ) -> None:
        self._people, self._transport = people, people.transport
        self._delivery, self._clock = delivery, clock
        self._files, self._displays, self._texts = files, displays, texts
        self._leadership, self._session_folder = leadership, places.folder
        self._public_url = places.public_url.rstrip("/")
        self._poll = PollLoop(POLL_SECONDS, f"{self._transport.name} outbox")
        self._busy: dict[int, str] = {}  # chats by number

    def wake(self) -> None:
        """Look for messages to send now."""
        self._poll.wake()

    async def run(self, supervisor: Supervisor) -> None:
        """Send messages on every wake and every 5 s."""
        await self._poll.run(self._start, supervisor)

    async def _start(self, tasks: asyncio.TaskGroup) -> None:
        name, app, leader = self._transport.name, self._transport.app, self._leadership.held
        if leader is None:
            return
        begin = self._delivery.begin_due
        begun = await begin(name, app, _PAGE_SIZE, leader=leader, busy=self._busy)
        for each in begun:
            self._busy[each.pending.number] = each.pending.outgoing.chat_id
            tasks.create_task(self._attempt(each))
        if len(begun) == _PAGE_SIZE:
            self.wake()

    async def _attempt(self, begun: BegunMessage) -> None:
        """Try a message once and store the outcome."""
        pending, has_more = begun.pending, True
        key = pending.outgoing.key
        try:
            try:
                has_more = await self._deliver(begun)
            except StoreError:
                raise
            except Exception:  # a channel's outer loop: one message must not stop the others
                log.exception("message cannot be sent", extra={"key": key})
                failure = TransportUnavailable("an internal error; see the log", unconfirmed=True)
                await self._postpone(pending, failure)
        except Exception:  # the attempt is repeated
            log.exception("outcome of a message cannot be stored", extra={"key": key})
            await asyncio.sleep(POLL_SECONDS)
        finally:
            self._busy.pop(pending.number)
            if has_more:
                self.wake()

    async def _deliver(self, begun: BegunMessage) -> bool:
        """Send a message and store the outcome. Return False if its chat has no more."""
        pending = begun.pending
        try:
            sent = await self._send_or_explain(begun)
        except TransportRejected as error:
            await self._give_up(pending, str(error), unconfirmed=pending.unknown_since is not None)
        except TransportUnavailable as error:
            if self._age(pending.first_attempt) > GIVE_UP_AFTER:
                is_unconfirmed = _is_unconfirmed(pending, error)
                await self._give_up(pending, str(error), unconfirmed=is_unconfirmed)
            else:
                await self._postpone(pending, error)
        else:
            # pictures that the answer shows do not follow it
            contained = [
                key for file, key in begun.context.pictures if key and file.name in sent.pictures
            ]
            has_more = await self._delivery.mark_sent(
                pending.number, sent.message_id, sent.sent_at, contained=contained
            )
            self._displays.finish(pending.outgoing)
            details = {"key": pending.outgoing.key, "message_id": sent.message_id}
            log.info("message sent", extra=details)
            return has_more
        return True

    async def _send_or_explain(self, begun: BegunMessage) -> SentPost:
        """Send a message; if it is refused, send the person the reason."""
        try:
            return await self._send(begun)
        except TransportRejected as error:
            explanation = "unresolved" if isinstance(error, _Unresolved) else error.refusal
            if explanation and not begun.pending.outgoing.key.endswith(CLOSED):
                await self._explain(begun, explanation)
            raise

    async def _explain(self, begun: BegunMessage, explanation: str) -> None:
        """Send a person the reason for a missing message.

        Raises:
            TransportUnavailable: it must be tried again.
        """
        outgoing, context = begun.pending.outgoing, begun.context
        phrases = self._texts.phrases_for(context.instruction or outgoing.body)
        content = TextContent(phrases(_EXPLANATIONS[explanation]), phrases)
        post = ChatPost(outgoing.chat_id, outgoing.reply_to, content)
        try:
            await self._transport.send(post, idempotency_key=f"{outgoing.key}:explanation")
        except TransportRejected as error:
            details = {"key": outgoing.key, "reason": str(error)}
            log.warning("missing message not explained", extra=details)
        except TransportUnavailable as error:
            error.unconfirmed = False  # of the message itself nothing was sent
            raise

    async def _send(self, begun: BegunMessage) -> SentPost:
        """Send a message, unless an earlier attempt did."""
        pending, context = begun
        outgoing = pending.outgoing
        if outgoing.question_id:
            return await self._send_question(pending)
        if outgoing.attachments:
            return await self._send_post(pending, await self._read_files(outgoing, context))
        phrases = self._texts.phrases_for(context.instruction or outgoing.body)
        if gives_back(outgoing.key):
            notice = phrases("given_back", text=escape_markdown(outgoing.body))
            return await self._send_post(pending, TextContent(notice, phrases))
        if (greeting := greeting_content(outgoing, phrases)) is not None:
            return await self._send_post(pending, greeting)
        text = self._answer_text(outgoing, context, phrases)
        if phrases.runs.needs_key(context.failure) and await self._is_owner(context.person):
            text = f"{text}\n\n{self._where_keys_are(phrases)}"
        account = f"{outgoing.channel}:{outgoing.app}:"
        people = dict.fromkeys((*context.others, *context.mentioned))
        mentions = tuple(each.removeprefix(account) for each in people if each.startswith(account))
        pictures = await self._read_pictures(context)
        buttons: tuple[RunButton, ...] = ()
        if outgoing.stop_reason is not None:
            buttons = error_buttons(outgoing.run_id, outgoing.stop_reason, context.failure, phrases)
        content = TextContent(text, phrases, mentions, pictures, buttons)
        # an update notifies nobody: people who are mentioned get a new message
        replaces = "" if mentions else await self._displays.find_reply_place(pending)
        return await self._send_post(pending, content, replaces)

    def _answer_text(
        self, outgoing: OutgoingMessage, context: ReplyContext, phrases: ChatPhrases
    ) -> str:
        """Return the text of an answer with the notes below it."""
        text = format_result(outgoing, phrases, context.failure)
        if context.session_id:  # readers of a chat cannot open the folders of this machine
            text = text.replace(f"{self._session_folder(SessionId(context.session_id))}/", "")
        if context.models is not None:
            text = f"{text}\n\n---\n{phrases.runs.answered_by(*context.models)}"
        if context.calls_not_run and outgoing.stop_reason in _COMPLETED:
            text = f"{text}\n\n---\n{phrases.runs.completed(context.calls_not_run).capitalize()}"
        if context.file_problems:
            text = f"{text}\n\n---\n{_describe_problems(context.file_problems, phrases)}"
        if context.left_out:
            notes = [phrases.runs.left_out(*astuple(each)) for each in context.left_out]
            text = "\n".join([text, "", "---", *map(escape_markdown, notes)])
        if context.changed.names:
            text = f"{text}\n\n---\n{_name_changed(context.changed, phrases)}"
        for sentence in context.not_kept:
            text = f"{text}\n\n---\n{escape_markdown(sentence)}"
        if context.spending is not None and outgoing.stop_reason in _COMPLETED:
            text = f"{text}\n\n---\n{_describe_spending(context, context.spending, phrases)}"
        return text

    async def _is_owner(self, principal: str) -> bool:
        """Return True if a person of this account may change the settings."""
        user_id = principal.removeprefix(self._people.principal_id(""))
        return "owner" in await self._people.granted_rights(user_id)

    def _where_keys_are(self, phrases: ChatPhrases) -> str:
        """Return where the owner enters another key of a model."""
        if not self._public_url:
            return phrases("key_of_owner")
        return phrases("key_page", url=f"{self._public_url}/settings/models#key")

    async def _read_pictures(self, context: ReplyContext) -> tuple[FileContent, ...]:
        """Return the pictures that an answer may show; unreadable ones are sent after it."""
        found: list[FileContent] = []
        for file, _ in context.pictures:
            if sum(len(each.content) for each in found) + file.size > MAX_FILE_BYTES:
                break
            try:
                content = await self._files.get(file.sha256)
            except (FilesUnavailable, NotFound) as error:
                log.info("picture not shown in its text", extra={"reason": str(error)})
                continue
            found.append(FileContent(file.name, file.media_type, content, file.name))
        return tuple(found)

    async def _read_album(
        self, outgoing: OutgoingMessage, context: ReplyContext
    ) -> AlbumContent | None:
        """Return the pictures of a message with several pictures, or None if it is another kind."""
        files = outgoing.attachments
        are_pictures = all(each.media_type.startswith("image/") for each in files)
        is_small = sum(each.size for each in files) <= MAX_FILE_BYTES
        if not (1 < len(files) <= MAX_ALBUM_PICTURES and are_pictures and is_small):
            return None
        pictures: list[FileContent] = []
        for file in files:
            try:
                content = await self._files.get(file.sha256)
            except FilesUnavailable as error:
                raise TransportUnavailable(str(error)) from error
            except NotFound:  # the archive names it
                return None
            name = file.name.rpartition("/")[2]
            pictures.append(FileContent(name, file.media_type, content, name))
        words = f"{outgoing.body}\n{self._where(outgoing, context)}"
        return AlbumContent(tuple(pictures), words, _caption(outgoing))

    async def _read_files(
        self, outgoing: OutgoingMessage, context: ReplyContext
    ) -> FileContent | AlbumContent:
        """Return the file of a message; several are one archive, or pictures in one message."""
        if (album := await self._read_album(outgoing, context)) is not None:
            return album
        first, *others = outgoing.attachments
        name = "files.zip" if others else first.name
        media_type = "application/zip" if others else first.media_type
        contents: list[bytes] = []
        if sum(each.size for each in outgoing.attachments) <= MAX_FILE_BYTES:
            try:
                contents = [await self._files.get(each.sha256) for each in outgoing.attachments]
            except FilesUnavailable as error:
                raise TransportUnavailable(str(error)) from error
            except NotFound:
                log.warning("file of a message is missing", extra={"key": outgoing.key})
        if others and contents:
            contents = [await asyncio.to_thread(pack_files, outgoing.attachments, contents)]
        words = f"{outgoing.body}\n{self._where(outgoing, context)}"
        return FileContent(name, media_type, b"".join(contents), words, _caption(outgoing))

    def _where(self, outgoing: OutgoingMessage, context: ReplyContext) -> str:
        """Return where a file is that cannot be sent."""
        phrases = self._texts.phrases_for(context.instruction or outgoing.body)
        page = self._page(context.session_id)
        return phrases("file_link", url=page) if page else phrases("file_kept")

    def _page(self, session_id: str) -> str:
        """Return the address of a session, "" if others do not reach it."""
        is_reachable = self._public_url and session_id
        return f"{self._public_url}/sessions/{session_id}" if is_reachable else ""

    async def _send_question(self, pending: PendingMessage) -> SentPost:
        """Send a question, or update its message to show how it was settled.

        A copy of a question that was settled before, and its notice, are left out: the id is "".
        """
        outgoing, recipient = pending.outgoing, copy_recipient(pending.outgoing)
        found = await self._delivery.get_question(QuestionId(outgoing.question_id), recipient)
        if found is None:
            raise TransportRejected("the question was deleted with its session")
        phrases = self._texts.phrases_for(found.instruction)
        is_closing, is_open = outgoing.key.endswith(CLOSED), found.record.status == "open"
        if not is_closing:
            if recipient and not is_open and pending.unknown_since is None:
                return SentPost("")
            reach = await self._reach(found, recipient) if is_open else None
            return await self._send_post(pending, QuestionContent(found.record, phrases, reach))
        if recipient and not found.message_id:
            return SentPost("")
        content = QuestionContent(found.record, phrases)
        simplicity = _simplicity(pending)
        if found.message_id and not simplicity:
            try:
                await self._transport.update(found.message_id, content)
            except TransportRejected as error:  # it was deleted, or is too old to be updated
                details = {"question_id": outgoing.question_id, "reason": str(error)}
                log.info("question not updated", extra=details)
            else:
                return SentPost(found.message_id)
        notice = QuestionNotice(found.record, phrases)
        post = ChatPost(outgoing.chat_id, outgoing.reply_to, notice)
        simplicity = max(0, simplicity - bool(found.message_id))  # the update was the first form
        return await self._transport.send(post, idempotency_key=outgoing.key, simplicity=simplicity)

    async def _reach(
        self, found: QuestionContext, recipient: str
    ) -> AskedElsewhere | CopyFor | None:
        """Return the reference to people of other chats in the message of an open question."""
        record = found.record
        if recipient:
            names = await self._people.find_names([record.principal])
            return CopyFor(names.get(record.principal, ""), found.instruction)
        if not record.question.is_for_others:
            return None
        recipients = map(self._people.principal_id, record.question.recipients)
        names = await self._people.find_names(recipients)
        return AskedElsewhere(tuple(names.values()), self._page(record.session_id))

    async def _send_post(
        self,
        pending: PendingMessage,
        content: TextContent | GreetingContent | QuestionContent | FileContent | AlbumContent,
        replaces: str = "",
    ) -> SentPost:
        outgoing, simplicity = pending.outgoing, _simplicity(pending)
        post = ChatPost(outgoing.chat_id, outgoing.reply_to, content, replaces)
        is_key_forgotten = self._age(pending.unknown_since) > UNCERTAIN_AFTER
        # another form has another key; replacing a message twice does no harm
        if (is_key_forgotten or simplicity) and not replaces:
            sent = await self._find_sent(post, pending, must_know=is_key_forgotten)
            if sent:
                return sent
        return await self._transport.send(post, idempotency_key=outgoing.key, simplicity=simplicity)

    async def _find_sent(
        self, post: ChatPost, pending: PendingMessage, *, must_know: bool
    ) -> SentPost | None:
        """Return the message that an earlier attempt sent, or None.

        If the chat may not be read, `must_know` raises `_Unresolved`. Otherwise None is returned,
        and the same message may appear in two forms.
        """
        outgoing = pending.outgoing
        since = pending.unknown_since or pending.first_attempt or ""
        known = await self._delivery.list_sent_ids(outgoing, since)
        try:
            sent = await self._transport.find_sent(
                post,
                datetime.fromisoformat(since),
                known=known,
                simplicity=_simplicity(pending),
            )
        except TransportRejected as error:
            if must_know:
                raise _Unresolved(f"it may have been sent: {error}") from error
            details = {"key": pending.outgoing.key, "reason": str(error)}
            log.warning("message may be sent twice, in another form", extra=details)
            return None
        if sent is None:
            return None
        if list(self._busy.values()).count(outgoing.chat_id) > 1:
            raise TransportUnavailable("it is not known which message of the chat was sent", 1.0)
        if sent.message_id in await self._delivery.list_sent_ids(outgoing, since):
            raise TransportUnavailable("another message of the chat was sent meanwhile", 1.0)
        return sent

    def _age(self, since: str | None) -> timedelta:
        return timedelta() if since is None else self._clock.now() - datetime.fromisoformat(since)

    async def _postpone(self, pending: PendingMessage, error: TransportUnavailable) -> None:
        limit = MAX_ISOLATED_BACKOFF_SECONDS if error.isolated else MAX_BACKOFF_SECONDS
        backoff = min(limit, 2.0 ** min(pending.attempts, 10))
        wait = max(error.wait, backoff * random.uniform(0.5, 1))  # noqa: S311 - no secret
        await self._delivery.postpone(
            pending.number,
            wait,
            str(error),
            unconfirmed=_is_unconfirmed(pending, error),
            isolated=error.isolated,
        )
        details = {
            "key": pending.outgoing.key,
            "seconds": round(wait, 1),
            "reason": truncate_line(str(error), MAX_LOGGED_FAILURE),
        }
        log.warning("message postponed", extra=details)
        asyncio.get_running_loop().call_later(wait, self.wake)

    async def _give_up(self, pending: PendingMessage, failure: str, *, unconfirmed: bool) -> None:
        await self._delivery.give_up(pending.number, failure, unconfirmed=unconfirmed)
        self._displays.finish(pending.outgoing)
        details = {
            "key": pending.outgoing.key,
            "may_have_been_sent": unconfirmed,
            "reason": truncate_line(failure, MAX_LOGGED_FAILURE),
        }
        log.error("message given up", extra=details)


class _Unresolved(TransportRejected):
    """Raised when it is unknown, and cannot be determined, whether a message was sent."""


_COMPLETED = {reason for reason, status in STATUS_BY_STOP_REASON.items() if status == "completed"}
_EXPLANATIONS = {
    "content": "refused_content",
    "permission": "refused_permission",
    "unresolved": "reply_unresolved",
}


def _describe_problems(problems: Sequence[str], phrases: ChatPhrases) -> str:
    """Return which files were not read, and why."""
    shown = (translate_problem(each, phrases.language) for each in problems[:MAX_NAMED_PROBLEMS])
    lines = [f"- {escape_markdown(each)}" for each in shown]
    if len(problems) > MAX_NAMED_PROBLEMS:
        lines.append(f"- +{len(problems) - MAX_NAMED_PROBLEMS}")
    return "\n".join([phrases("files_not_read"), *lines])


def _name_changed(changed: ChangedNames, phrases: ChatPhrases) -> str:
    """Return the line with the first changed files of a run, and how many others there are."""
    names = ", ".join(escape_markdown(each) for each in changed.names[:MAX_NAMED_CHANGES])
    more = changed.total - min(len(changed.names), MAX_NAMED_CHANGES)
    key = "files_changed_more" if more else "files_changed"
    return phrases(key, names=names, count=more)


def _describe_spending(context: ReplyContext, spending: Spending, phrases: ChatPhrases) -> str:
    """Return the resource usage of a run and its subtasks, and the duration of the run."""
    usage = spending.usage
    text = phrases(
        "answer_spending" if spending.subtasks > 1 else "answer_spending_one",
        count=spending.subtasks,
        took=phrases.duration(context.duration_ms // 1000),
        input=usage.total - usage.output_tokens,
        output=usage.output_tokens,
    )
    return f"{text} {phrases('usage_cost', cost=spending.cost)}" if spending.cost else text


def _simplicity(pending: PendingMessage) -> int:
    return max(0, pending.isolated_failures - FORM_FAILURES + 1)


def _is_unconfirmed(pending: PendingMessage, error: TransportUnavailable) -> bool:
    """Return True if an attempt so far, the last included, may have sent the message."""
    return error.unconfirmed or pending.unknown_since is not None


def _caption(outgoing: OutgoingMessage) -> str:
    """Return the line below the file names, or ""."""
    lines = outgoing.body.split("\n")
    return "\n".join(lines[len(outgoing.attachments) :]).strip()


def pack_files(files: Sequence[Attachment], contents: Sequence[bytes]) -> bytes:
    """Return a ZIP archive of files; equal files give equal bytes."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for file, content in zip(files, contents, strict=True):
            packed.writestr(zipfile.ZipInfo(file.name), content, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def format_result(outgoing: OutgoingMessage, phrases: ChatPhrases, failure: str) -> str:
    """Return the reply of a run: its answer, a note unless it ended well, and never nothing.

    `failure` is the error code, or the reason of a stop.
    """
    answer = outgoing.body.strip()
    match outgoing.stop_reason:
        case None | "final_answer" | "await_user_input":
            return answer or phrases("answer_empty")
        case "user_stop" if failure == INTERRUPTED_REASON:
            note = phrases("interrupted")
        case "user_stop" if failure == INTERRUPTED_BY_OTHER:
            note = phrases("interrupted_by_other")
        case "user_stop":
            note = phrases("stopped")
        case reason:
            note = phrases.ended(reason, failure)
    return f"{answer}\n\n---\n{note}" if answer else note
