"""Failures of the plain model as errors of HTTP."""

import pytest

from internal.agent.app.plain_completions import DailyLimitReached
from internal.agent.domain.errors import (
    ContextTooLong,
    InvalidRequest,
    ModelKeyRejected,
    ModelOverloaded,
    ModelUnreachable,
)
from internal.channels.web.completions.plain_reply import ReplyLimits, plain_error

ERRORS: list[tuple[Exception, int, str, dict[str, str]]] = [
    (DailyLimitReached("Used up."), 429, "insufficient_quota", {"x-should-retry": "false"}),
    (TimeoutError(), 504, "timeout", {"x-should-retry": "false"}),
    (ContextTooLong("Too long."), 400, "context_length_exceeded", {}),
    (ModelOverloaded("Busy.", 7.2), 503, "model_busy", {"retry-after": "7"}),
    (ModelUnreachable("Gone."), 503, "model_unreachable", {}),
    (ModelKeyRejected("No key."), 502, "model_key_refused", {"x-should-retry": "false"}),
]


@pytest.mark.parametrize(("error", "status", "code", "headers"), ERRORS)
def test_a_failure_has_a_status_and_a_sentence(
    error: Exception, status: int, code: str, headers: dict[str, str]
) -> None:
    found = plain_error(error)
    assert (found.status, found.code, dict(found.headers)) == (status, code, headers)
    assert str(found).endswith(".")


def test_limits_out_of_their_range_are_refused() -> None:
    ReplyLimits(1, 2.0).check()
    ReplyLimits(None, None).check()
    for limits in (ReplyLimits(0, None), ReplyLimits(None, -0.1), ReplyLimits(None, 2.1)):
        with pytest.raises(InvalidRequest):
            limits.check()
