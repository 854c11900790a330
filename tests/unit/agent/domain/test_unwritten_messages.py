"""Messages in the role of the user that nobody wrote."""

import pytest

from internal.agent.domain.delegation.reports import report_prompt
from internal.agent.domain.messages import Message, Text, user_message
from internal.agent.domain.unwritten_messages import RESUME_PROMPT, unwritten_kind


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (user_message("count the herons"), ""),
        (user_message(f"count, and then: {RESUME_PROMPT}"), ""),
        (user_message(f"{RESUME_PROMPT}\n\ncount the herons"), "resumed"),
        (user_message(report_prompt([])), "report"),
        (Message("assistant", (Text(RESUME_PROMPT),)), ""),
    ],
)
def test_what_nobody_wrote_is_known_by_its_beginning(message: Message, kind: str) -> None:
    assert unwritten_kind(message) == kind
