"""Claude under the names of the clouds."""

import pytest

from internal.agent.domain.usage import Usage
from internal.llm.model_catalog import make_model_book
from internal.model_providers.registry import find_model, plain_name
from internal.settings.llm import LlmSettings

MILLION = Usage(input_tokens=1_000_000)


@pytest.mark.parametrize(
    ("provider", "model", "cost"),
    [
        ("bedrock", "global.anthropic.claude-sonnet-5-5", 2.0),
        ("bedrock", "global.anthropic.claude-sonnet-4-5-20250929-v1:0", 3.0),
        ("bedrock", "eu.anthropic.claude-sonnet-5-5", 2.2),
        ("bedrock", "anthropic.claude-opus-4-6-v1", 5.5),
        ("vertex", "claude-sonnet-4-5@20250929", 3.0),
        ("foundry", "claude-opus-5-5", 4.0),
    ],
)
def test_a_model_of_a_cloud_has_a_price_and_limits(provider: str, model: str, cost: float) -> None:
    book = make_model_book(LlmSettings(provider=provider, model=model, context_window=10_000_000))
    assert book.prices.cost(model, MILLION) == pytest.approx(cost)
    known = find_model(model)
    assert known is not None
    assert book.limits(model).context_window == known.context_window
    assert book.doubt(model) == ""


@pytest.mark.parametrize(
    ("model", "plain"),
    [
        ("us.anthropic.claude-sonnet-5-5", "claude-sonnet-5-5"),
        (
            "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-5",
            "claude-opus-5",
        ),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5@20250929"),
        ("my-anthropic.model", "my-anthropic.model"),
        ("anthropic/claude-sonnet-5.5", "anthropic/claude-sonnet-5.5"),
    ],
)
def test_the_name_of_a_model_is_found_in_that_of_a_cloud(model: str, plain: str) -> None:
    assert plain_name(model) == plain
