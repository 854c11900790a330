"""The engine: performs the model calls and tool calls that a Turn asks for."""

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC
from functools import partial
from typing import assert_never

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple

from internal.agent.app.background_task import run_to_completion
from internal.agent.app.events.writer import Emit, ExtraWork, join_work
from internal.agent.app.prompt.context_use import measure_context
from internal.agent.app.runs.call_repairs import CallRepairCounts
from internal.agent.app.runs.context import (
    RunContext,
    RunServices,
    create_workspace,
)
from internal.agent.app.runs.tool_execution import ToolExecutor
from internal.agent.app.subtasks.progress import SubtaskProgress
from internal.agent.app.subtasks.results import completed_event, load_results
from internal.agent.capabilities.capability import ReceivedParts, ReviewedCall, UserMessage
from internal.agent.capabilities.registry import Capabilities
from internal.agent.domain.delegation.reports import (
    TASK_ENDS_CHANNEL,
    SubtaskResult,
    end_message,
)
from internal.agent.domain.delegation.state import SubtaskState
from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelRejected,
    ModelUnreachable,
)
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import (
    Event,
    InputReceived,
    ModelRetry,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    OutputDelta,
    OutputSummary,
    Partial,
    PartsLeftOut,
)
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import (
    Message,
    Part,
    Text,
    ToolCall,
    user_message,
    without_call_ids,
)
from internal.agent.domain.own_commands import shown_commands
from internal.agent.domain.react.call_repair import repair_calls
from internal.agent.domain.react.call_review import are_short
from internal.agent.domain.react.closing_prompts import (
    CONTINUE_PROMPT,
    DAILY_LIMIT,
    DAILY_LIMIT_CODE,
    PAUSED_PROMPT,
    TREE_LIMIT,
)
from internal.agent.domain.react.context_window import (
    message_budget,
    reserved_output,
    weigh,
)
from internal.agent.domain.react.gates import FindToolsCall
from internal.agent.domain.react.hook_outcomes import HookOutcome
from internal.agent.domain.react.steps import (
    Act,
    Ask,
    AwaitTasks,
    Done,
    ModelSpending,
    Pause,
)
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.text import MAX_JSON_BYTES, truncate_json
from internal.agent.domain.usage import ContextUse
from internal.agent.ports.llm import (
    MAX_REPLY_CHARACTERS,
    ModelBook,
    ModelClient,
    ModelLimits,
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    ReplyRevised,
    RetryScheduled,
    StreamRestarted,
    TextDelta,
)
from internal.agent.ports.runtime import Clock
from internal.agent.store.chats import Steering
from internal.agent.store.database import Write

MAX_THINKING_BYTES = 8_000
"""How much of the reasoning before a reply is stored with its event, in bytes of JSON."""
MAX_CONTINUATIONS = 3
"""Requests that continue one text reply that was cut at the output limit."""
MAX_ORDERED_CALLS = 64
"""Calls of a reply of which the event tells the order."""
MAX_CALL_IDS_BYTES = MAX_ORDERED_CALLS * 67
"""Bytes of JSON that their ids take."""

logger = logging.getLogger(__name__)


