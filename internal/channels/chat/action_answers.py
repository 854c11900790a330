"""Answer questions with the buttons and forms of their messages.

Nothing in an action is trusted: the question must be one of the chat, the message its own, and the
user somebody who may answer now.
"""

import logging
from collections.abc import Callable

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.questions import Actor, can_answer
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.errors import Conflict, Forbidden, InvalidRequest
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import chat_name
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.question_text import describe_late, describe_outcome
from internal.channels.chat.transport import (
    ActionResult,
    ChatAction,
    ChatTransport,
    QuestionContent,
)
from internal.i18n.chat import ChatPhrases, ChatTexts

log = logging.getLogger(__name__)


class ActionAnswers:
    """Turns actions into answers. `on_answered` gets the run that continues."""

    def __init__(
        self,
        transport: ChatTransport,
        gateway: Gateway,
        people: ChatUsers,
        *,
        texts: ChatTexts,
        on_answered: Callable[[RunId], None],
    ) -> None:
        self._transport, self._gateway, self._people = transport, gateway, people
        self._texts, self._on_answered = texts, on_answered

    async def handle(self, action: ChatAction) -> ActionResult:
        """Store the answer that an action stands for, if it stands for one.

        Raises:
            StoreError: nothing was stored.
        """
        found = await self._gateway.delivery.get_question(QuestionId(action.question_id))
        if found is None or found.record.chat != self._chat(action):
            return self._refuse(action, "click_unknown", self._texts.phrases_for(""))
        record, phrases = found.record, self._texts.phrases_for(found.instruction)
        answer: AnswerInput | str = action.read_answer(record.question)
        if found.message_id != action.message_id:
            answer = "click_unknown" if found.message_id else "click_early"
        if isinstance(answer, str):
            return self._refuse(action, answer, phrases)
        return await self._submit(action, record, answer, phrases=phrases)

    async def _submit(
        self,
        action: ChatAction,
        record: QuestionRecord,
        answer: AnswerInput,
        *,
        phrases: ChatPhrases,
    ) -> ActionResult:
        principal = await self._people.principal(action.user_id, action.chat_id)
        actor = Actor(principal, self._transport.name, self._chat(action))
        if can_answer(record, actor):  # the name is stored with the answer
            actor = actor._replace(principal=await self._people.with_name(principal))
        try:
            answered = await self._gateway.answer(record.question.id, answer, actor)
        except Conflict:
            return await self._describe_late(record, principal.id, phrases)
        except Forbidden:
            return self._refuse(action, f"click_{record.audience}", phrases)
        except InvalidRequest as error:
            return ActionResult("warning", str(error))
        self._on_answered(answered.run_id)
        log.info("question answered", extra={"question_id": record.question.id})
        outcome = describe_outcome(answered, phrases).text
        return ActionResult("success", outcome, QuestionContent(answered, phrases))

    async def _describe_late(
        self, record: QuestionRecord, principal_id: str, phrases: ChatPhrases
    ) -> ActionResult:
        """Return who answered first, and the question as it is now."""
        found = await self._gateway.delivery.get_question(record.question.id)
        current = record if found is None else found.record
        text = describe_late(current, principal_id, phrases)
        if current.status == "open":
            return ActionResult("info", text)
        return ActionResult("info", text, QuestionContent(current, phrases))

    def _refuse(self, action: ChatAction, key: str, phrases: ChatPhrases) -> ActionResult:
        details = {"reason": key, "user_id": action.user_id, "message_id": action.message_id}
        log.info("action refused", extra=details)
        return ActionResult("warning", phrases(key))

    def _chat(self, action: ChatAction) -> str:
        return chat_name(self._transport.name, self._transport.app, action.chat_id)
