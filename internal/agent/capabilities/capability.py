"""The points of a run at which a feature can take part.

A run goes through its stages without knowing a feature; a capability names the points that it
needs, and the others cost nothing.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import msgspec

from internal.agent.app.events.writer import ExtraWork, LastEvent, QueuedListener
from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.endings import Departure, Ending
from internal.agent.capabilities.run_draft import DraftChange, PromptScope, RunDraft
from internal.agent.domain.events.types import Event
from internal.agent.domain.ids import RunId
from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import Part, ToolCall
from internal.agent.domain.react.history import History
from internal.agent.domain.react.hook_outcomes import HookOutcome
from internal.agent.domain.react.steps import Pause, TurnOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Attachment, Task
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import ModelRequest, ModelResponse
from internal.agent.ports.tools import ToolOutcome


class Contribution(NamedTuple):
    """Additions to the transaction that stores an ending.

    `before` and `after` are statements around the statements of the run itself. `settle` completes
    the last event after them.
    """

    events: tuple[Event, ...] = ()
    before: ExtraWork | None = None
    after: ExtraWork | None = None
    settle: LastEvent | None = None


class RunStarted(msgspec.Struct, frozen=True):
    """The first Turn of a run was prepared."""


class RunPaused(msgspec.Struct, frozen=True):
    """A run waits for a person."""

    pause: Pause


class RunEnded(msgspec.Struct, frozen=True):
    """A run ended."""

    outcome: TurnOutcome


Moment = RunStarted | RunPaused | RunEnded


class ReviewedCall(NamedTuple):
    """A call of a reply, which was not judged yet."""

    call: ToolCall
    spec: ToolSpec


class RunCall(NamedTuple):
    """A call of a run that is executed."""

    run: RunContext
    turn: Turn
    call: ToolCall
    spec: ToolSpec


class CallReport(msgspec.Struct, frozen=True):
    """The result of a call.

    The model reads `text`, then the `additions`; `events` are stored with the result. `outcome` is
    that of the tool, without content if it failed.
    """

    text: str
    failed: bool
    additions: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    outcome: ToolOutcome = ToolOutcome("")


CallNext = Callable[[], Awaitable[CallReport]]


def _unchanged(draft: RunDraft) -> RunDraft:
    return draft


class UserMessage(NamedTuple):
    """A message of a person that a run in `workspace` is about to read.

    `earlier` is the history before the task of the run; None for a message that joins it later.
    """

    workspace: str
    text: str
    attachments: tuple[Attachment, ...]
    earlier: History | None = None


class ReceivedParts(NamedTuple):
    """Parts that the model reads before the text of a message, and the stored `attachments` in it.

    With an `answer` the run needs no model.
    """

    parts: tuple[Part, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    events: tuple[Event, ...] = ()
    answer: str = ""


class ModelReply(NamedTuple):
    """A reply of the model, the events and work stored with it, and its lost parts."""

    response: ModelResponse
    events: tuple[Event, ...] = ()
    work: ExtraWork | None = None
    lost: tuple[RequestLoss, ...] = ()


class Capability:
    """A feature that takes part in runs. The base does nothing at each point."""

    name: ClassVar[str]

    def listener(self) -> QueuedListener | None:
        """Return a listener to the durable events of an attempt of a run."""

    def contribute(self, _scope: PromptScope, /) -> DraftChange:
        """Read the files that a new run needs, and return the change of its draft.

        Blocks: it is called in a thread together with other capabilities, or in the event loop
        where all folders are on local disks and reading was fast the last time.

        Raises:
            LarkspurError: the run cannot be prepared; it fails with this sentence.
        """
        return _unchanged

    async def enter(self, _run: RunContext, /) -> None:
        """Prepare this process for an attempt of a run.

        Raises:
            LarkspurError: the run cannot be executed; it fails with this sentence.
        """

    async def receive(self, _run: RunContext, _message: UserMessage, /) -> ReceivedParts:
        """Return the content of a person's message with attachments, besides its text.

        Raises:
            LarkspurError: the message cannot be read now.
        """
        return ReceivedParts()

    async def before_request(
        self, _run: RunContext, _turn: Turn, request: ModelRequest, /
    ) -> ModelRequest:
        """Return a request to the model, changed or not."""
        return request

    async def after_reply(self, _run: RunContext, response: ModelResponse, /) -> ModelReply:
        """Return a reply of the model, changed or not, before it becomes a part of the Turn."""
        return ModelReply(response)

    async def review_calls(
        self, _run: RunContext, _turn: Turn, _calls: Sequence[ReviewedCall], /
    ) -> Mapping[str, HookOutcome]:
        """Return decisions about the calls of a reply, by call_id, before rules judge them.

        They can change the arguments of a call, refuse it, or have a person asked. They are stored
        with the reply: after a crash before that, the model is asked again, and then this method.
        """
        return {}

    async def before_batch(
        self, _run: RunContext, _turn: Turn, _calls: Sequence[ToolCall], /
    ) -> None:
        """Take note of calls that are executed next."""

    async def around_call(self, _call: RunCall, call_next: CallNext, /) -> CallReport:
        """Execute a call by `call_next`, and return its report, changed or not.

        Exceptions of `call_next` are passed on: the call waits for people or for tasks, or nothing
        can be stored any more. A call that fails has a report.
        """
        return await call_next()

    async def observe(self, _run: RunContext, _moment: Moment, /) -> None:
        """Take note of a moment of a run, which goes on when this method returns."""

    async def leave(self, _run_id: RunId, _departure: Departure, /) -> None:
        """Release what this process holds for a run, before it is stored that the run leaves it."""

    async def ending(
        self, _run: RunContext, _turn: Turn | None, _ending: Ending, /
    ) -> Contribution:
        """Return the contribution that is stored with the ending of an attempt.

        There is no Turn if the run was not prepared.
        """
        return Contribution()

    def committed(self, _run: RunContext, _ending: Ending, /) -> None:
        """Take note that an ending is stored. Nothing waits for the actions here."""

    async def fail(self, _task: Task, /) -> None:
        """Take note that a run failed in another way than by an ending."""
