"""Turn a message into a task, steering, or the interruption of the active run."""

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.creation import Submission
from internal.agent.app.task_options import TaskDefaults, TaskOptions, build_run_spec
from internal.agent.domain.ids import RunId
from internal.agent.domain.permissions.policy import Mode
from internal.agent.domain.tasks import RunSpec
from internal.channels.chat.answers import MessageContext
from internal.channels.chat.command_handlers import active_run
from internal.config.chat import BusyMode, ChatChannelSettings


class TaskRouter:
    """Submits messages as the busy mode of their chat says."""

    def __init__(
        self, gateway: Gateway, settings: ChatChannelSettings, defaults: TaskDefaults
    ) -> None:
        self._gateway, self._settings, self._defaults = gateway, settings, defaults

    async def submit(self, message: MessageContext, text: str) -> tuple[RunId, bool]:
        """Store the text as a task or as steering; the message is settled with it.

        Returns the run, and True if the text was added to a run that had started before.
        """
        principal = message.actor.principal
        submission = Submission(
            text,
            await self._build_spec(message),
            message.actor.via,
            scope=message.chat.scope,
            message=message.row,
            direct=message.chat.is_direct,
        )
        match await self._busy_mode(message):
            case "steer":
                steered = await self._gateway.steer(submission, principal)
                return steered.run_id, steered.taken_as == "steering"
            case "queue":
                return (await self._gateway.submit(submission, principal)).run_id, False
            case "interrupt":
                return (await self._gateway.interrupt(submission, principal)).run_id, False

    async def _busy_mode(self, message: MessageContext) -> BusyMode:
        """Return the busy mode; a person who may not stop the active run cannot interrupt it."""
        mode = self._settings.busy_mode_in(message.chat.chat_id)
        if mode == "interrupt" and not await self._may_stop(message):
            return "queue"
        return mode

    async def _may_stop(self, message: MessageContext) -> bool:
        principal = message.actor.principal
        if principal.may("operate"):
            return True
        open_ = await self._gateway.chats.list_unfinished(message.actor.via, message.chat.scope)
        return not open_ or active_run(open_)[1].origin.principal == principal.id

    async def _build_spec(self, message: MessageContext) -> RunSpec:
        """Return the run specification from the configuration and the settings of the chat."""
        chosen = await self._gateway.chats.get_settings(message.actor.chat)
        options = TaskOptions(
            permission_mode=Mode.ASK,
            timeout_seconds=self._settings.run_timeout_seconds,
            model=chosen.model or None,
        )
        spec = build_run_spec(self._defaults, options, message.actor.principal)
        # the configured workspace is the owner's; the tasks of chats get directories of their own
        review = chosen.plan_review or self._defaults.plan_review
        return msgspec.structs.replace(spec, workspace="", plan_review=review)
