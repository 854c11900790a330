"""Answers that are not in the tables: echoed words of people, codes against words, streams."""

import pytest

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelWithoutCredit,
)
from internal.llm.errors import ProviderInfo
from internal.llm.refusals.answer import read_answer
from internal.llm.refusals.classifier import classify
from internal.llm.refusals.errors import error_from_body

PEER = ProviderInfo("Acme", "ACME_API_KEY")
ECHO = "Why does my API say: rate limit, prompt is too long: 9 tokens > 8 maximum, 余额不足?"


@pytest.mark.parametrize(
    "body",
    [
        {"detail": [{"type": "string_type", "loc": ["body", "stop"], "msg": "x", "input": ECHO}]},
        {"error": {"message": f"Invalid value '{ECHO}' for 'stop'.", "code": "invalid_value"}},
        {"object": "error", "message": f"[{{'type': 'x', 'loc': ('body',), 'input': '{ECHO}'}}]"},
        {"error": {"message": f'messages[3].stop: invalid type: string "{ECHO}", expected'}},
        {"error": {"message": f"1 error [type=x, input_value={ECHO!r}, input_type=str]"}},
    ],
    ids=["FastAPI", "OpenAI", "vLLM", "serde", "pydantic"],
)
def test_words_of_a_person_that_a_server_repeats_decide_nothing(body: object) -> None:
    assert classify(read_answer(400, body)).kind == "unknown"


def test_a_code_decides_before_words() -> None:
    body = {
        "error": {"code": "context_length_exceeded", "message": "余额不足: does not support tools"}
    }
    assert classify(read_answer(400, body)).kind == "too_long"


def test_words_of_a_limit_do_not_decide_where_the_status_says_otherwise() -> None:
    body = {"error": {"message": "messages.0: the tool rate limit reached is unknown, API rate"}}
    assert classify(read_answer(400, body)).kind == "unknown"
    assert error_from_body(PEER, 400, body).refusal is not None


def test_the_table_of_the_server_itself_is_asked_first() -> None:
    answer = read_answer(404, {"error": {"message": "model 'x' not found"}})
    assert classify(answer, "Ollama") == classify(answer)


@pytest.mark.parametrize(
    ("status", "kind", "ours"),
    [
        (401, "key", ModelKeyRejected),
        (402, "no_credit", ModelWithoutCredit),
        (413, "body_size", ContextTooLong),
        (429, "rate", ModelOverloaded),
        (503, "overloaded", ModelOverloaded),
        (529, "overloaded", ModelOverloaded),
        (502, "unavailable", ModelOverloaded),
        (418, "unknown", ModelRejected),
    ],
)
def test_an_answer_without_known_words_has_the_kind_of_its_status(
    status: int, kind: str, ours: type
) -> None:
    error = error_from_body(PEER, status, {"error": {"message": "something new"}})
    assert type(error) is ours
    assert error.refusal is not None
    assert error.refusal.kind == kind


def test_an_error_in_a_stream_is_overload_also_where_the_status_was_200() -> None:
    error = error_from_body(PEER, None, {"type": "overloaded_error", "message": "Overloaded"})
    assert type(error) is ModelOverloaded
    assert error.refusal is not None
    assert error.refusal.kind == "overloaded"


@pytest.mark.parametrize("body", [None, "", [], {}, 7, {"error": None}, [[[[[[[[[["x"]]]]]]]]]]])
def test_a_body_of_no_known_shape_is_read(body: object) -> None:
    assert read_answer(400, body).message
