"""The capabilities of a process, asked in their order at the points that they name."""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from internal.agent.app.events.writer import QueuedListener, SerializingEventListener, join_work
from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import (
    CallNext,
    CallReport,
    Capability,
    Contribution,
    ModelReply,
    Moment,
    ReceivedParts,
    ReviewedCall,
    RunCall,
    UserMessage,
)
from internal.agent.capabilities.endings import Departure, Ending
from internal.agent.capabilities.run_draft import DraftChange, PromptScope
from internal.agent.domain.ids import RunId
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.react.hook_outcomes import HookDecision, HookOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Task
from internal.agent.ports.llm import ModelRequest, ModelResponse

logger = logging.getLogger(__name__)

_STRICTNESS: dict[HookDecision, int] = {"pass": 0, "ask": 1, "refuse": 2}


class Capabilities:
    """All capabilities. Each point calls only the capabilities that override it."""

    def __init__(self, members: tuple[Capability, ...] = ()) -> None:
        self._listener = _naming(members, Capability.listener)
        self._contribute = _naming(members, Capability.contribute)
        self._receive = _naming(members, Capability.receive)
        self._before_request = _naming(members, Capability.before_request)
        self._after_reply = _naming(members, Capability.after_reply)
        self._enter = _naming(members, Capability.enter)
        self._before_batch = _naming(members, Capability.before_batch)
        self._ending = _naming(members, Capability.ending)
        self._committed = _naming(members, Capability.committed)
        self._fail = _naming(members, Capability.fail)
        self._review_calls = _naming(members, Capability.review_calls)
        self._around_call = _naming(members, Capability.around_call)
        self._observe = _naming(members, Capability.observe)
        self._leave = _naming(members, Capability.leave)

    @asynccontextmanager
    async def listening(self, stream: SerializingEventListener) -> AsyncGenerator[None]:
        """Deliver the events of a stream to the listeners while the block runs, then the rest."""
        async with AsyncExitStack() as stack:
            for make in self._listener:
                listener: QueuedListener = make()
                stream.add(listener)
                await stack.enter_async_context(listener.running())
            yield

    def contribute(self, scope: PromptScope) -> list[DraftChange]:
        """Return the changes of a run's draft, in order. Blocks; see `Capability.contribute`."""
        return [contribute(scope) for contribute in self._contribute]

    async def enter(self, run: RunContext) -> None:
        """Prepare this process for an attempt of a run; see `Capability.enter`."""
        for enter in self._enter:
            await enter(run)

    async def receive(self, run: RunContext, message: UserMessage) -> ReceivedParts:
        """Return the content of a person's message besides its text."""
        if not message.attachments:
            return ReceivedParts()
        found = [await receive(run, message) for receive in self._receive]
        return ReceivedParts(
            tuple(part for each in found for part in each.parts),
            tuple(attachment for each in found for attachment in each.attachments),
            tuple(event for each in found for event in each.events),
            next((each.answer for each in found if each.answer), ""),
        )

    async def before_request(
        self, run: RunContext, turn: Turn, request: ModelRequest
    ) -> ModelRequest:
        """Return a request to the model as all capabilities change it, in their order."""
        for before in self._before_request:
            request = await before(run, turn, request)
        return request

    async def after_reply(self, run: RunContext, response: ModelResponse) -> ModelReply:
        """Return a reply as all capabilities change it, with the additions to store."""
        reply = ModelReply(response)
        for after in self._after_reply:
            response, events, work, lost = await after(run, reply.response)
            work = join_work(reply.work, work)
            reply = ModelReply(response, (*reply.events, *events), work, (*reply.lost, *lost))
        return reply

    async def before_batch(self, run: RunContext, turn: Turn, calls: Sequence[ToolCall]) -> None:
        """Tell of calls that are executed next."""
        for before in self._before_batch:
            await before(run, turn, calls)

    async def ending(self, run: RunContext, turn: Turn | None, ending: Ending) -> Contribution:
        """Return the contributions of all capabilities to an ending, in their order."""
        found = [await contribute(run, turn, ending) for contribute in self._ending]
        return Contribution(
            tuple(event for each in found for event in each.events),
            join_work(*(each.before for each in found)),
            join_work(*(each.after for each in found)),
            next((each.settle for each in found if each.settle is not None), None),
        )

    def committed(self, run: RunContext, ending: Ending) -> None:
        """Tell that an ending is stored."""
        for committed in self._committed:
            try:
                committed(run, ending)
            except Exception:  # the run has ended: nothing may fail it
                logger.exception("capability failed", extra={"run_id": run.run.id})

    async def fail(self, task: Task) -> None:
        """Tell of a run that failed in another way than by an ending."""
        for fail in self._fail:
            await fail(task)

    @property
    def reviews_calls(self) -> bool:
        """Whether a capability decides about calls."""
        return bool(self._review_calls)

    async def review_calls(
        self, run: RunContext, turn: Turn, calls: Sequence[ReviewedCall]
    ) -> dict[str, HookOutcome]:
        """Return the decisions about calls, by call_id: the strictest one about each."""
        decisions: dict[str, HookOutcome] = {}
        for review in self._review_calls:
            for call_id, outcome in (await review(run, turn, calls)).items():
                known = decisions.get(call_id)
                if known is None or _STRICTNESS[outcome.decision] > _STRICTNESS[known.decision]:
                    decisions[call_id] = outcome
        return decisions

    async def around_call(self, call: RunCall, call_next: CallNext) -> CallReport:
        """Execute a call inside of all capabilities; the first one is the outermost."""
        for around in reversed(self._around_call):
            call_next = partial(around, call, call_next)
        return await call_next()

    async def observe(self, run: RunContext, moment: Moment) -> None:
        """Tell of a moment of a run."""
        for observe in self._observe:
            await observe(run, moment)

    async def leave(self, run_id: RunId, departure: Departure) -> None:
        """Release what this process holds for a run."""
        for leave in self._leave:
            await leave(run_id, departure)


def _naming(members: tuple[Capability, ...], point: Callable[..., Any]) -> tuple[Any, ...]:
    """Return the methods of the members that name a point."""
    name = point.__name__
    return tuple(getattr(each, name) for each in members if getattr(type(each), name) is not point)
