"""Send the messages of the outbox: in order within a chat, chats independent of each other."""

import asyncio
import logging
import random
from datetime import datetime, timedelta
from typing import Protocol

from internal.agent.app.chats import ChatDelivery
from internal.agent.app.supervision import Supervisor
from internal.agent.app.task_commands import INTERRUPTED_BY_OTHER, INTERRUPTED_REASON
from internal.agent.domain.chats import OutgoingMessage, PendingMessage
from internal.agent.domain.errors import StoreError
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.react.closing_prompts import DAILY_LIMIT_CODE
from internal.agent.domain.text import truncate_line
from internal.agent.ports.runtime import Clock
from internal.channels.chat.poll_loop import PollLoop
from internal.channels.chat.transport import (
    ChatPost,
    ChatTransport,
    IncomingMessage,
    QuestionContent,
    QuestionNotice,
    TextContent,
    TransportRejected,
    TransportUnavailable,
)
from internal.i18n.chat import ChatPhrases, ChatTexts

log = logging.getLogger(__name__)

UNCERTAIN_AFTER = timedelta(minutes=50)
"""Later attempts first look for the message: the service may have forgotten the key by then."""
GIVE_UP_AFTER = timedelta(hours=24)
POLL_SECONDS = 5.0
MAX_BACKOFF_SECONDS = 60.0
MAX_LOGGED_FAILURE = 300
_PAGE_SIZE = 500
_CLOSED = ":closed"


class ReplyPlaces(Protocol):
    """Messages with the progress of runs, which their replies replace."""

    async def find_reply_place(self, pending: PendingMessage, /) -> str:
        """Return the message that an outgoing message replaces, "" for none."""

    def finish(self, outgoing: OutgoingMessage, /) -> None:
        """Note that an outgoing message was sent or given up."""


