"""Hooks: programs and services of the operator that are notified of events or decide about them."""

from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.react.hook_outcomes import NO_OUTCOME, HookOutcome
from internal.agent.domain.tools import ToolSpec

HookEvent = Literal[
    "message_received", "run_started", "before_tool", "after_tool", "question_asked", "run_ended"
]


class HookResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call, as the model reads it."""

    text: str
    failed: bool


class HookQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that a run asks."""

    id: str
    kind: str
    title: str


class HookEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a run."""

    stop_reason: str
    answer: str
    error: str


class HookInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """JSON input of a hook; fields without a value are left out.

    `cwd` is the workspace of the run, `chat` the name of the chat across channels, `person` the
    principal of the task. `prompt` is the text of a message, and `tool_input` the arguments of a
    call. The names follow other agents where these have the field. `test` is true for an example
    with which a person tries the hook; nothing in it happens.
    """

    hook_event_name: HookEvent
    session_id: SessionId | None = None
    task_id: TaskId | None = None
    run_id: RunId | None = None
    cwd: str = ""
    channel: str = ""
    chat: str = ""
    person: str = ""
    prompt: str = ""
    tool_name: str = ""
    tool_use_id: str = ""
    tool_input: dict[str, Any] | None = None
    tool_response: HookResponse | None = None
    question: HookQuestion | None = None
    result: HookEnd | None = None
    test: bool = False


class HookNotes(NamedTuple):
    """`context` is text for the model, possibly ""; `problems` are sentences about failed hooks."""

    context: str = ""
    problems: tuple[str, ...] = ()


class Hooks(Protocol):
    """The hooks of the settings. No method raises an error because of a hook."""

    def watches(self, event: HookEvent, /) -> bool:
        """Return True if there is a hook for the event."""
        ...

    async def receive_message(self, given: HookInput, /) -> str:
        """Return why a message is refused, "" if it is not."""
        ...

    async def before_call(self, given: HookInput, spec: ToolSpec, /) -> HookOutcome:
        """Ask the hooks for a call one after the other; a later one reads changed arguments."""
        ...

    async def after_call(self, given: HookInput, spec: ToolSpec, /) -> HookNotes:
        """Show the result of a call to the hooks and return their additions for the model."""
        ...

    async def observe(self, given: HookInput, /) -> None:
        """Notify the hooks of an event; their answers have no effect."""
        ...


class NoHooks:
    """The hooks of settings that have none."""

    def watches(self, _event: HookEvent, /) -> bool:
        """Return False."""
        return False

    async def receive_message(self, _given: HookInput, /) -> str:
        """Accept the message."""
        return ""

    async def before_call(self, _given: HookInput, _spec: ToolSpec, /) -> HookOutcome:
        """Let the call pass."""
        return NO_OUTCOME

    async def after_call(self, _given: HookInput, _spec: ToolSpec, /) -> HookNotes:
        """Add nothing."""
        return HookNotes()

    async def observe(self, _given: HookInput, /) -> None:
        """Do nothing."""


NO_HOOKS = NoHooks()