class ReplyStream:
    """Emits the deltas of one model reply; answer and reasoning are counted separately."""

    def __init__(self, emit: Emit, iteration: int, clock: Clock) -> None:
        self.node_id = f"iter:{iteration}:say"
        self.thinking_seconds = 0.0
        self._reasoning_id = f"iter:{iteration}:think"
        self._emit = emit
        self._clock = clock
        self._thinking_since: float | None = None
        self._counts: dict[str, int] = {}
        self._kept = ""
        self._told: set[RequestLoss] = set()

    def keep(self, text: str) -> None:
        """Keep the text so far: the next reply continues it."""
        self._kept = text

    async def consume(self, stream: AsyncGenerator[ModelStreamEvent, None]) -> ModelResponse:
        """Emit the text as it arrives and return the complete response.

        Raises:
            ModelError: the model failed after all retries.
        """
        async with aclosing(stream):
            async for event in stream:
                match event:
                    case TextDelta():
                        await self._emit_delta(event)
                    case ReplyRevised(reasoning, answer):
                        await self._revise(reasoning, answer)
                    case StreamRestarted():
                        await self._restart()
                    case RetryScheduled() as again:
                        await self._emit(
                            ModelRetry(
                                node_id=self.node_id,
                                reason=again.reason,
                                seconds=math.ceil(again.seconds),
                                attempt=again.attempt,
                                attempts=again.attempts,
                                cause=again.cause,
                            )
                        )
                    case RequestLoss():
                        await self.tell(event)
                    case ModelResponse():
                        self._measure_thinking(reasoning=False)
                        return event
        raise ModelUnreachable("The model's reply ended early.")

    def _measure_thinking(self, *, reasoning: bool) -> None:
        """Add the time since the reasoning began, once it has ended."""
        if reasoning:
            self._thinking_since = self._thinking_since or self._clock.monotonic()
        elif self._thinking_since is not None:
            self.thinking_seconds += self._clock.monotonic() - self._thinking_since
            self._thinking_since = None

    async def _emit_delta(self, text: TextDelta) -> None:
        self._measure_thinking(reasoning=text.reasoning)
        node_id = self._reasoning_id if text.reasoning else self.node_id
        k = self._counts[node_id] = self._counts.get(node_id, 0) + text.n
        if text.reasoning:
            delta = OutputDelta(node_id=node_id, k=k, n=text.n, text=text.text, reasoning=True)
        else:
            delta = OutputDelta(node_id=node_id, k=k, n=text.n, text=text.text)
        await self._emit(delta)

    async def _revise(self, reasoning: str, answer: str) -> None:
        """Replace the text so far. `k` is not 0, which would say that the connection broke."""
        texts = {self._reasoning_id: reasoning, self.node_id: self._kept + answer}
        partials: list[Partial] = []
        for node_id, text in texts.items():
            if text or node_id in self._counts:
                k = self._counts[node_id] = max(self._counts.get(node_id, 0), 1)
                partials.append(Partial(node_id=node_id, k=k, text=text))
        await self._emit(*partials)

    async def tell(self, left_out: RequestLoss) -> None:
        """Report a part left out for the model; once, also if the request is repeated."""
        if left_out not in self._told:
            self._told.add(left_out)
            what, count, name = astuple(left_out)
            await self._emit(
                PartsLeftOut(node_id=self.node_id, what=what, count=count, tool_name=name)
            )

    async def _restart(self) -> None:
        """Take back the text of an attempt that failed halfway."""
        self._counts = dict.fromkeys(self._counts, 0)
        if self._kept:
            self._counts[self.node_id] = 1
        texts = {self.node_id: self._kept}
        partials = [
            Partial(node_id=node_id, k=k, text=texts.get(node_id, ""))
            for node_id, k in self._counts.items()
        ]
        if partials:
            await self._emit(*partials)


