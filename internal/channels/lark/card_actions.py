"""Handle card actions: read the button or form, pass it on, respond with a toast and a card."""

import asyncio
import logging
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal

import msgspec
from cachetools import TTLCache

from internal.agent.app.background_task import wait_shielded
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.questions import Question
from internal.agent.domain.text import truncate_line
from internal.channels.chat.transport import (
    ActionResult,
    ChatAction,
    OnAction,
    ReceivedMessage,
    RunAction,
    StopAction,
    SuggestionAction,
    UserAction,
)
from internal.channels.lark.events import EventEnvelope, LarkClick, suggestion_of
from internal.channels.lark.question_card import question_card
from internal.channels.lark.question_form import (
    ButtonAction,
    InvalidAnswer,
    StopButton,
    read_card_answer,
)
from internal.channels.lark.run_buttons import RunButtonValue
from internal.i18n.chat import ChatTexts

log = logging.getLogger(__name__)

CALLBACK_TIMEOUT_SECONDS = 2.2
"""Lark waits three seconds for the response."""
MAX_RUNNING = 100
_CACHE_SIZE, _CACHE_SECONDS = 2_048, 600.0

CallbackResponse = dict[str, Any]
"""Response that Lark displays: a toast and optionally another card."""


class CardActionHandler:
    """Called in the connection's loop; `on_action` runs in the loop that created the object."""

    def __init__(self, app_id: str, texts: ChatTexts, on_action: OnAction) -> None:
        self._app_id, self._texts, self._on_action = app_id, texts, on_action
        self._loop = asyncio.get_running_loop()
        self._responses: TTLCache[str, CallbackResponse] = TTLCache(_CACHE_SIZE, _CACHE_SECONDS)
        self._running: set[Future[ActionResult]] = set()

    async def handle(self, envelope: EventEnvelope) -> CallbackResponse:
        """Return the response to a card action.

        A response that reports success was stored. May be called again before it returns; while
        many actions are running, others are rejected at once.
        """
        header = envelope.header
        if header.event_id in self._responses:
            return self._responses[header.event_id]
        try:
            click = envelope.read_click()
        except msgspec.DecodeError as error:
            log.warning("malformed card action", extra={"reason": truncate_line(str(error), 200)})
            return self._toast("error", "click_malformed")
        action = _read_suggestion(click, envelope)
        action = action or _read_action(click, header.tenant_key)
        result = self._malformed() if action is None else await self._run(action)
        if result is None:
            return self._toast("error", "click_not_stored")
        response = self._respond(result)
        self._responses[header.event_id] = response
        return response

    async def _run(self, action: UserAction) -> ActionResult | None:
        """Return the result of an action; None if it is not known in time."""
        if len(self._running) >= MAX_RUNNING:
            log.warning("card action rejected: too many are running")
            return None
        running = asyncio.run_coroutine_threadsafe(self._on_action(action), self._loop)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        try:
            async with asyncio.timeout(CALLBACK_TIMEOUT_SECONDS):
                return await wait_shielded(asyncio.wrap_future(running))
        except TimeoutError:
            log.warning("card action timed out")  # it may still succeed; the card shows it then
        except Exception:  # a channel's outer loop: an action must not end the connection
            log.exception("card action failed")
        return None

    def _respond(self, result: ActionResult) -> CallbackResponse:
        response: CallbackResponse = {"toast": {"type": result.level, "content": result.text}}
        if result.question is not None:
            card = question_card(result.question.record, result.question.phrases, self._app_id)
            response["card"] = {"type": "raw", "data": card}
        return response

    def _toast(self, level: Literal["warning", "error"], key: str) -> CallbackResponse:
        return self._respond(ActionResult(level, self._texts.phrases_for("")(key)))

    def _malformed(self) -> ActionResult:
        return ActionResult("warning", self._texts.phrases_for("")("click_malformed"))


def _read_suggestion(click: LarkClick, envelope: EventEnvelope) -> UserAction | None:
    """Return the chosen suggested message, or None if another button was clicked."""
    if (chosen := suggestion_of(click, envelope.header)) is None:
        return None
    received = ReceivedMessage(
        chosen.name, chosen.chat_id, chosen.open_id, envelope.raw, decoded=chosen
    )
    return SuggestionAction(received, chosen.text, chosen.is_external)


def _read_action(click: LarkClick, tenant_key: str) -> ChatAction | StopAction | RunAction | None:
    """Return the action of an event; None if its value is not that of our buttons."""
    value, is_external = click.action.value, click.operator.tenant_key != tenant_key
    who, chat = click.operator.open_id, click.context.open_chat_id
    with suppress(msgspec.ValidationError):
        run = msgspec.convert(value, RunButtonValue)
        message = click.context.open_message_id
        return RunAction(run.command, run.run, who, chat, message, is_external)
    with suppress(msgspec.ValidationError):
        stop = msgspec.convert(value, StopButton)
        return StopAction(stop.run, who, chat, is_external)
    try:
        button = msgspec.convert(value, ButtonAction)
    except msgspec.ValidationError:
        return None

    def read_answer(question: Question) -> AnswerInput | str:
        answer = read_card_answer(button, click.action.form_value, question)
        return answer.phrase if isinstance(answer, InvalidAnswer) else answer

    return ChatAction(
        question_id=button.question,
        user_id=who,
        chat_id=chat,
        message_id=click.context.open_message_id,
        read_answer=read_answer,
        is_external=is_external,
    )
