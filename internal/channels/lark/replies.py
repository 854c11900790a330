"""Replying: one promised message reaches its chat, in the best form that Lark takes."""

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from internal.agent.app.task_commands import INTERRUPTED_REASON
from internal.agent.domain.chats import OutgoingMessage
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.channels.lark.api import DEFAULT_POLICY, LarkApi, LarkRejected, as_json
from internal.channels.lark.message_format import MessagePart, Rendering, render_answer, send_uuid
from internal.channels.lark.question_card import (
    QUESTION_MARK,
    question_card,
    render_outcome,
    render_question,
)
from internal.i18n.catalog import LanguageSetting
from internal.i18n.chat import ChatPhrases, phrases_for

log = logging.getLogger(__name__)

GONE = frozenset({230011, 230110, 231003})
"""The message that is answered was recalled or deleted."""
_HOPELESS = frozenset(
    {230002, 230006, 230013, 230027, 230022, 230028, 99991672, 99991668, 99991677, 99991679}
)
"""No other form would be taken either: not in the chat, no right, not allowed to be said."""
_SLACK_SECONDS = 60.0


class _Sender(msgspec.Struct):
    id: str = ""


class _Found(msgspec.Struct):
    message_id: str = ""
    parent_id: str = ""
    msg_type: str = ""
    sender: _Sender = msgspec.field(default_factory=_Sender)
    body: dict[str, str] = {}


class _Failure(msgspec.Struct):
    error_code: str = ""
    reason: str = ""


class _Terminal(msgspec.Struct):
    payload: _Failure


_terminal = msgspec.json.Decoder(_Terminal).decode


class Replies:
    """Sends answers as one app."""

    def __init__(
        self,
        calls: LarkApi,
        database: Database,
        stores: Stores,
        app_id: str,
        language: LanguageSetting,
    ) -> None:
        self._calls, self._app_id, self._language = calls, app_id, language
        self._database, self._stores = database, stores

    async def send(self, outgoing: OutgoingMessage) -> str:
        """Send a message, worse forms after better ones that were refused; return its id.

        A form whose outcome is not known is not followed by another one: the same call, made again
        later, is known to Lark by its uuid.

        Raises:
            LarkRefused: no form of it is taken.
            LarkBusy: it must be tried again.
        """
        if outgoing.question_id:
            return await self._of_question(outgoing)
        words, text = await self._rendered(outgoing)
        return await self._in_a_form(outgoing, render_answer(text, words))

    async def find(self, outgoing: OutgoingMessage, since: datetime) -> str:
        """Return the id of our own answer, sent since then and perhaps not heard of; "" for none.

        Raises:
            LarkRefused: the chat may not be read.
            LarkBusy: it must be tried again.
        """
        if outgoing.key.endswith(CLOSED):
            return ""  # its card is replaced once more, which changes nothing
        kind, container = "chat", outgoing.chat_id
        if outgoing.reply_to:
            thread = (await self._calls.message(outgoing.reply_to)).get("thread_id")
            if isinstance(thread, str) and thread:
                kind, container = "thread", thread
        moment = since.timestamp() - _SLACK_SECONDS
        async for item in self._calls.messages(kind, container, moment):
            message = msgspec.convert(item, _Found, strict=False)
            ours = message.sender.id == self._app_id and message.parent_id == outgoing.reply_to
            if ours and _is_of(outgoing, message.msg_type, message.body.get("content", "")):
                return message.message_id
        return ""

    async def _of_question(self, outgoing: OutgoingMessage) -> str:
        """Send a question as it stands now, or replace its card by what became of it."""
        read, stores, app_id = self._database.read, self._stores, self._app_id
        asked = await read(partial(stores.questions.get, QuestionId(outgoing.question_id)))
        if asked is None:
            raise LarkRejected(0, "the question was deleted with its session")
        task = await read(partial(stores.tasks.get, asked.task_id))
        words = phrases_for(self._language, "" if task is None else task.instruction)
        if not outgoing.key.endswith(CLOSED):
            return await self._in_a_form(outgoing, render_question(asked, words, app_id))
        shown = await read(partial(stores.outbox.get_remote_id, card_key(asked.question.id)))
        if shown:
            try:
                card = as_json(question_card(asked, words, app_id))
                await self._calls.patch_card(shown, card, DEFAULT_POLICY)
            except LarkRejected as refused:  # no card, or one that is gone or older than 14 days
                why = {"question_id": outgoing.question_id, "why": str(refused)}
                log.info("a question's card cannot be replaced", extra=why)
            else:
                return shown
        return await self._in_a_form(outgoing, render_outcome(asked, words, app_id))

    async def _in_a_form(self, outgoing: OutgoingMessage, known: Sequence[Rendering]) -> str:
        refusal: LarkRejected | None = None
        for name, parts in known:
            try:
                ids = [
                    await self._part(outgoing, part, send_uuid(outgoing.key, name, number))
                    for number, part in enumerate(parts)
                ]
            except LarkRejected as refused:
                if refused.code in _HOPELESS:
                    raise
                refusal = refused
            else:
                return ids[0]
        raise refusal or LarkRejected(0, "there is nothing to send")

    async def _part(self, outgoing: OutgoingMessage, part: MessagePart, name: str) -> str:
        try:
            return await self._sent(outgoing, part, name)
        except LarkRejected as refused:
            if not part.spare:
                raise
            log.info("a file was left out", extra={"key": outgoing.key, "why": str(refused)})
            return ""

    async def _sent(self, outgoing: OutgoingMessage, part: MessagePart, name: str) -> str:
        content = part.content
        if part.file is not None:
            content = as_json({"file_key": await self._calls.upload(*part.file)})
        if outgoing.reply_to:
            try:
                return await self._calls.reply(outgoing.reply_to, part.kind, content, name)
            except LarkRejected as refused:
                if refused.code not in GONE:
                    raise
        fresh = send_uuid(name, "create", 0)
        return await self._calls.create(outgoing.chat_id, part.kind, content, fresh)

    async def _rendered(self, outgoing: OutgoingMessage) -> tuple[ChatPhrases, str]:
        words = phrases_for(self._language, await self._asked(outgoing))
        coded = outgoing.stop_reason in {"error", "user_stop"}
        code = await self._error_code(outgoing) if coded else ""
        return words, result_text(outgoing, words, code)

    async def _error_code(self, outgoing: OutgoingMessage) -> str:
        """Return the name of a failure, "" when it has none; the providers' words stay inside.

        A run that was stopped has the reason of its stop instead.
        """
        last_event = partial(self._stores.events.last_event, RunId(outgoing.run_id))
        event = await self._database.read(last_event)
        return "" if event is None else _named(_terminal(event.json).payload)

    async def _asked(self, outgoing: OutgoingMessage) -> str:
        """Return the words whose language is ours: the person's."""
        if self._language != "auto" or not outgoing.run_id:
            return outgoing.body
        run = await self._database.read(lambda: self._stores.runs.get(RunId(outgoing.run_id)))
        if run is None:
            return outgoing.body
        task = await self._database.read(lambda: self._stores.tasks.get(run.task_id))
        return outgoing.body if task is None else task.instruction


