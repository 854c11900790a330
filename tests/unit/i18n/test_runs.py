"""Sentences about runs: one for each end of a run, with details only where they add something."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import get_args

import pytest

from internal.agent.domain.errors import CODES as REFUSAL_CODES
from internal.agent.domain.errors import ModelError
from internal.agent.domain.tasks import StopReason
from internal.agent.ports.llm import RetryReason
from internal.i18n.catalog import load_catalog
from internal.i18n.language import LANGUAGES, Language
from internal.i18n.runs import RunMessages

CODES = {"daily_limit_exceeded", "checkpoint_unreadable", "internal_error", "crashed"}
CODES |= {
    "model_refused",
    "model_answer_filtered",
    "model_empty",
    "model_repeats",
    *REFUSAL_CODES.values(),
}


def model_codes(kind: type[ModelError] = ModelError) -> Iterator[str]:
    yield kind.default_code
    for each in kind.__subclasses__():
        yield from model_codes(each)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_code_and_stop_reason_has_its_own_sentence(language: Language) -> None:
    said = RunMessages(language)
    by_code = {code: said.ended("error", code) for code in CODES | {*model_codes()}}
    assert len({*by_code.values(), said.ended("error")}) == len(by_code) + 1
    quiet = {reason for reason in get_args(StopReason) if not said.ended(reason)}
    assert quiet == {"final_answer", "await_user_input", "await_tasks", "user_stop"}
    assert said.ended("error", "of_a_later_version") == said.ended("error")


@pytest.mark.parametrize("language", LANGUAGES)
def test_nobody_is_asked_to_rephrase_what_no_other_words_help(language: Language) -> None:
    said = RunMessages(language)
    ask = {"en": "rephrase", "zh": "请换一种说法"}[language]
    helped = {code for code in CODES | {*model_codes()} if ask in said.ended("error", code)}
    assert helped == {"model_refused", "model_empty"}


@pytest.mark.parametrize("reason", get_args(RetryReason))
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_long_wait_has_its_end(language: Language, reason: str) -> None:
    said = RunMessages(language)
    since = datetime.now().astimezone()
    wait = {"reason": reason, "seconds": 8, "attempt": 2}
    assert said.retry(wait, since.isoformat()) == said.retry(wait)
    wait["seconds"] = 330
    long = said.retry(wait, since.isoformat())
    assert f"{since + timedelta(seconds=330):%H:%M:%S}" in long
    assert "330" in long
    assert said.retry(wait, "never") == said.retry(wait)


def test_a_reason_of_a_later_version_is_a_wait() -> None:
    wait = {"reason": "of_a_later_version", "seconds": 8, "attempt": 2}
    assert RunMessages("en").retry(wait).startswith("The model is overloaded")


def test_a_wait_names_the_last_attempt_and_the_cause() -> None:
    wait = {"reason": "rate_limited", "seconds": 8, "attempt": 2, "attempts": 11, "cause": "Slow."}
    said = RunMessages("en").retry(wait)
    assert said.endswith("retrying in 8 s (attempt 2 of 11). Slow.")
    assert "11" in RunMessages("zh").retry(wait)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({}, ""),
        ({"exit_code": 0, "timed_out": False}, ""),
        ({"exit_code": 3}, "exit 3"),
        ({"exit_code": -9, "timed_out": True}, "stopped at its time limit"),
    ],
)
def test_a_command_that_failed_says_how(metadata: dict[str, object], said: str) -> None:
    assert RunMessages("en").call_failure(metadata) == said


def test_a_run_at_its_limit_did_not_fail() -> None:
    limits = {each for each in get_args(StopReason) if RunMessages("en").is_limit(each)}
    expected = {"max_iterations", "max_output", "timeout", "budget_exceeded"}
    assert limits == expected
    assert {each for each in expected if RunMessages("zh").is_limit(each)} == limits


def test_the_state_of_a_run_tells_what_it_lacks() -> None:
    messages = RunMessages("en")
    assert messages.exception("completed", "final_answer") == ""
    assert messages.exception("completed", "final_answer", 1) == "completed, 1 call was not run"
    assert messages.exception("failed", "error", 1) == ""
    for reason in get_args(StopReason):
        assert bool(messages.exception("completed", reason)) == messages.is_limit(reason)


def test_the_languages_agree_about_what_needs_no_details() -> None:
    known = [load_catalog("runs", language) for language in LANGUAGES]
    assert known[0]["complete"] == known[1]["complete"]
    keys = {key.removeprefix("ended_") for key in known[0]["messages"]}
    assert {*known[0]["complete"]} <= keys


def test_details_are_what_the_sentence_leaves_out() -> None:
    said = RunMessages("en")
    assert said.details("error", "model_rejected", "Acme: no such model") == "Acme: no such model"
    assert said.details("error", "model_refused", "The model declined.") == ""
    assert said.details("timeout", "", "stopped after 3 s") == ""
    assert said.question_title("Which colour?", "") == "Which colour?"
    assert said.question_title("Acme is busy", "model_busy").startswith("The model is overloaded.")


def test_a_cost_limit_that_does_not_apply_is_said_with_what_applies_instead() -> None:
    limit = RunMessages("en").cost_limit
    assert limit("m", 5.0, 1_000, is_priced=True) == ""
    assert limit("m", None, 1_000, is_priced=False) == ""
    said = limit("m", 5.0, 1_000, is_priced=False)
    assert said.startswith("No price is known for m, so the limit of $5.00 (agent.max_cost)")
    assert "1,000 tokens instead" in said
    assert "nothing limits the tokens" in limit("m", 5.0, None, is_priced=False)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_remarks_on_a_call_are_declined_questions_and_logged_errors(
    language: Language,
) -> None:
    said = RunMessages(language)
    remarks = said.call_remarks({"declined": ["x"], "logged": ["disk full", "no {reason}"]})
    first, second = remarks
    assert first.endswith("x")
    assert second.endswith("disk full; no {reason}")
    assert said.call_remarks({"exit_code": 1}) == []
