"""Limits and prices of models."""

import pytest

from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelLimits
from internal.llm.model_catalog import make_model_book, model_limits
from internal.model_providers.registry import PROVIDERS
from internal.settings.llm import LlmSettings, PriceSettings

MUCH = LlmSettings(context_window=10_000_000, max_output_tokens=1_000_000)


@pytest.mark.parametrize(
    ("model", "context", "output"),
    [
        ("claude-opus-5-5", 1_000_000, 128_000),
        ("claude-opus-4-5-20251101", 200_000, 64_000),
        ("claude-haiku-4-5", 200_000, 64_000),
        ("claude-something-new", 200_000, 64_000),
        ("gpt-6-sol-2026-09-22", 1_050_000, 128_000),
        ("doubao-seed-1-8-251228", 256_000, 1_000_000),
        ("gpt-oss:20b", 10_000_000, 1_000_000),
        ("gpt-x", 10_000_000, 1_000_000),
    ],
)
def test_a_known_model_has_its_own_limits(model: str, context: int, output: int) -> None:
    assert model_limits(model, MUCH) == ModelLimits(context, output)


def test_settings_can_lower_the_output_limit() -> None:
    little = LlmSettings(context_window=1_000, max_output_tokens=100)
    assert model_limits("claude-opus-5-5", little) == ModelLimits(1_000, 100)


def test_costs_follow_the_longest_known_name_and_settings_first() -> None:
    own = {"claude-opus-5": PriceSettings(input=1.0, output=1.0)}
    table = make_model_book(LlmSettings(prices=own)).prices
    million = Usage(input_tokens=1_000_000, cache_read_tokens=1_000_000)
    assert table.cost("claude-opus-5-5-20260922", million) == pytest.approx(4.2)
    assert table.cost("claude-opus-5", million) == pytest.approx(1.0)
    assert table.cost("claude-sonnet-4-5", million) == pytest.approx(3.3)
    assert table.cost("gpt-6-sol", million) == pytest.approx(2.2)
    assert table.cost("deepseek-flash", million) == pytest.approx(0.306)
    assert table.cost("doubao-seed-1-8-251228", million) is None
    assert table.cost("offline-demo", million) == 0
    assert table.cost("gpt-x", million) is None


@pytest.mark.parametrize(
    ("provider", "model", "doubt"),
    [
        (
            "anthropic",
            "claude-sonet-5-5",
            "Anthropic may not have the model claude-sonet-5-5; did you mean claude-sonnet-5-5?",
        ),
        ("anthropic", "gpt-6-sol", "Anthropic may not have the model gpt-6-sol."),
        (
            "openai",
            "gpt-6-soll",
            "OpenAI may not have the model gpt-6-soll; did you mean gpt-6-sol?",
        ),
        ("ark", "doubao-sead", "Ark may not have the model doubao-sead."),
        ("anthropic", "claude-sonnet-5-5", ""),
        ("anthropic", "claude-opus-4-5-20251101", ""),
        ("anthropic", "claude-opus-5@20261101", ""),
        ("anthropic", "own-model", ""),
        ("ark", "doubao-seed-2-0-260101", ""),
        ("openrouter", "x/y", ""),
        ("ollama", "qwen9:70b", ""),
    ],
)
def test_a_model_that_is_not_listed_is_doubted(provider: str, model: str, doubt: str) -> None:
    own = {"own-model": PriceSettings(input=1.0, output=1.0)}
    settings = LlmSettings(provider=provider, prices=own)
    assert make_model_book(settings).doubt(model) == doubt


def test_every_listed_and_default_model_is_known() -> None:
    for provider in PROVIDERS:
        book = make_model_book(LlmSettings(provider=provider.name))
        for name in (provider.default_model, *(info.name for info in provider.models)):
            if not name.endswith("-"):
                assert book.doubt(name) == ""


def test_at_an_own_address_no_model_is_doubted() -> None:
    settings = LlmSettings(provider="openai", base_url="http://127.0.0.1:8000/v1", model="m")
    assert make_model_book(settings).doubt("my-model") == ""
