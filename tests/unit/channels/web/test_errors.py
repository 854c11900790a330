"""HTTP errors and their bodies."""

import msgspec

from internal.agent.domain.errors import Conflict, Forbidden, NotFound, StoreUnavailable
from internal.channels.web.errors import HttpError, HttpErrorBody, error_response, to_http_error


def test_an_unexpected_error_does_not_reveal_its_text() -> None:
    refusal = to_http_error(RuntimeError("the password is 123"))
    assert refusal.status == 500
    assert "123" not in str(refusal)
    assert to_http_error(TimeoutError()).status == 504


def test_domain_errors_have_their_status_and_text() -> None:
    for error, status in (
        (Forbidden("not yours"), 403),
        (NotFound("no task"), 404),
        (Conflict("still running"), 409),
        (StoreUnavailable("disk full"), 503),
    ):
        http_error = to_http_error(error)
        assert (http_error.status, str(http_error)) == (status, str(error))


def test_an_error_response_carries_code_message_and_request_id() -> None:
    response = error_response(HttpError(429, "slow_down", "Wait.", {"retry-after": "3"}), "r-1")
    body = msgspec.json.decode(bytes(response.body), type=HttpErrorBody)
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")
    assert (body.error.code, body.error.message, body.error.request_id) == (
        "slow_down",
        "Wait.",
        "r-1",
    )