def result_text(outgoing: OutgoingMessage, words: ChatPhrases, error_code: str) -> str:
    """Return what a person reads: the answer, how the run ended if not well, never nothing."""
    answer, run = outgoing.body.strip(), outgoing.run_id
    match outgoing.stop_reason:
        case None | "final_answer" | "await_user_input":
            return answer or words("answer_empty")
        case "max_iterations":
            note = words("note_max_iterations", run=run)
        case "user_stop" if error_code == INTERRUPTED_REASON:
            note = words("interrupted")
        case "user_stop":
            note = words("stopped", run=run)
        case "rejected":
            note = words("rejected", run=run)
        case "error":
            note = words.failure(error_code, run)
        case reason:
            note = words(f"failed_{reason}", run=run)
    return f"{answer}\n\n---\n{note}" if answer else note


def _named(failure: _Failure) -> str:
    return failure.error_code or failure.reason


def card_key(question_id: str) -> str:
    """Return the key under which a question is sent; its message is the question's card."""
    return f"{question_id}:asked"


def is_aside(kind: str, content: str) -> bool:
    """Say whether a message of ours shows progress or a question: it has a title, or a mark."""
    try:
        shown = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return False
    if not isinstance(shown, dict):
        return False
    if kind == "interactive":
        return bool(shown.get("header") or shown.get("title"))
    return kind in {"text", "post"} and _first_text(shown).startswith(
        (PROGRESS_MARK, QUESTION_MARK)
    )


def _first_text(shown: dict[str, Any]) -> str:
    """Return the first words of a text, or of a rich text of ours: it has one part."""
    content = shown.get("content")
    while isinstance(content, list) and content:
        content = content[0]
    return str((content if isinstance(content, dict) else shown).get("text", ""))


def _is_of(outgoing: OutgoingMessage, kind: str, content: str) -> bool:
    """Say whether a message of ours is this answer, or this question: it tells its id."""
    if outgoing.question_id:
        return outgoing.question_id in content
    return not is_aside(kind, content)


PROGRESS_MARK = "⏳\u200b"
"""What a text that shows progress begins with."""
CLOSED = ":closed"
"""How the key of the news about a question ends."""
