"""Stop runs with the button of their message."""

import logging

from internal.agent.app.gateway import Gateway
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.channels.chat.command_context import principal_for
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.transport import ActionResult, ChatTransport, StopAction
from internal.i18n.chat import ChatTexts

log = logging.getLogger(__name__)


class StopButtonHandler:
    """Stops runs of one account. Who may stop a run is read when the button is used."""

    def __init__(
        self, transport: ChatTransport, gateway: Gateway, people: ChatUsers, texts: ChatTexts
    ) -> None:
        self._transport, self._gateway = transport, gateway
        self._people, self._texts = people, texts

    async def handle(self, action: StopAction) -> ActionResult:
        """Stop a run with its subtasks, if it belongs to the chat and the user may stop it.

        Raises:
            StoreError: nothing was stored.
        """
        found = await self._gateway.chats.find_run(action.run_id)
        here = (self._transport.name, self._transport.app, action.chat_id)
        if found is None:
            return ActionResult("warning", self._texts.phrases_for("")("nothing_to_stop"))
        _, task = found
        phrases, origin = self._texts.phrases_for(task.instruction), task.origin
        if (origin.channel, origin.app, origin.chat_id) != here:
            return ActionResult("warning", phrases("nothing_to_stop"))
        principal = await self._people.principal(
            action.user_id, action.chat_id, is_external=action.is_external
        )
        try:
            stopper = principal_for(task, principal)
            await self._gateway.stop(task.id, stopper, self._transport.name)
        except (NotFound, Forbidden):
            log.info("stop refused", extra={"run_id": action.run_id, "user_id": action.user_id})
            return ActionResult("warning", phrases("stop_not_allowed"))
        except Conflict:
            return ActionResult("info", phrases("nothing_to_stop"))
        return ActionResult("success", phrases("stopping"))
