"""What runs say: a sentence for every end of a run, and details only where they add something."""

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
    short = said.retry(reason, 8, 2, since.isoformat())
    assert short == said.retry(reason, 8, 2)
    long = said.retry(reason, 330, 2, since.isoformat())
    assert f"{since + timedelta(seconds=330):%H:%M:%S}" in long
    assert "330" in long
    assert said.retry(reason, 330, 2, "never") == said.retry(reason, 330, 2)


def test_a_reason_of_a_later_version_is_a_wait() -> None:
    assert RunMessages("en").retry("of_a_later_version", 8, 2).startswith("The model is overloaded")


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