class ReactEngine:
    """Performs the model calls and tool calls that a Turn asks for."""

    def __init__(
        self,
        services: RunServices,
        model: ModelClient,
        book: ModelBook,
        *,
        tools: ToolExecutor,
        capabilities: Capabilities,
        repairs: CallRepairCounts | None = None,
    ) -> None:
        self._model = model
        self._book = book
        self._repairs = repairs or CallRepairCounts()
        self._tools = tools
        self._services = services
        self._database = services.database
        self._stores = services.stores
        self._clock = services.clock
        self._capabilities = capabilities

    async def solve(
        self, context: RunContext, turn: Turn, *, paused: bool = False, has_steering: bool = True
    ) -> Pause | AwaitTasks | Done:
        """Drive the Turn until it pauses, waits for tasks or is done; every iteration is a node.

        With `paused` the run continues after a pause, in the iteration that asked. Without
        `has_steering` no message waited for it a moment ago.

        Raises:
            ModelError: the model failed after all retries.
            StoreError, LeaseLost: events cannot be stored any more.
            RunHandedOver: the files of the session are on another host.
        """
        delivered: set[int] = set()
        finished = turn.iteration - (paused or bool(turn.calls))
        await self._continue_iteration(context, turn, paused=paused)
        started_at, tokens, tools = self._clock.monotonic(), 0, 0
        progress = SubtaskProgress(
            context.run,
            context.stream.emit,
            database=self._database,
            stores=self._stores,
            clock=self._clock,
        )
        while True:
            if turn.iteration > finished and not turn.calls:
                finished = turn.iteration
                done = NodeCompleted(
                    node_id=f"iter:{finished}",
                    kind="iteration",
                    duration_ms=self._elapsed_ms(started_at),
                    tokens_used=tokens,
                    tools_run=tools,
                )
                await context.stream.defer(done, turn=turn, also=self._progress(context))
            match turn.next():
                case Ask() if limit := await self._reached_limit(context, turn):
                    turn.end("budget_exceeded", *limit)
                case Ask(_, final):
                    is_known, has_steering = not has_steering, True
                    if (
                        final
                        or is_known
                        or not await self._deliver_steering(context, turn, delivered)
                    ):
                        started_at, tools = self._clock.monotonic(), 0
                        tokens = (await self._call_model(context, turn)).usage.total
                case Act(calls):
                    tools += len(calls)
                    await progress.report(turn, calls)
                    await self._call_tools(context, turn, calls)
                case Pause():
                    await self._preview_calls(context, turn)
                    if turn.question is not None:
                        return Pause(turn.question)
                case (AwaitTasks() | Done()) as end:
                    return end
                case _ as never:
                    assert_never(never)

    async def _reached_limit(self, context: RunContext, turn: Turn) -> tuple[str, str] | None:
        """Return the sentence and the code of a limit beyond the run that is used up, if any."""
        if await self._is_over_daily_limit(context):
            return DAILY_LIMIT, DAILY_LIMIT_CODE
        return (TREE_LIMIT, "") if await self._is_over_tree_limit(context, turn) else None

    async def _is_over_daily_limit(self, context: RunContext) -> bool:
        """Return True if the person whose task it is may not use the model any more today.

        Runs of one person at the same time exceed the limit by at most one model call each.
        """
        limits, principal = context.task.spec.limits, context.task.origin.principal
        if not limits.has_daily_limit:
            return False
        today = self._clock.now().astimezone(UTC).date().isoformat()
        used = await self._database.read(
            partial(self._stores.usage.get_of_person, principal, today), is_short=True
        )
        return used.exceeds(limits)

    async def _is_over_tree_limit(self, context: RunContext, turn: Turn) -> bool:
        """Return True if a task and its subtasks have used up the limit of the outermost one.

        Those that run at the same time exceed it by at most one model call each.
        """
        place, limit = context.run.subtask, context.task.spec.limits.max_cost
        root = context.task.id
        if place is not None:
            root, limit = place.root_task_id, place.max_cost
        elif not ((known := SubtaskState.of(turn.states)) and known.creates):
            return False
        if limit is None:
            return False
        return await self._database.read(partial(self._stores.subtasks.get_cost, root)) > limit

    def _save_usage(
        self,
        context: RunContext,
        spending: Mapping[str, ModelSpending],
        origin: str,
        repairs: Sequence[str],
    ) -> Write[list[EventRecord]]:
        principal, now = context.task.origin.principal, rfc3339(self._clock.now())
        for model, spent in spending.items():
            yield from self._stores.usage.save(
                context.run, principal, model, usage=spent.usage, cost=spent.cost, now=now
            )
        return (yield from self._save_repairs(origin, repairs)) if repairs else []

    def _save_repairs(self, origin: str, kinds: Sequence[str]) -> Write[list[EventRecord]]:
        provider, _, model = origin.partition(":")
        now = rfc3339(self._clock.now())
        yield from self._stores.call_repairs.add(provider, model, kinds, now=now)
        return []

    def _progress(self, context: RunContext) -> ExtraWork | None:
        """Return the statements that forget the failed starts before this one, if there are any.

        Only a whole iteration counts: a run that kills its process gets as far as the call that
        does it every time.
        """
        run = context.run
        return partial(self._record_progress, run.id) if run.crashes or run.attempt > 1 else None

    def _record_progress(self, run_id: RunId) -> Write[list[EventRecord]]:
        yield from self._stores.runs.record_progress(run_id)
        return []

    async def _continue_iteration(self, context: RunContext, turn: Turn, *, paused: bool) -> None:
        """Announce the iteration whose calls a former process left; a pause did not end it."""
        if turn.calls and not paused:
            await context.stream.emit(_iteration_started(turn.iteration))

    async def _call_tools(
        self, context: RunContext, turn: Turn, calls: tuple[ToolCall, ...]
    ) -> None:
        if any(turn.config.uses_files(call.name) for call in calls):
            await create_workspace(self._services, context)
        await self._tools.run(context, turn, calls)

    async def _preview_calls(self, context: RunContext, turn: Turn) -> None:
        """Add previews to an approval question; calls that would fail are not asked about."""
        if turn.question is not None and turn.question.kind == "approval":
            await create_workspace(self._services, context)
        if events := await self._tools.preview(context, turn):
            await context.stream.emit(*events, turn=turn)

    async def _deliver_steering(self, context: RunContext, turn: Turn, delivered: set[int]) -> bool:
        """Add new messages of people to the Turn; returns False if there are none.

        `delivered` holds the messages of this attempt: the latest may not be stored yet.
        """
        undelivered = await self._database.read(
            partial(self._stores.inbox.list_undelivered, context.ids.run_id)
        )
        if all(message.number in delivered for message in undelivered):
            return False
        begin = partial(self._stores.inbox.begin_delivery, context.ids.run_id)
        undelivered = await self._database.write(begin)
        messages = [message for message in undelivered if message.number not in delivered]
        ends: dict[int, list[SubtaskResult]] = {}
        inputs: dict[int, ReceivedParts] = {}
        for message in messages:
            if message.channel == TASK_ENDS_CHANNEL:
                ends[message.number] = await self._load_end(message)
                continue
            sent = UserMessage(turn.config.workspace, message.text, message.attachments)
            inputs[message.number] = await self._capabilities.receive(context, sent)
        # Nothing is awaited until the entry is queued: a stop in between would leave a message in
        # the history of the run that is given back as well.
        events: list[Event] = []
        for message in messages:
            delivered.add(message.number)
            if message.number in ends:
                events += _deliver_end(turn, ends[message.number])
                continue
            found = inputs[message.number]
            turn.add_user_message(message.model_text, found.parts)
            commands, shown_bytes = shown_commands(message.text, message.prompt)
            received = InputReceived(
                task=truncate_json(message.text, MAX_JSON_BYTES - shown_bytes),
                channel=message.channel,
                sender=message.principal,
                attachments=found.attachments,
                steer=True,
                commands=commands or UNSET,
            )
            events += (received, *found.events)
        work = partial(self._mark_delivered, messages)
        has_files = any(message.attachments for message in messages)  # as in preparation
        store = context.stream.commit if has_files else context.stream.emit
        await store(*events, turn=turn, also=work)
        return True

    async def _load_end(self, message: Steering) -> list[SubtaskResult]:
        task_id = TaskId(message.message_id)
        return await self._database.read(partial(load_results, self._stores, [task_id]))

    def _mark_delivered(self, messages: list[Steering]) -> Write[list[EventRecord]]:
        yield from self._stores.inbox.mark_delivered([message.number for message in messages])
        return []

    async def _call_model(self, context: RunContext, turn: Turn) -> ModelResponse:
        iteration = turn.iteration + 1
        await context.stream.defer(_iteration_started(iteration))
        started_at = self._clock.monotonic()
        stream = ReplyStream(context.stream.emit, iteration, self._clock)
        try:
            response = await self._request_reply(context, turn, stream)
            reply, kept, kept_work, lost = await self._capabilities.after_reply(context, response)
            for each in lost:
                await stream.tell(each)
        except ModelError as error:
            failed = NodeFailed(
                node_id=stream.node_id,
                kind="generation",
                phase="think",
                error=truncate_json(str(error)),
                recoverable=False,
            )
            await context.stream.emit(failed)
            raise
        cost = self._book.prices.cost(reply.model, reply.usage)
        repaired = repair_calls(
            reply.parts, turn.config.tools, turn.config.deferred, is_cut=reply.stop == "length"
        )
        repairs = (*reply.repairs, *repaired.kinds)
        self._repairs.add(reply.model, repairs)
        message = Message("assistant", repaired.parts)
        thinking = truncate_json(message.thinking, MAX_THINKING_BYTES)
        max_bytes = MAX_JSON_BYTES - MAX_THINKING_BYTES * bool(thinking)
        max_bytes -= MAX_CALL_IDS_BYTES * (len(message.calls) > 1)
        summary = OutputSummary(
            node_id=stream.node_id,
            iteration=iteration,
            content=truncate_json(message.text, max_bytes),
            tool_call_count=len(message.calls),
            llm_duration_ms=self._elapsed_ms(started_at),
            llm_request_id=reply.request_id,
            llm_model=reply.model,
            usage=reply.usage,
            thinking=thinking,
            thinking_ms=round(stream.thinking_seconds * 1000),
            context=self._measure_context(turn),
        )
        parts = without_call_ids(repaired.parts)
        hooks = await self._review_calls(context, turn, parts)
        add = partial(
            turn.add_reply,
            parts,
            reply.model,
            reply.usage,
            cost,
            stop=reply.stop,
            hooks=hooks,
            origin=reply.origin,
        )
        searches = any(call.name == FindToolsCall.tool for call in message.calls)
        is_quick = are_short(message.calls) and not searches
        # a cancellation waits for the thread: nothing else may use the Turn meanwhile
        events = add() if is_quick else await run_to_completion(add)
        if turn.outcome is None and len(message.calls) > 1:
            shown = turn.reply_call_ids[:MAX_ORDERED_CALLS]
            summary = msgspec.structs.replace(summary, call_ids=shown)
        if turn.outcome is not None and reply.instead_of:
            turn.outcome = msgspec.structs.replace(
                turn.outcome, model=reply.model, instead_of=reply.instead_of
            )
        if turn.outcome is not None:  # the end of the run is stored at once, with its usage
            count = partial(self._save_repairs, reply.origin, repairs) if repairs else None
            also = join_work(count, kept_work)
            await context.stream.defer(summary, *kept, *events, turn=turn, also=also)
            return reply
        usage = partial(self._save_usage, context, turn.spending, reply.origin, repairs)
        # the check before the next call, in this run or another one, must see the usage
        limited = context.task.spec.limits.has_daily_limit or context.task.is_subtask
        put = context.stream.commit if limited else context.stream.defer
        await put(summary, *kept, *events, turn=turn, also=join_work(usage, kept_work))
        return reply

    async def _review_calls(
        self, context: RunContext, turn: Turn, parts: Sequence[Part]
    ) -> Mapping[str, HookOutcome]:
        """Return the decisions of capabilities about the executable calls of a reply."""
        if not self._capabilities.reviews_calls or turn.closing_reason is not None:
            return {}
        known = ((call, turn.config.tool(call.name)) for call in turn.identify_calls(parts))
        calls = [
            ReviewedCall(call, spec)
            for call, spec in known
            if spec is not None and spec.risk != "ui" and call.malformed is None
        ]
        return await self._capabilities.review_calls(context, turn, calls)

    async def _request_reply(
        self, context: RunContext, turn: Turn, stream: ReplyStream
    ) -> ModelResponse:
        """Request a reply. A text that is cut at the output limit is continued, as is a pause.

        A continuation that fails leaves the text as it is: cut.
        """
        reply = await self._begin_reply(context, turn, stream)
        for _ in range(MAX_CONTINUATIONS):
            prompt = _continuation(reply)
            if prompt is None:
                break
            text = Message("assistant", reply.parts).text
            stream.keep(text)
            cut = (Message("assistant", (Text(text),)), user_message(prompt))
            try:
                more = await self._ask(context, turn, stream, *cut)
            except ModelError as error:
                fields = {"run_id": context.run.id, "error": str(error)}
                logger.warning("cut reply not continued", extra=fields)
                break
            reply = msgspec.structs.replace(
                more,
                parts=(*reply.parts, *more.parts),
                usage=reply.usage + more.usage,
                pictures=(*reply.pictures, *more.pictures),
            )
        return reply

    async def _begin_reply(
        self, context: RunContext, turn: Turn, stream: ReplyStream
    ) -> ModelResponse:
        """Request a reply; if the provider refuses the context, retry with less.

        A context that is too long is shortened once. Parts that a content filter may have refused
        are left out step by step, down to the task.
        """
        limits = self._book.limits(turn.config.model)
        budget = _message_budget(limits, turn, limits.max_output_tokens)
        is_shortened = False
        omitted = turn.fit_context(budget)
        if omitted is not None:
            await context.stream.emit(omitted, turn=turn)
        while True:
            try:
                return await self._ask(context, turn, stream)
            except ContextTooLong:
                omitted = None if is_shortened else turn.fit_context(budget, refused=True)
                if omitted is None:
                    raise
                is_shortened = True
                await context.stream.emit(omitted, turn=turn)
            except ModelRejected as error:
                refusal = error.refusal if error.is_filtered else None
                left_out = turn.leave_out_refused(refusal.name) if refusal else None
                if left_out is None:
                    raise
                await stream.tell(left_out)

    async def _ask(
        self, context: RunContext, turn: Turn, stream: ReplyStream, *more: Message
    ) -> ModelResponse:
        """Send the next request. The run stays with the fallback that answers."""
        request = await self._request(context, turn, *more)
        reply = await stream.consume(self._model.stream(request))
        turn.fallback = reply.origin if reply.instead_of else ""
        return reply

    async def _request(self, context: RunContext, turn: Turn, *more: Message) -> ModelRequest:
        """Return the next request; `more` follows the messages of the Turn."""
        ask = turn.next()
        if not isinstance(ask, Ask):
            raise TypeError(f"the Turn asks for {type(ask).__name__}, not for the model")
        limits, messages = self._book.limits(turn.config.model), ask.messages
        if more:
            messages = messages.followed_by([*map(weigh, more)])
        available = _message_budget(limits, turn, 0) - messages.tokens
        reserved = reserved_output(limits.context_window, limits.max_output_tokens)
        request = ModelRequest(
            model=turn.config.model,
            system=turn.config.system,
            messages=messages,
            tools=turn.config.tools,
            tool_choice="none" if ask.final else "auto",
            max_output_tokens=min(limits.max_output_tokens, max(available, reserved)),
            temperature=self._book.temperature,
            patience_seconds=context.deadline - asyncio.get_running_loop().time(),
            origin=turn.fallback,
        )
        return await self._capabilities.before_request(context, turn, request)

    def _measure_context(self, turn: Turn) -> ContextUse | UnsetType:
        """Return the content of the request whose reply is not added yet."""
        ask, limits = turn.next(), self._book.limits(turn.config.model)
        return measure_context(turn.config, ask.messages, limits) if isinstance(ask, Ask) else UNSET

    def _elapsed_ms(self, started_at: float) -> int:
        return round((self._clock.monotonic() - started_at) * 1000)


def _deliver_end(turn: Turn, results: Sequence[SubtaskResult]) -> list[Event]:
    """Tell the model the end of a subtask, unless it knows it."""
    events: list[Event] = []
    for result in results:
        known = SubtaskState.of(turn.states) or SubtaskState()
        if result.task.id not in known.told:
            turn.remember(known.with_told([result.task.id]))
            turn.add_user_message(end_message(result))
            events.append(completed_event(result))
    return events


def _message_budget(limits: ModelLimits, turn: Turn, output: int) -> int:
    return message_budget(
        turn.config.system,
        turn.config.tools,
        context_window=limits.context_window,
        max_output_tokens=output,
    )


def _continuation(reply: ModelResponse) -> str | None:
    """Return the prompt that makes the model continue a reply, None if the reply is whole."""
    message = Message("assistant", reply.parts)
    if message.calls or not message.text.strip() or len(message.text) >= MAX_REPLY_CHARACTERS:
        return None
    return {"length": CONTINUE_PROMPT, "paused": PAUSED_PROMPT}.get(reply.stop)


def _iteration_started(number: int) -> NodeStarted:
    return NodeStarted(node_id=f"iter:{number}", kind="iteration", iteration=number)
