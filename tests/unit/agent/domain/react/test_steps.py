"""The spending of a run over its models."""

import pytest

from internal.agent.domain.react.steps import ModelSpending, total_cost, total_usage
from internal.agent.domain.usage import Usage

SPENT = {"a": ModelSpending(Usage(10, 5, 1, 2), 0.25), "b": ModelSpending(Usage(1, 1), 0.5)}


def test_the_usage_of_all_models_is_summed() -> None:
    assert total_usage(SPENT) == Usage(11, 6, 1, 2)
    assert total_usage({}) == Usage()


def test_the_cost_of_all_models_is_summed() -> None:
    assert total_cost(SPENT) == pytest.approx(0.75)
    assert total_cost({}) == 0


def test_the_cost_is_unknown_only_if_no_price_is_known() -> None:
    unpriced = ModelSpending(Usage(1, 1))
    assert total_cost({**SPENT, "c": unpriced}) == pytest.approx(0.75)
    assert total_cost({"c": unpriced}) is None
