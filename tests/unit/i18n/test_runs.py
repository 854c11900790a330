"""What runs say: a sentence for every end of a run, and details only where they add something."""

from collections.abc import Iterator
from typing import get_args

import pytest

from internal.agent.domain.errors import ModelError
from internal.agent.domain.tasks import StopReason
from internal.i18n.catalog import load_catalog
from internal.i18n.language import LANGUAGES, Language
from internal.i18n.runs import RunMessages

CODES = {"daily_limit_exceeded", "checkpoint_unreadable", "internal_error", "crashed"}
CODES |= {"model_refused", "model_empty"}


def model_codes(kind: type[ModelError] = ModelError) -> Iterator[str]:
    yield kind.code
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
