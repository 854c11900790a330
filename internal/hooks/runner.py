"""Runs the hooks of the settings and joins their answers."""

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec
from ksuid import Ksuid

from internal.agent.domain.permissions.policy import matches_call
from internal.agent.domain.react.hook_outcomes import HookDecision, HookOutcome
from internal.agent.domain.secrets import mask_secrets
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.hooks import HookEvent, HookInput, HookNotes
from internal.hooks.answer import HookAnswer, HookFailed, parse_answer
from internal.hooks.command import ask_command
from internal.hooks.program import PinnedPrograms
from internal.hooks.signed_post import SignedPoster
from internal.settings.hooks import HookSettings

logger = logging.getLogger(__name__)


class HookRunner:
    """Asks hooks one after the other, in the order of the settings. Implements `Hooks`.

    Their programs are read now; a hook whose program has changed since then fails.

    Args:
        hooks: the hooks of the settings.
        folder: the working folder of commands.
        poster: sends requests to hooks that have an address.
    """

    def __init__(self, hooks: Sequence[HookSettings], folder: Path, poster: SignedPoster) -> None:
        self._hooks = hooks
        self._programs = [PinnedPrograms(hook.files) for hook in hooks]
        self._folder = folder
        self._poster = poster

    def watches(self, event: HookEvent, /) -> bool:
        """Return True if there is a hook for the event."""
        return any(hook.event == event for hook in self._hooks)

    async def receive_message(self, given: HookInput, /) -> str:
        """Return why a message is refused, "" if it is not."""
        for hook, programs in self._of("message_received"):
            try:
                answer = await self._ask(hook, programs, given)
            except HookFailed as failure:
                sentence = _failure(hook, failure)
                if hook.refuses_on_failure:
                    return f"Not accepted: {sentence}"
                continue
            if answer.decision == "refuse":
                return f"Not accepted: {_refusal(hook, answer)}"
        return ""

    async def before_call(self, given: HookInput, spec: ToolSpec, /) -> HookOutcome:
        """Ask the hooks for a call one after the other; a later one reads changed arguments."""
        decision: HookDecision = "pass"
        reasons: list[str] = []
        notes: list[str] = []
        changed = False
        for hook, programs in self._of("before_tool"):
            if not _matches(hook, given, spec):
                continue
            try:
                answer = await self._ask(hook, programs, given)
            except HookFailed as failure:
                notes.append(_failure(hook, failure))
                if hook.refuses_on_failure:
                    return HookOutcome("refuse", f"Not run: {notes[-1]}", notes=tuple(notes))
                continue
            if answer.decision == "refuse":
                return HookOutcome("refuse", f"{_refusal(hook, answer)}", notes=tuple(notes))
            if answer.arguments is not None and answer.arguments != given.tool_input:
                given = msgspec.structs.replace(given, tool_input=answer.arguments)
                changed = True
                notes.append(f"the hook {hook.title} changed the arguments of {spec.name}")
            if answer.decision == "ask":
                decision = "ask"
                reasons.append(f"The hook {hook.title} asks{_because(answer.reason)}")
        arguments = given.tool_input if changed else None
        return HookOutcome(decision, " ".join(reasons), arguments, tuple(notes))

    async def after_call(self, given: HookInput, spec: ToolSpec, /) -> HookNotes:
        """Show the result of a call to the hooks and return their additions for the model."""
        words: list[str] = []
        problems: list[str] = []
        for hook, programs in self._of("after_tool"):
            if not _matches(hook, given, spec):
                continue
            try:
                answer = await self._ask(hook, programs, given)
            except HookFailed as failure:
                problems.append(_failure(hook, failure))
                continue
            reason = answer.reason if answer.decision == "refuse" else ""
            if text := "\n".join(filter(None, (reason, answer.context))):
                words.append(f"[the hook {hook.title}: {text}]")
        return HookNotes("\n".join(words), tuple(problems))

    async def observe(self, given: HookInput, /) -> None:
        """Report an event to the hooks; their answers have no effect."""
        for hook, programs in self._of(given.hook_event_name):
            try:
                await self._ask(hook, programs, given)
            except HookFailed as failure:
                _failure(hook, failure)

    def _of(self, event: HookEvent) -> list[tuple[HookSettings, PinnedPrograms]]:
        pairs = zip(self._hooks, self._programs, strict=True)
        return [(hook, programs) for hook, programs in pairs if hook.event == event]

    async def _ask(
        self, hook: HookSettings, programs: PinnedPrograms, given: HookInput
    ) -> HookAnswer:
        await programs.check()
        return await ask_hook(hook, given, folder=self._folder, poster=self._poster)


async def ask_hook(
    hook: HookSettings, given: HookInput, *, folder: Path, poster: SignedPoster
) -> HookAnswer:
    """Ask one hook and return its answer; a command runs in the folder.

    Raises:
        HookFailed: it gives no usable answer.
    """
    body = msgspec.json.encode(given)
    if hook.url is None:
        return await ask_command(
            hook.command, body, folder=folder, timeout_seconds=hook.timeout_seconds
        )
    response = await poster.post(
        hook.url,
        body,
        message_id=f"hook-{Ksuid()}",
        secret=hook.secret,
        timeout_seconds=hook.timeout_seconds,
    )
    if not response.is_success:
        raise HookFailed(f"answered with the status {response.status}")
    return parse_answer(response.body)


def _matches(hook: HookSettings, given: HookInput, spec: ToolSpec) -> bool:
    return hook.match is None or matches_call(hook.match, spec, given.tool_input or {})


def _because(reason: str) -> str:
    return f": {mask_secrets(reason)}" if reason else "."


def _refusal(hook: HookSettings, answer: HookAnswer) -> str:
    return f"refused by hook {hook.title}{_because(answer.reason)}"


def _failure(hook: HookSettings, failure: HookFailed) -> str:
    """Log the failure of a hook and return its sentence."""
    sentence = mask_secrets(f"the hook {hook.title} {failure}.")
    logger.warning("hook failed", extra={"hook": hook.title, "reason": sentence})
    return sentence