class OutboxSender:
    """Sends the messages of one account until cancelled."""

    def __init__(
        self,
        transport: ChatTransport,
        delivery: ChatDelivery,
        clock: Clock,
        *,
        displays: ReplyPlaces,
        texts: ChatTexts,
    ) -> None:
        self._transport, self._delivery, self._clock = transport, delivery, clock
        self._displays, self._texts = displays, texts
        self._poll = PollLoop(POLL_SECONDS, f"{transport.name} outbox")
        self._busy: set[str] = set()

    def wake(self) -> None:
        """Look for messages to send now."""
        self._poll.wake()

    async def run(self, supervisor: Supervisor) -> None:
        """Send messages on every wake and every 5 s."""
        await self._poll.run(self._start, supervisor)

    async def _start(self, tasks: asyncio.TaskGroup) -> None:
        name, app = self._transport.name, self._transport.app
        for pending in await self._delivery.list_due(name, app, _PAGE_SIZE):
            if pending.outgoing.chat_id not in self._busy:
                self._busy.add(pending.outgoing.chat_id)
                tasks.create_task(self._attempt(pending))

    async def _attempt(self, pending: PendingMessage) -> None:
        """Try a message once and store the outcome."""
        key = pending.outgoing.key
        try:
            try:
                await self._deliver(pending)
            except StoreError:
                raise
            except Exception:  # a channel's outer loop: one message must not stop the others
                log.exception("message cannot be sent", extra={"key": key})
                await self._postpone(pending, "an internal error; see the log", 0.0)
        except Exception:  # the attempt is repeated
            log.exception("outcome of a message cannot be stored", extra={"key": key})
            await asyncio.sleep(POLL_SECONDS)
        finally:
            self._busy.discard(pending.outgoing.chat_id)
            self._poll.wake()  # the chat may have more

    async def _deliver(self, pending: PendingMessage) -> None:
        number, outgoing, _, first_attempt = pending
        if not await self._delivery.begin_attempt(number):
            return
        since = None if first_attempt is None else datetime.fromisoformat(first_attempt)
        age = timedelta() if since is None else self._clock.now() - since
        try:
            message_id = await self._send(pending, since if age > UNCERTAIN_AFTER else None)
        except TransportRejected as error:
            # an earlier attempt may have arrived
            await self._give_up(pending, str(error), unconfirmed=since is not None)
        except TransportUnavailable as error:
            if age > GIVE_UP_AFTER:
                await self._give_up(pending, str(error), unconfirmed=True)
            else:
                await self._postpone(pending, str(error), error.wait)
        else:
            await self._delivery.mark_sent(number, message_id)
            self._displays.finish(outgoing)
            log.info("message sent", extra={"key": outgoing.key, "message_id": message_id})

    async def _send(self, pending: PendingMessage, since: datetime | None) -> str:
        """Send a message; with `since` only if it was not sent since then. Return its id."""
        outgoing = pending.outgoing
        if outgoing.question_id:
            return await self._send_question(outgoing, since)
        context = await self._delivery.get_reply_context(outgoing)
        phrases = self._texts.phrases_for(context.instruction or outgoing.body)
        text = format_result(outgoing, phrases, context.failure)
        if outgoing.run_id and await self._has_unseen_media(outgoing.run_id):
            text = f"{text}\n\n---\n{phrases('media_not_seen')}"
        account = f"{outgoing.channel}:{outgoing.app}:"
        mentions = tuple(
            each.removeprefix(account) for each in context.others if each.startswith(account)
        )
        content = TextContent(text, phrases, mentions)
        # an update notifies nobody: people who are mentioned get a new message
        replaces = "" if mentions else await self._displays.find_reply_place(pending)
        post = ChatPost(outgoing.chat_id, outgoing.reply_to, content, replaces)
        return await self._send_post(post, outgoing.key, since)

    async def _has_unseen_media(self, run_id: str) -> bool:
        """Return True if a message that a run answers has pictures or files."""
        for raw in await self._delivery.list_run_messages(run_id):
            message = await self._transport.parse(raw)
            if isinstance(message, IncomingMessage) and message.has_media:
                return True
        return False

    async def _send_question(self, outgoing: OutgoingMessage, since: datetime | None) -> str:
        """Send a question, or update its message to show how it was settled."""
        found = await self._delivery.get_question(QuestionId(outgoing.question_id))
        if found is None:
            raise TransportRejected("the question was deleted with its session")
        phrases = self._texts.phrases_for(found.instruction)
        content = QuestionContent(found.record, phrases)
        if not outgoing.key.endswith(_CLOSED):
            post = ChatPost(outgoing.chat_id, outgoing.reply_to, content)
            return await self._send_post(post, outgoing.key, since)
        if found.message_id:
            try:
                await self._transport.update(found.message_id, content)
            except TransportRejected as error:  # it was deleted, or is too old to be updated
                details = {"question_id": outgoing.question_id, "reason": str(error)}
                log.info("question not updated", extra=details)
            else:
                return found.message_id
        notice = QuestionNotice(found.record, phrases)
        post = ChatPost(outgoing.chat_id, outgoing.reply_to, notice)
        return await self._send_post(post, outgoing.key, None)

    async def _send_post(self, post: ChatPost, key: str, since: datetime | None) -> str:
        sent = ""
        if since is not None and not post.replaces:  # replacing it twice does no harm
            sent = await self._transport.find_sent(post, since)
        return sent or await self._transport.send(post, idempotency_key=key)

    async def _postpone(self, pending: PendingMessage, failure: str, wait: float) -> None:
        backoff = min(MAX_BACKOFF_SECONDS, 2.0 ** min(pending.attempts, 6))
        wait = max(wait, backoff * random.uniform(0.5, 1))  # noqa: S311 - no secret
        await self._delivery.postpone(pending.number, wait, failure)
        details = {
            "key": pending.outgoing.key,
            "seconds": round(wait, 1),
            "reason": truncate_line(failure, MAX_LOGGED_FAILURE),
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


def format_result(outgoing: OutgoingMessage, phrases: ChatPhrases, failure: str) -> str:
    """Return the reply of a run: its answer, a note unless it ended well, and never nothing.

    `failure` is the error code, or the reason of a stop.
    """
    answer = outgoing.body.strip()
    match outgoing.stop_reason:
        case None | "final_answer" | "await_user_input":
            return answer or phrases("answer_empty")
        case "max_iterations" | "max_output" as reason:
            note = phrases(f"note_{reason}")
        case "user_stop" if failure == INTERRUPTED_REASON:
            note = phrases("interrupted")
        case "user_stop" if failure == INTERRUPTED_BY_OTHER:
            note = phrases("interrupted_by_other")
        case "user_stop":
            note = phrases("stopped")
        case "rejected":
            note = phrases("rejected")
        case "error":
            note = phrases.failure(failure)
        case "budget_exceeded" if failure == DAILY_LIMIT_CODE:
            note = phrases(f"failed_{failure}")
        case reason:
            note = phrases(f"failed_{reason}")
    return f"{answer}\n\n---\n{note}" if answer else note
