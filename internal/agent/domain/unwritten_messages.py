"""Messages to the model in the role of the user that no person wrote."""

from typing import Literal

from internal.agent.domain.delegation.reports import END_OPENING, REPORT_OPENING
from internal.agent.domain.messages import Message

RESUME_PROMPT = "Continue where this task stopped; do not repeat finished work:"

UnwrittenKind = Literal["", "resumed", "report"]
"""Kind of text shown in place of a message that nobody wrote; "" for all others."""


def unwritten_kind(message: Message) -> UnwrittenKind:
    """Return the kind of text shown in place of a message, "" for a message that was written."""
    if message.role != "user":
        return ""
    if message.text.startswith(RESUME_PROMPT):
        return "resumed"
    return "report" if message.text.startswith((REPORT_OPENING, END_OPENING)) else ""
