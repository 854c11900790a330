"""The buttons that help after the end of a run, by its error code or stop reason."""

from collections.abc import Mapping

from internal.channels.chat.transport import RunButton, RunCommand
from internal.i18n.chat import ChatPhrases

Commands = tuple[RunCommand, ...]

_CONTINUE: Commands = ("continue",)
_AGAIN: Commands = ("again",)
_NEW: Commands = ("new",)

COMMANDS: Mapping[str, Commands] = {
    # a limit or a restart: the work so far is kept
    "max_iterations": _CONTINUE,
    "max_output": _CONTINUE,
    "timeout": _CONTINUE,
    "budget_exceeded": _CONTINUE,
    "interrupted": _CONTINUE,
    "crashed": _CONTINUE,
    # the same request may succeed later, some of them after an administrator has done something
    "error": _AGAIN,
    "internal_error": _AGAIN,
    "checkpoint_unreadable": _AGAIN,
    "model_key_refused": _AGAIN,
    "model_no_credit": _AGAIN,
    "model_quota_used_up": _AGAIN,
    "model_not_found": _AGAIN,
    "model_region_refused": _AGAIN,
    "model_wrong_address": _AGAIN,
    "model_busy": _AGAIN,
    "model_rate_limited": _AGAIN,
    "model_loading": _AGAIN,
    "model_unreachable": _AGAIN,
    "model_unavailable": _AGAIN,
    "model_without_tools": _AGAIN,
    "model_tool_refused": _AGAIN,
    "model_empty": _AGAIN,
    "model_error": _AGAIN,
    # this conversation cannot go on
    "model_rejected": _NEW,
    "model_picture_refused": _NEW,
    "model_document_refused": _NEW,
    "model_audio_refused": _NEW,
    "model_message_filtered": _NEW,
    "context_too_long": _NEW,
    "request_too_large": _NEW,
    # the person decides with words, or waits
    "daily_limit_exceeded": (),
    "rejected": (),
    "blocked": (),
    "model_refused": (),
    "model_answer_filtered": (),
    "model_repeats": (),
}
"""The commands of the buttons. Unlisted codes get the commands of the stop reason."""


def error_buttons(
    run_id: str, stop_reason: str, error_code: str, phrases: ChatPhrases
) -> tuple[RunButton, ...]:
    """Return the buttons below the reply of a run that ended."""
    commands = COMMANDS.get(error_code, COMMANDS.get(stop_reason, ()))
    return tuple(RunButton(each, run_id, phrases(f"button_{each}")) for each in commands)
