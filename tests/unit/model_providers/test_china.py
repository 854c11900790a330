"""Providers in China: their addresses for other countries, and the variables of their keys."""

import pytest

from internal.config.loader import load
from internal.model_providers.registry import OpenAICompatible, find_provider

NAMES = ("ark", "qwen", "kimi", "glm", "minimax")


@pytest.mark.parametrize("name", NAMES)
def test_the_address_in_china_is_the_default_of_two(name: str) -> None:
    provider = find_provider(name)
    assert isinstance(provider, OpenAICompatible)
    assert len(provider.regions) == 2
    assert provider.regions[0] == provider.base_url
    assert all(url.startswith("https://") and url[-1] != "/" for url in provider.regions)


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("DASHSCOPE_API_KEY", "qwen"),
        ("MOONSHOT_API_KEY", "kimi"),
        ("KIMI_API_KEY", "kimi"),
        ("ZHIPUAI_API_KEY", "glm"),
        ("ZAI_API_KEY", "glm"),
        ("MINIMAX_API_KEY", "minimax"),
    ],
)
def test_each_variable_of_a_key_chooses_the_provider(
    variable: str, name: str, environ: dict[str, str]
) -> None:
    loaded = load(environ={**environ, variable: "k"})
    assert loaded.settings.llm.provider == name
    assert loaded.settings.llm.require_api_key().get_secret_value() == "k"
    assert loaded.origins["llm.api_key"] == f"environment {variable}"
