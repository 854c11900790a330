"""Responses at the end of their replies."""

from internal.agent.domain.usage import Usage
from internal.channels.web.completions.answers import RUN_FAILED
from internal.channels.web.completions.replies import ReplyEnd
from internal.channels.web.completions.response_objects import (
    ResponseObject,
    ended_response,
    failed_response,
    response_usage,
)
from internal.channels.web.errors import HttpError

BEGUN = ResponseObject(id="resp_run-1", created_at=1, model="larkspur", status="in_progress")


def test_the_end_of_a_run_is_the_status_of_its_response() -> None:
    end = ReplyEnd("done", "", Usage(3, 2, 1), is_cut=False)
    ended = ended_response(BEGUN, end)
    (item,) = ended.output
    assert (ended.status, item.id, item.status) == ("completed", "msg_run-1", "completed")
    assert item.content[0].text == "done"
    cut = ended_response(BEGUN, ReplyEnd("", "", Usage(), is_cut=True))
    assert (cut.status, cut.output[0].status) == ("incomplete", "incomplete")
    assert cut.incomplete_details is not None
    stopped = ReplyEnd("", "", Usage(), is_cut=False, status="cancelled")
    assert ended_response(BEGUN, stopped).status == "cancelled"
    asks = ReplyEnd("which?", "", Usage(), is_cut=False, status="waiting")
    assert ended_response(BEGUN, asks).status == "completed"


def test_tokens_of_caches_are_part_of_the_input() -> None:
    usage = response_usage(Usage(3, 2, 10, 20))
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (33, 2, 35)
    assert usage.input_tokens_details.cached_tokens == 10


def test_a_failed_run_has_a_code_after_which_clients_do_not_repeat_it() -> None:
    codes = {
        HttpError(502, RUN_FAILED, "Bad."): "invalid_prompt",
        HttpError(429, "insufficient_quota", "Used up."): "rate_limit_exceeded",
        HttpError(503, "model_busy", "Busy."): "server_error",
    }
    for error, code in codes.items():
        failed = failed_response(BEGUN, error)
        assert failed.error is not None
        assert (failed.status, failed.error.code) == ("failed", code)
