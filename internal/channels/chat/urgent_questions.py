"""Alert people to approvals that wait: an urgent message, once for each question."""

import asyncio
import logging
from datetime import timedelta

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.questions import Actor, can_answer
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord
from internal.channels.chat.policy import ChatUsers, listed_operators
from internal.channels.chat.poll_loop import PollLoop
from internal.channels.chat.transport import (
    ChatTransport,
    TransportRejected,
    TransportUnavailable,
)
from internal.settings.chat import ChatChannelSettings

log = logging.getLogger(__name__)

POLL_SECONDS = 15.0
MAX_URGED = 5
"""People who are alerted to one question."""
_PAGE_SIZE = 100

Alert = tuple[str, str]
"""The id of a message that asks, and the user who is alerted to it."""


class UrgentQuestions:
    """Alerts the people of one account after the configured number of minutes, if any.

    The urgency of a question is stored before the first call, so that a crash does not cause a
    second alert.
    """

    def __init__(
        self,
        transport: ChatTransport,
        gateway: Gateway,
        people: ChatUsers,
        settings: ChatChannelSettings,
    ) -> None:
        self._transport, self._gateway = transport, gateway
        self._people, self._settings = people, settings
        self._poll = PollLoop(POLL_SECONDS, f"{transport.name} urgent questions")
        self.problem = ""
        """The reason why nobody can be alerted, "" if none is known."""

    async def run(self, supervisor: Supervisor) -> None:
        """Alert people until cancelled; return at once if it is off."""
        if self._settings.urgent_after_minutes is not None:
            await self._poll.run(self._check, supervisor)

    async def _check(self, _: asyncio.TaskGroup) -> None:
        wait = timedelta(minutes=self._settings.urgent_after_minutes or 0)
        account = self._people.principal_id("")
        for record in await self._gateway.delivery.list_to_urge(account, wait, _PAGE_SIZE):
            if record.question.kind == "approval":
                await self._alert(record)

    async def _alert(self, record: QuestionRecord) -> None:
        """Alert the people who may answer a question. Nothing is stored if it was not delivered."""
        alerts = await self._list_alerts(record)
        question_id, delivery = record.question.id, self._gateway.delivery
        if not alerts or not await delivery.mark_urged(question_id):
            return
        is_sent = False
        for message_id, user_id in alerts:
            try:
                await self._transport.urge(message_id, user_id)
            except TransportRejected as error:
                self._note_refusal(error)
                if error.refusal == "permission":
                    break  # it is refused for everybody
            except TransportUnavailable as error:
                log.info("nobody alerted", extra={"reason": str(error)})
                if not (is_sent or error.unconfirmed):
                    await delivery.unmark_urged(question_id)
                    return
            else:
                is_sent, self.problem = True, ""
        log.info("urgent question", extra={"question_id": question_id, "is_sent": is_sent})

    def _note_refusal(self, error: TransportRejected) -> None:
        if error.refusal != "permission":
            log.info("user not alerted", extra={"reason": str(error)})
        elif not self.problem:
            self.problem = str(error)
            log.warning("urgent messages need a permission", extra={"reason": self.problem})

    async def _list_alerts(self, record: QuestionRecord) -> list[Alert]:
        """Return the message and the person of each alert; empty if the question was not sent yet.

        The people are the recipients of copies or else, in the chat of the task, its author if that
        person may answer, and otherwise the operators of that chat.
        """
        question, delivery = record.question, self._gateway.delivery
        if question.is_for_others:
            found = [
                (await delivery.get_question(question.id, user), user)
                for user in question.recipients
            ]
            return [(each.message_id, user) for each, user in found if each and each.message_id]
        asked = await delivery.get_question(question.id)
        if asked is None or not asked.message_id:
            return []
        users = await self._list_users(record)
        return [(asked.message_id, user) for user in users[:MAX_URGED]]

    async def _list_users(self, record: QuestionRecord) -> list[str]:
        """Return the users in the chat of a task who may answer, only its writer if that is one."""
        account, gateway = self._people.principal_id(""), self._gateway
        asker, chat_id = record.principal.removeprefix(account), record.chat.removeprefix(account)
        listed = listed_operators(self._settings, self._transport.is_user, chat_id).users
        paired = [
            each.principal.removeprefix(account)
            for each in await gateway.queries.people(LOCAL_OWNER)
            if each.principal.startswith(account)
        ]
        able: list[str] = []
        for user in dict.fromkeys((asker, *listed, *paired)):
            principal = await self._people.principal(user, chat_id, is_external=False)
            if can_answer(record, Actor(principal, self._transport.name, record.chat)):
                able.append(user)
        return [asker] if asker in able else able
