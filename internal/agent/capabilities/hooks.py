"""Hooks: programs and services of the operator that decide about calls and hear of runs."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from internal.agent.app.runs.context import (
    RunContext,
    RunServices,
    create_workspace,
    find_workspace,
)
from internal.agent.capabilities.capability import (
    CallNext,
    CallReport,
    Capability,
    Moment,
    ReviewedCall,
    RunCall,
    RunEnded,
    RunPaused,
    RunStarted,
)
from internal.agent.domain.events.types import DiagnosticError
from internal.agent.domain.react.hook_outcomes import HookOutcome
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.secrets import mask_secrets
from internal.agent.domain.text import truncate_json
from internal.agent.ports.hooks import (
    HookEnd,
    HookEvent,
    HookInput,
    HookQuestion,
    HookResponse,
    Hooks,
)

MAX_HOOKED_CALLS = 8
"""Calls that hooks are asked about at the same time."""


class HooksCapability(Capability):
    """Asks the hooks of the settings before and after calls, and tells them of moments."""

    name = "hooks"

    def __init__(self, hooks: Hooks, services: RunServices) -> None:
        self._hooks = hooks
        self._services = services

    async def review_calls(
        self, run: RunContext, turn: Turn, calls: Sequence[ReviewedCall], /
    ) -> Mapping[str, HookOutcome]:
        """Ask the hooks about each call."""
        outcomes: dict[str, HookOutcome] = {}
        if not self._hooks.watches("before_tool"):
            return outcomes
        await create_workspace(self._services, run)
        slots = asyncio.Semaphore(MAX_HOOKED_CALLS)

        async def ask(each: ReviewedCall) -> None:
            given = _input(
                run,
                "before_tool",
                turn.config.workspace,
                tool_name=each.call.name,
                tool_use_id=each.call.call_id,
                tool_input=each.call.arguments,
            )
            async with slots:
                outcomes[each.call.call_id] = await self._hooks.before_call(given, each.spec)

        async with asyncio.TaskGroup() as tasks:
            for each in calls:
                tasks.create_task(ask(each))
        return outcomes

    async def around_call(self, call: RunCall, call_next: CallNext, /) -> CallReport:
        """Show the result to the hooks and append their additions."""
        report = await call_next()
        if not self._hooks.watches("after_tool"):
            return report
        given = _input(
            call.run,
            "after_tool",
            call.turn.config.workspace,
            tool_name=call.call.name,
            tool_use_id=call.call.call_id,
            tool_input=call.call.arguments,
            tool_response=HookResponse(text=report.text, failed=report.failed),
        )
        notes = await self._hooks.after_call(given, call.spec)
        problems = (
            DiagnosticError(phase="hook", error=truncate_json(each), call_id=call.call.call_id)
            for each in notes.problems
        )
        return msgspec.structs.replace(
            report,
            additions=(mask_secrets(notes.context), *report.additions),
            events=(*problems, *report.events),
        )

    async def observe(self, run: RunContext, moment: Moment, /) -> None:
        """Tell the hooks of a moment; each takes at most its timeout."""
        match moment:
            case RunStarted():
                await self._tell(run, "run_started", prompt=run.task.instruction)
            case RunPaused(pause=pause):
                asked = pause.question
                question = HookQuestion(id=asked.id, kind=asked.kind, title=asked.title)
                await self._tell(run, "question_asked", question=question)
            case RunEnded(outcome=end):
                result = HookEnd(stop_reason=end.stop_reason, answer=end.answer, error=end.error)
                await self._tell(run, "run_ended", result=result)

    async def _tell(self, run: RunContext, event: HookEvent, **content: Any) -> None:
        if self._hooks.watches(event):
            await create_workspace(self._services, run)
            workspace = await find_workspace(self._services, run)
            await self._hooks.observe(_input(run, event, workspace, **content))


def _input(run: RunContext, event: HookEvent, workspace: str, **content: Any) -> HookInput:
    """Return the input for a hook of a run."""
    ids, origin = run.ids, run.task.origin
    return HookInput(
        hook_event_name=event,
        session_id=ids.session_id,
        task_id=ids.task_id,
        run_id=ids.run_id,
        cwd=workspace,
        channel=origin.channel,
        chat=origin.chat,
        person=origin.principal,
        **content,
    )
