"""Trials of webhooks and hooks: a signed test event, and a question about an example."""

import time
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from ksuid import Ksuid

from internal.agent.domain.events.envelope import VERSION, rfc3339
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.permissions.rules import split_rule
from internal.agent.domain.secrets import mask_secrets
from internal.agent.domain.text import truncate
from internal.agent.ports.hooks import HookEnd, HookInput, HookQuestion, HookResponse
from internal.agent.ports.runtime import Clock
from internal.egress.messages import SessionResponse
from internal.hooks.answer import HookAnswer, HookFailed
from internal.hooks.runner import ask_hook
from internal.hooks.signed_post import SignedPoster
from internal.settings.hooks import HookSettings, WebhookSettings

TEST_EVENT = "webhook.test"
"""The name of the event that a trial sends. It is never stored."""
MAX_WORDS_CHARACTERS = 300

Outcome = Literal["accepted", "rejected", "failed", "pass", "ask", "refuse"]


class Trial(NamedTuple):
    """The outcome of a trial.

    A webhook has accepted or rejected the event, and a hook has decided as about a call; either
    has failed if it gave no usable answer.

    Attributes:
        status: The status of a response, 0 without one.
        words: The reason of a failure or a decision, or the beginning of a response.
        location: The address to which a response redirects, "" for none.
        seconds: The time until the answer.
    """

    outcome: Outcome
    seconds: float
    status: int = 0
    words: str = ""
    location: str = ""


async def try_webhook(webhook: WebhookSettings, poster: SignedPoster, clock: Clock) -> Trial:
    """Send a test event to a receiver, signed like every event."""
    event_id = f"evt-{Ksuid()}-test"
    begun = time.monotonic()
    try:
        response = await poster.post(
            webhook.url,
            msgspec.json.encode(_test_event(event_id, clock)),
            message_id=event_id,
            secret=webhook.secret,
            timeout_seconds=webhook.timeout_seconds,
        )
    except HookFailed as failure:
        return Trial("failed", time.monotonic() - begun, words=mask_secrets(str(failure)))
    return _trial_of(response, time.monotonic() - begun)


async def try_hook(hook: HookSettings, poster: SignedPoster, folder: Path) -> Trial:
    """Ask a hook about an example of its event, as it would be asked in a run.

    The hook reads `test: true`, and may do anything with the example.
    """
    begun = time.monotonic()
    try:
        answer = await ask_hook(hook, _example(hook, str(folder)), folder=folder, poster=poster)
    except HookFailed as failure:
        return Trial("failed", time.monotonic() - begun, words=mask_secrets(str(failure)))
    return Trial(answer.decision, time.monotonic() - begun, words=mask_secrets(_words(answer)))


def _trial_of(response: SessionResponse, seconds: float) -> Trial:
    is_accepted = response.is_success
    text = "" if is_accepted else response.body.decode("utf-8", "replace").strip()
    return Trial(
        "accepted" if is_accepted else "rejected",
        seconds,
        response.status,
        mask_secrets(truncate(text, MAX_WORDS_CHARACTERS)),
        response.headers.get("location", ""),
    )


def _words(answer: HookAnswer) -> str:
    return answer.reason or answer.context


def _test_event(event_id: str, clock: Clock) -> dict[str, Any]:
    """Return an envelope without a run."""
    return {
        "version": VERSION,
        "event_id": event_id,
        "seq": 1,
        "timestamp": rfc3339(clock.now()),
        "session_id": "",
        "task_id": "",
        "run_id": "",
        "agent_level": "core",
        "correlation_id": "",
        "log_id": "",
        "event": TEST_EVENT,
        "is_subtask": False,
        "payload": {},
    }


def _example(hook: HookSettings, folder: str) -> HookInput:
    """Return the input of a hook in a trial: an example of its event without meaning."""
    given = HookInput(
        hook_event_name=hook.event,
        session_id=SessionId("session-test"),
        channel="cli",
        person="local",
        test=True,
    )
    if hook.event == "message_received":
        return msgspec.structs.replace(given, prompt="larkspur hooks test")
    more: dict[str, Any] = {"task_id": TaskId("task-test"), "run_id": RunId("run-test")}
    match hook.event:
        case "run_started":
            more["prompt"] = "larkspur hooks test"
        case "before_tool" | "after_tool":
            tool = "shell" if hook.match is None else split_rule(hook.match)[0]
            more["tool_name"], more["tool_use_id"] = tool, "call-test"
            more["tool_input"] = {"command": "true"} if tool == "shell" else {}
            if hook.event == "after_tool":
                more["tool_response"] = HookResponse(text="", failed=False)
        case "question_asked":
            more["question"] = HookQuestion(id="test", kind="clarify", title="larkspur hooks test")
        case "run_ended":
            more["result"] = HookEnd(stop_reason="final_answer", answer="", error="")
    return msgspec.structs.replace(given, cwd=folder, **more)
