"""Continue ended runs, or start new conversations, with the buttons of their replies."""

import logging
from collections.abc import Callable

from internal.agent.app.gateway import Gateway
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import (
    Conflict,
    Forbidden,
    MessageRefused,
    NotFound,
    TooManyTasks,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import Task, may_control
from internal.agent.ports.runtime import Clock
from internal.channels.chat.command_context import principal_for
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.transport import ActionResult, ChatTransport, RunAction
from internal.i18n.chat import ChatPhrases, ChatTexts

log = logging.getLogger(__name__)


class RunButtonHandler:
    """Handles the buttons of one account. Rights are read when a button is used.

    The continued run replies to the message with the button, which continues a run once.
    """

    def __init__(
        self,
        transport: ChatTransport,
        gateway: Gateway,
        people: ChatUsers,
        texts: ChatTexts,
        *,
        clock: Clock,
        on_run: Callable[[RunId], None],
    ) -> None:
        self._transport, self._gateway = transport, gateway
        self._people, self._texts = people, texts
        self._clock, self._on_run = clock, on_run

    async def handle(self, action: RunAction) -> ActionResult:
        """Execute a button's action if its run belongs to the chat and the user may control it.

        Raises:
            StoreError: nothing was stored.
        """
        found = await self._gateway.chats.find_run(action.run_id)
        if found is None:
            return ActionResult("warning", self._texts.phrases_for("")("nothing_to_resume"))
        _, task = found
        phrases, origin = self._texts.phrases_for(task.instruction), task.origin
        here = (self._transport.name, self._transport.app, action.chat_id)
        if (origin.channel, origin.app, origin.chat_id) != here:
            return ActionResult("warning", phrases("nothing_to_resume"))
        principal = await self._people.principal(
            action.user_id, action.chat_id, is_external=action.is_external
        )
        if not principal.may("talk") or not may_control(principal, task):
            details = {"run_id": action.run_id, "user_id": action.user_id}
            log.info("button refused", extra=details)
            return ActionResult("warning", phrases("button_not_allowed"))
        try:
            if action.command == "new":
                return await self._open_session(task, principal, phrases)
            return await self._continue(action, task, principal, phrases=phrases)
        except (NotFound, Forbidden):
            return ActionResult("warning", phrases("button_not_allowed"))

    async def _continue(
        self, action: RunAction, task: Task, principal: Principal, *, phrases: ChatPhrases
    ) -> ActionResult:
        message = InboundMessage(
            channel=self._transport.name,
            app=self._transport.app,
            # the card: a second click is a message that was processed before
            message_id=action.message_id,
            chat_id=action.chat_id,
            principal=principal.id,
            raw="",
            received=rfc3339(self._clock.now()),
            thread_id=task.origin.thread_id,
        )
        who = principal_for(task, principal)
        try:
            resumed = await self._gateway.resume(task.id, who, self._transport.name, message)
        except Conflict:
            return ActionResult("info", phrases("button_used"))
        except TooManyTasks as error:
            return ActionResult("warning", phrases("too_many_tasks", limit=error.limit))
        except MessageRefused as error:
            return ActionResult("warning", str(error))
        self._on_run(resumed.run_id)
        details = {"run_id": action.run_id, "new_run_id": resumed.run_id}
        log.info("run continued by its button", extra=details)
        return ActionResult("success", phrases("button_continues"))

    async def _open_session(
        self, task: Task, principal: Principal, phrases: ChatPhrases
    ) -> ActionResult:
        """Open a session in the place of that of a task, unless there is a newer one."""
        scope = await self._gateway.chats.get_current_scope(task.session_id)
        if not scope:
            return ActionResult("info", phrases("button_newer"))
        await self._gateway.open_session(principal, self._transport.name, scope=scope)
        return ActionResult("success", phrases("new"))
