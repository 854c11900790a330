"""Peculiarities of Gemini, Mistral and Grok."""

import pytest

from internal.config.loader import load
from internal.model_providers.registry import find_provider


def test_mistral_has_its_own_ids_of_calls_and_order_of_messages() -> None:
    provider = find_provider("mistral")
    assert provider is not None
    dialect = provider.dialect_of("mistral-medium-3-5")
    assert (dialect.call_ids, dialect.user_after_results) == ("nine", False)
    assert not dialect.count_tokens


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("GEMINI_API_KEY", "gemini"),
        ("GOOGLE_API_KEY", "gemini"),
        ("MISTRAL_API_KEY", "mistral"),
        ("XAI_API_KEY", "xai"),
    ],
)
def test_the_variable_of_a_key_chooses_the_provider(
    variable: str, name: str, environ: dict[str, str]
) -> None:
    assert load(environ={**environ, variable: "k"}).settings.llm.provider == name


def test_an_upgrade_does_not_change_the_provider(environ: dict[str, str]) -> None:
    keys = {"OPENROUTER_API_KEY": "k", "GEMINI_API_KEY": "k", "MISTRAL_API_KEY": "k"}
    assert load(environ={**environ, **keys}).settings.llm.provider == "openrouter"
