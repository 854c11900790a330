"""The delivery of the answer of a run."""

import pytest

from internal.agent.domain.errors import NotFound, StoreError, TooManyTasks
from internal.channels.web.delivery import errors_of_created_run
from internal.channels.web.errors import HttpError
from internal.channels.web.requests import ClientDisconnected

ERRORS: list[tuple[Exception, int, str | None]] = [
    (HttpError(502, "run_failed", "It failed."), 502, "false"),
    (HttpError(504, "timeout", "It goes on."), 504, "false"),
    (RuntimeError("secret"), 500, "false"),
    (NotFound("gone"), 404, "false"),
    (StoreError("full"), 503, None),
    (TooManyTasks(3), 429, None),
]


@pytest.mark.parametrize(("error", "status", "retry"), ERRORS, ids=str)
def test_an_error_about_a_run_is_not_to_be_repeated(
    error: Exception, status: int, retry: str | None
) -> None:
    with pytest.raises(HttpError) as raised, errors_of_created_run({"x-larkspur-session": "s"}):
        raise error
    assert raised.value.status == status
    assert raised.value.headers.get("x-should-retry") == retry
    assert raised.value.headers["x-larkspur-session"] == "s"
    assert "secret" not in str(raised.value)


def test_a_client_that_left_gets_no_error() -> None:
    with pytest.raises(ClientDisconnected), errors_of_created_run():
        raise ClientDisconnected
