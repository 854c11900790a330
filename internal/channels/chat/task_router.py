"""Turn a message into a task, steering, or the interruption of the active run.

The gateway decides by the rights of the sender: a message that may not steer or interrupt is
queued.
"""

from collections.abc import Callable

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.creation import Submission
from internal.agent.app.runs.visibility import written_at
from internal.agent.app.task_commands import is_behind
from internal.agent.app.task_options import (
    TaskDefaults,
    TaskOptions,
    build_run_spec,
    find_profile,
)
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Attachment, RunSpec
from internal.channels.chat.answers import MessageContext


class TaskRouter:
    """Submits messages according to the busy mode of their chat."""

    def __init__(
        self,
        gateway: Gateway,
        defaults: TaskDefaults,
        time_zone_of: Callable[[str], str] = lambda _user_id: "",
    ) -> None:
        self._gateway = gateway
        # the configured workspace is the owner's; the tasks of chats get directories of their own
        self._defaults = msgspec.structs.replace(defaults, workspace="")
        self._time_zone_of = time_zone_of

    async def submit(
        self,
        message: MessageContext,
        text: str,
        *,
        prompt: str = "",
        attachments: tuple[Attachment, ...] = (),
        joined: tuple[InboundMessage, ...] = (),
    ) -> tuple[RunId, bool]:
        """Store the text as a task or as steering; the message is settled with it.

        `prompt` is the input of the model, "" if it is `text`. `attachments` are the files of the
        message and its background. `joined` are further messages whose texts are in `text`.

        Returns the run, and True if the text was added to an earlier run or waits for one.
        """
        principal = message.actor.principal
        submission = self.build(message, text, prompt=prompt, attachments=attachments)
        submission = msgspec.structs.replace(submission, joined=joined)
        match message.rules.busy_mode:
            case "steer":
                steered, is_waiting = await self._gateway.steer_or_queue(submission, principal)
                return steered.run_id, is_waiting or steered.taken_as == "steering"
            case "queue":
                run_id = (await self._gateway.submit(submission, principal)).run_id
                return run_id, await self._is_waiting(run_id, message)
            case "interrupt":
                run_id = (await self._gateway.interrupt(submission, principal)).run_id
                return run_id, await self._is_waiting(run_id, message)

    def build(
        self,
        message: MessageContext,
        text: str,
        *,
        prompt: str = "",
        attachments: tuple[Attachment, ...] = (),
    ) -> Submission:
        """Return a message as a submission; see `submit`."""
        return Submission(
            text,
            self._build_spec(message),
            message.actor.via,
            attachments=attachments,
            scope=message.chat.scope,
            message=message.row,
            direct=message.chat.is_direct,
            prompt=prompt,
            writing=written_at(message.row),
        )

    async def _is_waiting(self, run_id: RunId, message: MessageContext) -> bool:
        """Return True if another run of the conversation comes first."""
        open_ = await self._gateway.chats.list_unfinished(message.actor.via, message.chat.scope)
        return is_behind([run for run, _ in open_], run_id)

    def _build_spec(self, message: MessageContext) -> RunSpec:
        """Return the run specification from the configuration and the settings of the chat."""
        rules = message.rules
        chosen = rules.chosen
        options = TaskOptions(
            timeout_seconds=rules.run_timeout_seconds,
            model=chosen.model or None,
            time_zone=self._time_zone_of(message.incoming.user_id) or None,
        )
        name = rules.profile or self._defaults.profile
        policy = rules.policy(self._defaults, find_profile(self._defaults, name))
        spec = build_run_spec(self._defaults, options, message.actor.principal, name, policy=policy)
        review = chosen.plan_review or spec.plan_review
        return msgspec.structs.replace(spec, plan_review=review)
