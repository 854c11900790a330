"""Tool execution: runs the calls of one iteration concurrently; every call gets a result."""

import asyncio
import logging
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from internal.agent.app.events.writer import ExtraWork, SerializingEventListener
from internal.agent.app.files.artifacts import ArtifactRecorder, RecordedArtifacts
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.runs.context import RunContext, describe_error
from internal.agent.capabilities.capability import CallReport, RunCall
from internal.agent.capabilities.registry import Capabilities
from internal.agent.domain.errors import FilesUnavailable, ToolError
from internal.agent.domain.events.types import (
    Event,
    ToolCompleted,
    ToolProgress,
    ToolStarted,
)
from internal.agent.domain.ids import SessionId
from internal.agent.domain.messages import ToolCall, ToolResult
from internal.agent.domain.permissions.policy import (
    ApprovalNeeded,
    evaluate_call,
    network_of,
    outside_of,
)
from internal.agent.domain.questions import Preview
from internal.agent.domain.react.call_review import are_short, byte_budget, call_text
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.secrets import StreamMask, mask_secrets
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.tasks import Attachment
from internal.agent.domain.text import escape_invisible, truncate, truncate_arguments, truncate_json
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.runtime import Clock
from internal.agent.ports.tools import (
    CallContext,
    InputRequired,
    TasksAwaited,
    ToolOutcome,
    ToolSource,
)
from internal.agent.store.call_outputs import NO_OUTPUTS, CallOutputFile, CallOutputs
from internal.normal_forms.untrusted_marks import without_marks

PROGRESS_INTERVAL_SECONDS = 0.05
MAX_PROGRESS_CHARACTERS = 200_000
"""Live output of one call beyond this is dropped; its result contains the end."""
NOBODY_ASKED = "nobody can be asked in this run"
"""Why what a tool asked people during a call was declined."""
BEAT_SECONDS = 1.0
"""How often it is noted that a call runs."""


