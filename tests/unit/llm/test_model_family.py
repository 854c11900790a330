"""Model families."""

import pytest

from internal.llm.model_family import is_same_family


@pytest.mark.parametrize(
    ("origin", "asked"),
    [
        ("openai:gpt-4o", "openai:gpt-4o-2024-08-06"),
        ("anthropic:claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-5"),
        ("openrouter:google/gemini-3-pro-preview:free", "openrouter:google/gemini-3-pro"),
        ("bedrock:anthropic.claude-opus-4-20250514-v1:0", "bedrock:anthropic.claude-opus-4"),
        ("kimi:kimi-k2-0905-preview", "kimi:kimi-k2"),
        ("mistral:mistral-large-latest", "mistral:mistral-large-2411"),
        ("vertex:claude-opus-4@20250514", "vertex:claude-opus-4"),
        ("ark:Doubao-seed-1-8-251228", "ark:doubao-seed-1-8"),
    ],
)
def test_dates_revisions_and_stages_do_not_make_another_family(origin: str, asked: str) -> None:
    assert is_same_family(origin, asked)
    assert is_same_family(asked, origin)


@pytest.mark.parametrize(
    ("origin", "asked"),
    [
        ("", "openai:gpt-4o"),
        ("", ""),
        ("openai:gpt-4o", "openrouter:gpt-4o"),
        ("anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4"),
        ("deepseek:deepseek-v3", "deepseek:deepseek-v4"),
        ("google:gemini-3-pro", "google:gemini-3-flash"),
        ("openai:-2024", "openai:-2025"),
    ],
)
def test_other_models_are_other_families(origin: str, asked: str) -> None:
    assert not is_same_family(origin, asked)
