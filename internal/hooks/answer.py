"""The answer of a hook: the JSON that hooks of other agents print as well."""

from typing import Any, Literal, NamedTuple

import msgspec

from internal.agent.domain.react.hook_outcomes import HookDecision
from internal.agent.domain.text import replace_surrogates_in, truncate

MAX_ANSWER_BYTES = 1_000_000
MAX_REASON_CHARACTERS = 2_000
MAX_CONTEXT_CHARACTERS = 10_000


class HookFailed(Exception):
    """A hook gave no usable answer. The text completes "the hook NAME …"."""


class HookAnswer(NamedTuple):
    """The answer of one hook. `context` is text for the model."""

    decision: HookDecision = "pass"
    reason: str = ""
    arguments: dict[str, Any] | None = None
    context: str = ""


class _Specific(msgspec.Struct, rename="camel"):
    permission_decision: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_decision_reason: str | None = None
    updated_input: dict[str, Any] | None = None
    additional_context: str | None = None


class _Printed(msgspec.Struct, rename="camel"):
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None
    continues: bool = msgspec.field(default=True, name="continue")
    stop_reason: str | None = None
    hook_specific_output: _Specific | None = None


def parse_answer(content: bytes) -> HookAnswer:
    """Return the answer in a JSON object; nothing is a pass. Unknown keys are ignored.

    Raises:
        HookFailed: it is not a JSON object, or a known key has a value that it cannot have.
    """
    if not content.strip():
        return HookAnswer()
    try:
        printed = msgspec.json.decode(content, type=_Printed)
        specific = printed.hook_specific_output or _Specific()
        arguments = specific.updated_input
        arguments = None if arguments is None else replace_surrogates_in(arguments)
    except msgspec.ValidationError as error:
        raise HookFailed(f"answered JSON that cannot be used: {error}") from error
    except (ValueError, RecursionError) as error:  # msgspec.DecodeError and others
        raise HookFailed("answered something else than one JSON object") from error
    reason = specific.permission_decision_reason or printed.reason or ""
    decision: HookDecision = "pass"
    if not printed.continues:
        decision, reason = "refuse", printed.stop_reason or reason
    elif printed.decision == "block" or specific.permission_decision == "deny":
        decision = "refuse"
    elif specific.permission_decision == "ask":
        decision = "ask"
    return HookAnswer(
        decision,
        truncate(reason.strip(), MAX_REASON_CHARACTERS),
        arguments,
        truncate((specific.additional_context or "").strip(), MAX_CONTEXT_CHARACTERS),
    )
