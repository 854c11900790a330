"""Prompts and texts at the end of a run belong to stop reasons."""

from typing import get_args

from internal.agent.domain.react.closing_prompts import CLOSING_PROMPTS, STOP_EXPLANATIONS
from internal.agent.domain.tasks import StopReason


def test_every_prompt_asks_for_a_final_answer_without_tools() -> None:
    assert set(CLOSING_PROMPTS) <= set(get_args(StopReason))
    for prompt in CLOSING_PROMPTS.values():
        assert "final answer" in prompt
        assert "without tools" in prompt


def test_explanations_are_clauses_that_fit_into_a_sentence() -> None:
    assert set(STOP_EXPLANATIONS) <= set(get_args(StopReason))
    for explanation in STOP_EXPLANATIONS.values():
        assert explanation[0].islower()
        assert not explanation.endswith(".")