class ToolOutputStream:
    """Emits the live output of one call in batches, at most 20 times a second, and keeps its ends.

    The file outlasts the process: what is in it tells how far a call came that has no result.
    """

    def __init__(
        self, stream: SerializingEventListener, call_id: str, file: CallOutputFile
    ) -> None:
        self._stream = stream
        self._call_id = call_id
        self._file = file
        self._k = 0
        self._emitted = 0
        self._pieces: list[str] = []
        self._mask = StreamMask()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._beat = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._touch)

    @property
    def text(self) -> str:
        """The output so far; its middle may be left out."""
        return self._file.text

    def write(self, text: str) -> None:
        """Add output. Output beyond the limit is kept and not emitted."""
        if not text or self._is_closed:
            return
        self._pieces.append(self._mask.feed(text))
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(PROGRESS_INTERVAL_SECONDS if self._k else 0, self._flush)

    def close(self) -> None:
        """Emit the remaining output and ignore all later output."""
        self._is_closed = True
        self._beat.cancel()
        if self._timer is not None:
            self._pieces.append(self._mask.flush())
            self._timer.cancel()
            self._flush()

    def keep(self) -> None:
        """Close a call that is stopped, and note until when it ran."""
        self.close()
        self._file.touch()

    def _touch(self) -> None:
        self._file.touch()
        self._beat = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._touch)

    def _flush(self) -> None:
        self._timer = None
        joined, pieces = "".join(self._pieces), len(self._pieces)
        self._pieces.clear()
        self._file.write(joined)
        if self._emitted > MAX_PROGRESS_CHARACTERS:
            return
        self._k += pieces
        self._emitted += len(joined)
        text = joined[-MAX_PROGRESS_CHARACTERS // 8 :]
        # dropped when the queue is full: a gap in k tells subscribers to wait for the result
        self._stream.offer(ToolProgress(node_id=self._call_id, k=self._k, n=pieces, text=text))


logger = logging.getLogger(__name__)

MAX_RESULT_BYTES, MAX_METADATA_BYTES = 45_000, 12_000
"""Encoded size of a result and its metadata in one event, together below 64 KB."""

_TEXT = "text/plain; charset=utf-8"
MAX_RESULT_CHARACTERS = 30_000
"""Characters of a result that the model receives; the full text becomes an attachment."""


class _Batch:
    """The calls of one iteration: the slots for running calls, and the count of unfinished ones."""

    def __init__(self, calls: int, concurrency: int) -> None:
        self.slots = asyncio.Semaphore(concurrency)
        self._unfinished = calls

    def finish_call(self) -> bool:
        """Count a call as finished, and return True if it was the last one."""
        self._unfinished -= 1
        return self._unfinished == 0


class _Execution:
    """The products of the execution of a call, besides the report for the model."""

    def __init__(self) -> None:
        self.also: ExtraWork | None = None
        self.duration_ms = 0


class ExecutionLimits(NamedTuple):
    """The number of calls of a run that are executed at once, and the time limit of each."""

    concurrency: int
    timeout_seconds: float


class ToolExecutor:
    """Runs tool calls with a concurrency limit and a timeout; an exception becomes a result."""

    def __init__(
        self,
        tools: ToolSource,
        files: SessionFiles,
        artifacts: ArtifactRecorder,
        *,
        clock: Clock,
        limits: ExecutionLimits,
        capabilities: Capabilities,
        outputs: CallOutputs = NO_OUTPUTS,
    ) -> None:
        self._tools = tools
        self._outputs = outputs
        self._capabilities = capabilities
        self._files = files
        self._artifacts = artifacts
        self._clock = clock
        self._concurrency, self._timeout = limits

    async def run(self, context: RunContext, turn: Turn, calls: tuple[ToolCall, ...]) -> None:
        """Run the calls and add the results to the Turn.

        The start of each call is stored before it runs. A call that waits for a free slot has not
        started. A call that needs values from people gets no result yet: the Turn asks for them,
        and the call runs again. Files that the calls left for people are noted in the result that
        comes last.

        Raises:
            LeaseLost, StoreError: events cannot be stored any more.
        """
        await self._capabilities.before_batch(context, turn, calls)
        batch = _Batch(len(calls), self._concurrency)
        try:
            async with asyncio.TaskGroup() as tasks:
                for call in calls:
                    tasks.create_task(self._run_one(context, turn, call, batch))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures

    async def preview(self, context: RunContext, turn: Turn) -> list[Event]:
        """Add previews to the calls of an open approval question.

        A call that would fail is not asked about: it fails. The question is closed if it is about
        no other call. Returns the events of the failed calls.
        """
        if turn.question is None or turn.question.kind != "approval":
            return []
        share = byte_budget(len(turn.calls))
        previews: dict[str, Preview] = {}
        failures: dict[str, str] = {}
        started: list[Event] = []
        for call in turn.calls:
            if call.call_id not in turn.pending_approvals:
                continue
            try:
                previews[call.call_id] = await self._preview(context, turn.config, call, share)
            except ToolError as error:
                failures[call.call_id] = str(error)
                started.append(await self._started(context.ids.session_id, turn, call))
        events = [*started, *turn.fail_pending(failures)]
        turn.set_previews(previews)
        return events

    async def _preview(
        self, context: RunContext, config: RunConfig, call: ToolCall, share: int
    ) -> Preview:
        ids = context.ids
        where = CallContext(
            ids.session_id, ids.run_id, call.call_id, config.workspace, _ignore_output
        )
        diff = await self._tools.preview(where, call.name, call.arguments)
        spec = config.tool(call.name)
        shown, long_text = await asyncio.to_thread(_preview_texts, diff, call, spec, share=share)
        if long_text is None:
            return Preview(shown)
        kept = await self._keep(ids.session_id, "call.txt", _TEXT, long_text)
        return Preview(shown, *kept)

    async def _started(self, session_id: SessionId, turn: Turn, call: ToolCall) -> ToolStarted:
        """Return the start event; arguments too long for an event are attached in full."""
        shorten = partial(_shorten_arguments, call.arguments)
        arguments, whole = shorten() if are_short([call]) else await asyncio.to_thread(shorten)
        attachments: tuple[Attachment, ...] = ()
        if whole is not None:
            attachments = await self._keep(session_id, "arguments.json", "application/json", whole)
        spec = _spec(turn.config, call)
        return ToolStarted(
            call_id=call.call_id,
            tool_name=call.name,
            arguments=arguments,
            iteration=turn.iteration,
            risk=spec.risk,
            attachments=attachments,
            title=spec.server_title or UNSET,
        )

    async def _run_one(
        self, context: RunContext, turn: Turn, call: ToolCall, batch: _Batch
    ) -> None:
        async with batch.slots:
            reply, wait = turn.input_reply(call.call_id), turn.waits.get(call.call_id)
            starts: list[Event] = []
            if reply is None and wait is None:
                starts.append(await self._started(context.ids.session_id, turn, call))
            turn.mark_started([call.call_id])
            await context.stream.commit(*starts, turn=turn)
            made = _Execution()
            executed = RunCall(context, turn, call, _spec(turn.config, call))
            execute = partial(self._execute, executed, batch, made)
            try:
                report = await self._capabilities.around_call(executed, execute)
            except (InputRequired, TasksAwaited) as waits:
                batch.finish_call()
                dispatched = waits.events if isinstance(waits, TasksAwaited) else ()
                await context.stream.emit(*dispatched, turn=turn)
                return
            outcome = report.outcome
            text = "\n\n".join(filter(None, (report.text, *report.additions)))
            result = ToolResult(call.call_id, text, report.failed, outcome.images)
            events = turn.add_tool_result(result)
            shown = truncate_json(text, MAX_RESULT_BYTES)
            completed = ToolCompleted(
                call_id=call.call_id,
                tool_name=call.name,
                duration_ms=made.duration_ms,
                result="" if report.failed else shown,
                error=shown if report.failed else UNSET,
                attachments=outcome.attachments,
                metadata=truncate_arguments(outcome.metadata, MAX_METADATA_BYTES),
            )
            await context.stream.emit(completed, *report.events, *events, turn=turn, also=made.also)
            self._outputs.remove(context.ids.run_id, call.call_id)

    async def _execute(self, executed: RunCall, batch: _Batch, made: _Execution) -> CallReport:
        """Execute one call, or continue it, and keep its products.

        Raises:
            InputRequired, TasksAwaited: it waits, which the Turn has noted.
        """
        context, turn, call, _ = executed
        reply = turn.input_reply(call.call_id)
        started_at = self._clock.monotonic()
        error, outcome = "", ToolOutcome("")
        try:
            outcome = await self._call(context, turn, call)
        except InputRequired as needed:
            if turn.require_input(call.call_id, needed.request):
                raise
            error = f"{call.name} asked people too often in one call."
        except TasksAwaited as awaited:
            turn.await_tasks(call.call_id, awaited.wait)
            raise
        except ToolError as failure:
            error = str(failure)
        if reply is not None and not turn.config.people and not error:
            metadata = {**outcome.metadata, "declined": [NOBODY_ASKED]}
            outcome = msgspec.structs.replace(outcome, metadata=metadata)
        outcome = msgspec.structs.replace(outcome, text=mask_secrets(outcome.text))
        outcome = await self._attach_long_text(context.ids.session_id, outcome)
        made.duration_ms = round((self._clock.monotonic() - started_at) * 1000)
        recorded = await self._record_artifacts(
            context, turn, call, outcome, is_last=batch.finish_call()
        )
        made.also = recorded.also
        text = truncate(error or outcome.text, MAX_RESULT_CHARACTERS)
        note, events = mask_secrets(recorded.note), (*recorded.events, *outcome.events)
        return CallReport(text, bool(error), (note,), events, outcome)

    async def _record_artifacts(
        self,
        context: RunContext,
        turn: Turn,
        call: ToolCall,
        outcome: ToolOutcome,
        *,
        is_last: bool,
    ) -> RecordedArtifacts:
        """Record the files that a call shares; after the last call of a batch also new ones."""
        made = RecordedArtifacts()
        if outcome.shared is not None:
            made = await self._artifacts.record_shared(context, call, outcome.shared)
        if is_last:
            found = await self._artifacts.record_output(context, turn.config.workspace, call)
            made = made.joined(found)
        return made

    async def _call(self, context: RunContext, turn: Turn, call: ToolCall) -> ToolOutcome:
        """Run one call, or continue it with a reply or after a wait.

        Raises:
            InputRequired: it continues when people have answered.
            TasksAwaited: it continues when tasks have ended.
            ToolError: the call failed, timed out or crashed. The message is for the model.
        """
        config = turn.config
        spec = _spec(config, call)
        seconds = spec.timeout_seconds or self._timeout
        ids = context.ids
        file = self._outputs.open(ids.run_id, call.call_id)
        progress = ToolOutputStream(context.stream, call.call_id, file)
        where = CallContext(
            ids.session_id,
            ids.run_id,
            call.call_id,
            config.workspace,
            progress.write,
            partial(self._artifacts.store_file, ids.session_id),
            network_of(config.policy, spec, call.arguments),
            outside_of(config.policy, spec, call.arguments),
            context.task.spec,
            turn.input_reply(call.call_id),
            turn.waits.get(call.call_id),
            context.task.origin.principal,
            context.task.origin.is_private,
            _is_agreed(config, spec, call),
        )
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._tools.run(where, call.name, call.arguments)
        except (ToolError, InputRequired, TasksAwaited):
            raise
        except asyncio.CancelledError:
            progress.keep()
            raise
        except Exception as failure:
            if isinstance(failure, TimeoutError) and limit.expired():
                progress.close()
                error = f"{call.name} timed out after {seconds:g} s."
                raise ToolError("\n".join(filter(None, (progress.text, error)))) from failure
            # a crash is a result as well: the model can try something else
            logger.exception("tool crashed", extra={"run_id": ids.run_id, "tool": call.name})
            raise ToolError(_crash_message(call.name, failure)) from failure
        finally:
            progress.close()

    async def _attach_long_text(self, session_id: SessionId, outcome: ToolOutcome) -> ToolOutcome:
        """Attach the full text of a long result."""
        if len(outcome.text) <= MAX_RESULT_CHARACTERS:
            return outcome
        # people download it; the model has the marks around the part that it reads
        whole = without_marks(outcome.text).encode("utf-8", "replace")
        kept = await self._keep(session_id, "result.txt", _TEXT, whole)
        return msgspec.structs.replace(outcome, attachments=(*outcome.attachments, *kept))

    async def _keep(
        self, session_id: SessionId, name: str, media_type: str, content: bytes
    ) -> tuple[Attachment, ...]:
        """Store a text that is too long for an event; without the store only a part is kept."""
        try:
            return (await self._files.put(session_id, name, media_type, content),)
        except FilesUnavailable as error:
            details = {"session_id": session_id, "file": name, "error": str(error)}
            logger.warning("long text is not stored", extra=details)
            return ()


def _preview_texts(
    diff: str, call: ToolCall, spec: ToolSpec | None, *, share: int
) -> tuple[str, bytes | None]:
    """Return the diff for display, and the full text of a call too long for its question."""
    shown, text = truncate_json(escape_invisible(diff), share * 3 // 10), call_text(call, spec)
    is_long = truncate_json(text, share // 2) != text
    return shown, text.encode("utf-8", "replace") if is_long else None


def _is_agreed(config: RunConfig, spec: ToolSpec, call: ToolCall) -> bool:
    """Return True if a person agreed to a call that runs: neither its mode nor a rule allows it."""
    if spec.risk != "write":
        return False
    verdict = evaluate_call(config.policy, spec, call.arguments, isolated=config.isolated)
    return isinstance(verdict, ApprovalNeeded)


def _shorten_arguments(arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes | None]:
    """Return the arguments for an event; if they are too long for it, also all of them as JSON."""
    shown = truncate_arguments(arguments)
    return shown, None if shown == arguments else msgspec.json.encode(arguments)


def _spec(config: RunConfig, call: ToolCall) -> ToolSpec:
    """Return the specification of a call that passed the review, so its tool exists."""
    return next(spec for spec in config.all_tools if spec.name == call.name)


def _crash_message(tool: str, failure: Exception) -> str:
    if isinstance(failure, OSError):
        return f"{tool} failed. {describe_system_error(failure)}"
    return f"{tool} failed. {describe_error(failure)}"


def _ignore_output(_text: str) -> None:
    """Discard the live output of a preview."""
