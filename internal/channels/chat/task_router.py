"""Working: a person's words become a task, steering for the run at work, or the end of that run."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.creation import Submission
from internal.agent.app.task_options import TaskDefaults, TaskOptions, build_run_spec
from internal.agent.domain.ids import RunId
from internal.agent.domain.permissions.policy import Mode
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import RunSpec
from internal.channels.chat.command_handlers import Obeying
from internal.channels.chat.policy import BusyMode, ChatRules
from internal.channels.chat.text_answers import Place, Speaker


@dataclass(frozen=True, slots=True)
class Setting:
    """Which app it is, how it behaves, and what its tasks get."""

    app_id: str
    rules: ChatRules
    defaults: TaskDefaults


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happens when a message was taken in.

    `follow` shows a run, `acknowledge` puts a reaction on a message, `promised` says that there is
    something to send.
    """

    follow: Callable[[RunId], None]
    acknowledge: Callable[[str], None]
    promised: Callable[[], None]


class Working:
    """Gives words to runs."""

    def __init__(
        self, gateway: Gateway, obeying: Obeying, setting: Setting, outcome: Outcome
    ) -> None:
        self._gateway, self._obeying, self._outcome = gateway, obeying, outcome
        self._rules, self._defaults = setting.rules, setting.defaults

    async def take(self, speaker: Speaker, text: str, place: Place) -> None:
        """Do with words what the chat's busy mode says; the message is taken in with it."""
        principal, row = speaker.answerer.principal, speaker.row
        brief = await self._brief(principal, speaker.answerer.chat)
        submission = Submission(
            text, brief, "lark", scope=place.scope, message=row, direct=place.direct
        )
        match await self._mode(principal, place):
            case "steer":
                steered = await self._gateway.steer(submission, principal)
                if steered.taken_as == "steering":
                    self._outcome.acknowledge(row.message_id)
                self._outcome.follow(steered.run_id)
            case "queue":
                self._outcome.follow((await self._gateway.submit(submission, principal)).run_id)
            case "interrupt":
                self._outcome.follow((await self._gateway.interrupt(submission, principal)).run_id)

    async def _mode(self, principal: Principal, place: Place) -> BusyMode:
        """Return the busy mode; who may not stop the run at work does not interrupt it either."""
        mode = self._rules.busy_mode_in(place.chat_id)
        if mode == "interrupt" and not await self._obeying.may_stop(principal, place):
            return "queue"
        return mode

    async def _brief(self, principal: Principal, chat: str) -> RunSpec:
        """Return how it is to be done: as the settings have it, and as the chat wishes."""
        wish, rules = await self._obeying.wishing.wish(chat), self._rules
        options = TaskOptions(
            permission_mode=Mode.ASK,
            timeout_seconds=rules.run_timeout_seconds,
            model=wish.model or None,
        )
        brief = build_run_spec(self._defaults, options, principal)
        # the settings' folder is its owner's; a chat works in a folder of its own
        return msgspec.structs.replace(
            brief,
            workspace="",
            plan_review=wish.plan_review or rules.plan_review,
            question_ttl_minutes=rules.question_ttl_minutes,
        )
