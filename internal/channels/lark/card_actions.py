"""Clicks: a press on a question's card is understood, stored as the answer, and acknowledged.

What a card sends back is looked at as if anybody had written it: the question must be one of the
chat, the message its card, the person somebody who may answer at this moment.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
from cachetools import TTLCache

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.questions import Actor, can_answer
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.errors import Conflict, Forbidden, InvalidRequest
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import chat_name
from internal.agent.domain.text import truncate_line
from internal.agent.store.database import Database, Read
from internal.agent.store.stores import Stores
from internal.channels.chat.question_text import late, outcome
from internal.channels.lark.card_elements import ButtonAction
from internal.channels.lark.directory import People
from internal.channels.lark.question_card import question_card
from internal.channels.lark.question_form import InvalidAnswer, read_card_answer
from internal.channels.lark.replies import card_key
from internal.i18n.catalog import LanguageSetting
from internal.i18n.chat import ChatPhrases, phrases_for

log = logging.getLogger(__name__)

CARD_ACTION_EVENT = "card.action.trigger"
CALLBACK_TIMEOUT_SECONDS = 2.2
"""Lark waits three seconds for what a click did."""
_REMEMBERED, _REMEMBERED_SECONDS = 2_048, 600.0

T = TypeVar("T")
CallbackResponse = dict[str, Any]
"""What Lark shows: a toast, and perhaps another card."""


class _Ids(msgspec.Struct):
    open_id: str = ""


class _Action(msgspec.Struct):
    value: Any = None
    form_value: dict[str, Any] | None = None


class _Where(msgspec.Struct):
    open_message_id: str = ""
    open_chat_id: str = ""


class _Event(msgspec.Struct):
    operator: _Ids
    action: _Action
    context: _Where


class _Header(msgspec.Struct):
    event_type: str = ""
    event_id: str = ""


class _Envelope(msgspec.Struct):
    header: _Header = msgspec.field(default_factory=_Header)
    event: msgspec.Raw = msgspec.Raw(b"{}")


_envelope = msgspec.json.Decoder(_Envelope)
_event = msgspec.json.Decoder(_Event)


class _NoAnswer(Exception):
    """A click is no answer; `phrase` says why, in the words of the question if there is one."""

    def __init__(self, phrase: str, words: ChatPhrases | None = None) -> None:
        super().__init__(phrase)
        self.phrase, self.words = phrase, words


class Behind(NamedTuple):
    """What clicks need of the house. `answered` is told whose run goes on."""

    gateway: Gateway
    database: Database
    stores: Stores
    people: People
    answered: Callable[[RunId], None]


class CardActionHandler:
    """Takes clicks in the connection's thread; the answers are given in the loop of its maker."""

    def __init__(self, app_id: str, language: LanguageSetting, behind: Behind) -> None:
        self._app_id, self._language, self._behind = app_id, language, behind
        self._loop = asyncio.get_running_loop()
        self._known: TTLCache[str, CallbackResponse] = TTLCache(_REMEMBERED, _REMEMBERED_SECONDS)
        self._at_work: Future[CallbackResponse] | None = None

    def take(self, payload: bytes) -> CallbackResponse | None:
        """Return what a click leads to; None for an event that is no click.

        What it says is so: an answer that it calls taken is stored. While one click is not done,
        others are refused at once: the client handles one event after the other, so waits would
        add up.
        """
        try:
            envelope = _envelope.decode(payload)
        except msgspec.DecodeError:
            return None  # what is no event at all is not for us to judge
        header = envelope.header
        if header.event_type != CARD_ACTION_EVENT:
            return None
        if header.event_id in self._known:
            return self._known[header.event_id]
        try:
            event = _event.decode(envelope.event)
        except msgspec.DecodeError as error:
            log.warning(
                "a malformed click was dropped", extra={"why": truncate_line(str(error), 200)}
            )
            return self._toast("error", "click_malformed")
        reaction = self._waited_for(event)
        if reaction is None:
            return self._toast("error", "click_not_stored")
        self._known[header.event_id] = reaction
        return reaction

    def _waited_for(self, event: _Event) -> CallbackResponse | None:
        """Return what the click leads to; None when that cannot be told in time."""
        if self._at_work is not None and not self._at_work.done():
            return None
        self._at_work = asyncio.run_coroutine_threadsafe(self._settle(event), self._loop)
        try:
            return self._at_work.result(CALLBACK_TIMEOUT_SECONDS)
        except TimeoutError:
            log.warning("a click was not settled in time")  # it may yet be; the card shows it then
        except Exception:  # a channel's outer loop: a click must not end the connection
            log.exception("a click was not settled")
        return None

    async def _settle(self, event: _Event) -> CallbackResponse:
        """Do what a click says.

        Raises:
            StoreError: nothing was stored.
        """
        try:
            return await self._answer(event, *await self._meant(event))
        except _NoAnswer as no:
            where, who = event.context.open_message_id, event.operator.open_id
            told = {"why": no.phrase, "open_id": who, "message_id": where}
            log.info("a click was refused", extra=told)
            return self._toast("warning", no.phrase, no.words)

    async def _meant(self, event: _Event) -> tuple[QuestionRecord, AnswerInput, ChatPhrases]:
        """Return the question and the answer that a click means.

        Raises:
            _NoAnswer: it is no answer to a question of this chat, given on its card.
        """
        try:
            press = msgspec.convert(event.action.value, ButtonAction)
        except msgspec.ValidationError:
            raise _NoAnswer("click_malformed") from None
        asked = await self._find(press.question)
        if asked is None or asked.chat != self._chat(event):
            raise _NoAnswer("click_unknown")
        words = await self._words(asked)
        outbox = self._behind.stores.outbox
        card = await self._read(partial(outbox.get_remote_id, card_key(asked.question.id)))
        if card != event.context.open_message_id:
            raise _NoAnswer("click_unknown" if card else "click_early", words)
        given = read_card_answer(press, event.action.form_value, asked.question)
        if isinstance(given, InvalidAnswer):
            raise _NoAnswer(given.phrase, words)
        return asked, given, words

    async def _answer(
        self, event: _Event, asked: QuestionRecord, given: AnswerInput, words: ChatPhrases
    ) -> CallbackResponse:
        people, chat_id = self._behind.people, event.context.open_chat_id
        who = await people.principal(event.operator.open_id, chat_id)
        answerer = Actor(who, "lark", self._chat(event))
        if can_answer(asked, answerer):  # the name stays with the answer
            answerer = answerer._replace(principal=await people.named(who))
        try:
            answered = await self._behind.gateway.answer(asked.question.id, given, answerer)
        except Conflict:
            return await self._late(asked, who.id, words)
        except Forbidden:
            raise _NoAnswer(f"click_{asked.audience}", words) from None
        except InvalidRequest as error:
            return _toast("warning", str(error))
        self._behind.answered(answered.run_id)
        log.info("a question was answered", extra={"question_id": asked.question.id})
        return self._with_card(_toast("success", outcome(answered, words).said), answered, words)

    async def _late(
        self, asked: QuestionRecord, clicker: str, words: ChatPhrases
    ) -> CallbackResponse:
        """Return who was first, and the card as it is now."""
        now = await self._find(asked.question.id) or asked
        toast = _toast("info", late(now, clicker, words))
        return toast if now.status == "open" else self._with_card(toast, now, words)

    async def _find(self, name: str) -> QuestionRecord | None:
        return await self._read(partial(self._behind.stores.questions.get, QuestionId(name)))

    async def _words(self, asked: QuestionRecord) -> ChatPhrases:
        task = await self._read(partial(self._behind.stores.tasks.get, asked.task_id))
        return phrases_for(self._language, "" if task is None else task.instruction)

    def _toast(self, kind: str, phrase: str, words: ChatPhrases | None = None) -> CallbackResponse:
        return _toast(kind, (words or phrases_for(self._language, ""))(phrase))

    def _with_card(
        self, toast: CallbackResponse, asked: QuestionRecord, words: ChatPhrases
    ) -> CallbackResponse:
        card = question_card(asked, words, self._app_id)
        return toast | {"card": {"type": "raw", "data": card}}

    async def _read(self, work: Callable[[], Read[T]]) -> T:
        return await self._behind.database.read(work)

    def _chat(self, event: _Event) -> str:
        return chat_name("lark", self._app_id, event.context.open_chat_id)


def _toast(kind: str, content: str) -> CallbackResponse:
    return {"toast": {"type": kind, "content": content}}
