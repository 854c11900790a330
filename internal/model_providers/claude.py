"""Anthropic, and the clouds that serve Claude.

Limits and prices: platform.claude.com/docs/en/about-claude/pricing and the pages of the models,
read 2026-11-21. Long calls that cost more are underestimated: `claude-haiku-5-5` over 100,000
tokens costs five times as much.

Thinking: platform.claude.com/docs/en/build-with-claude/thinking and
docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html, 2026-11-28.
"""

from typing import Any

from internal.model_providers.provider import (
    NO_FIELDS,
    Anthropic,
    CloudClaude,
    Fields,
    ModelInfo,
    ThinkingRule,
    prices,
)

_SHOWN: dict[str, Any] = {"type": "adaptive", "display": "summarized"}
_MODELS = (
    ModelInfo("claude-sonnet-5-5", 1_000_000, 128_000, prices(2.0, 10.0, 0.1)),
    ModelInfo("claude-opus-5-5", 1_000_000, 128_000, prices(4.0, 20.0, 0.2)),
    ModelInfo("claude-haiku-5-5", 1_000_000, 128_000, prices(0.1, 0.5, 0.01)),
    ModelInfo("claude-fable-5-2", 1_000_000, 128_000, prices(8.0, 40.0, 0.2)),
    ModelInfo("claude-fable-5-1", 1_000_000, 128_000, prices(10.0, 50.0, 0.25)),
    ModelInfo("claude-fable-5", 1_000_000, 128_000, prices(10.0, 50.0, 1.0)),
    ModelInfo("claude-mythos-5-1", 1_000_000, 128_000, prices(10.0, 50.0, 0.25)),
    ModelInfo("claude-mythos-5", 1_000_000, 128_000, prices(10.0, 50.0, 1.0)),
    ModelInfo("claude-opus-5", 1_000_000, 128_000, prices(5.0, 25.0, 0.5)),
    ModelInfo("claude-opus-4-8", 1_000_000, 128_000, prices(5.0, 25.0, 0.5)),
    ModelInfo("claude-opus-4-7", 1_000_000, 128_000, prices(5.0, 25.0, 0.5)),
    ModelInfo("claude-opus-4-6", 1_000_000, 128_000, prices(5.0, 25.0, 0.5)),
    ModelInfo("claude-opus-4-5", 200_000, 64_000, prices(5.0, 25.0, 0.5)),
    ModelInfo("claude-opus-4", 200_000, 32_000, prices(15.0, 75.0, 1.5)),
    ModelInfo("claude-sonnet-5", 1_000_000, 128_000, prices(2.0, 10.0, 0.2)),
    ModelInfo("claude-sonnet-4-6", 1_000_000, 128_000, prices(3.0, 15.0, 0.3)),
    ModelInfo("claude-sonnet-4", 200_000, 64_000, prices(3.0, 15.0, 0.3)),
    ModelInfo("claude-haiku-5", 1_000_000, 128_000),
    ModelInfo("claude-haiku-4-5", 200_000, 64_000, prices(1.0, 5.0, 0.1)),
    ModelInfo("claude-", 200_000, 64_000),
)


def _adaptive(*models: str, off: Fields, thinking: Fields = _SHOWN) -> ThinkingRule:
    levels = ({"thinking": thinking, "output_config": {"effort": e}} for e in _EFFORTS)
    return ThinkingRule(models, off, *levels)


def _budget(*models: str) -> ThinkingRule:
    budgets = (2_048, 8_192, 24_576)
    levels = ({"thinking": {"type": "enabled", "budget_tokens": n}} for n in budgets)
    return ThinkingRule(models, NO_FIELDS, *levels)


_EFFORTS = ("low", "medium", "high")
_THINKING = (
    # these always think
    _adaptive(
        "claude-opus-5-5",
        "claude-fable-5",
        "claude-mythos-5",
        off={"thinking": _SHOWN, "output_config": {"effort": "low"}},
    ),
    _adaptive("claude-sonnet-5-5", off={"thinking": {"type": "between_tools"}}),
    _adaptive(
        "claude-opus-5",
        "claude-sonnet-5",
        "claude-haiku-5",
        off={"thinking": {"type": "disabled"}},
    ),
    # these think only if they are asked to
    _adaptive("claude-opus-4-8", "claude-opus-4-7", off=NO_FIELDS),
    _adaptive("claude-opus-4-6", "claude-sonnet-4-6", off=NO_FIELDS, thinking={"type": "adaptive"}),
    _budget("claude-opus-4", "claude-sonnet-4", "claude-haiku-4"),
)

ANTHROPIC = Anthropic(
    name="anthropic",
    title="Anthropic",
    description="Claude, through Anthropic's API or any server that implements it",
    key_variable="ANTHROPIC_API_KEY",
    key_pattern=r"sk-ant-[\w-]{8,}",
    key_use="always",
    base_url_variable="ANTHROPIC_BASE_URL",
    regions=("https://api.anthropic.com",),
    default_model="claude-sonnet-5-5",
    models=_MODELS,
    thinking=_THINKING,
)

# The variables are those that anthropic 2.12 reads. The names of models on Amazon Bedrock:
# docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html and
# github.com/vercel/ai (@ai-sdk/amazon-bedrock 4.0.186, `us.anthropic.claude-sonnet-5-5`).
BEDROCK = CloudClaude(
    name="bedrock",
    title="Amazon Bedrock",
    description="Claude on Amazon Bedrock, with the credentials of AWS or a key of Bedrock",
    cloud="bedrock",
    key_variable="AWS_BEARER_TOKEN_BEDROCK",
    key_pattern=r"ABSK[\w+/=-]{40,}",
    key_use="optional",
    base_url_variable="ANTHROPIC_BEDROCK_BASE_URL",
    default_model="global.anthropic.claude-sonnet-5-5",
    any_model=True,
    thinking=_THINKING,
)
VERTEX = CloudClaude(
    name="vertex",
    title="Google Vertex",
    description="Claude on Google Vertex, with the credentials of Google Cloud",
    cloud="vertex",
    base_url_variable="ANTHROPIC_VERTEX_BASE_URL",
    default_model="claude-sonnet-5-5",
    any_model=True,
    thinking=_THINKING,
)
FOUNDRY = CloudClaude(
    name="foundry",
    title="Microsoft Foundry",
    description="Claude on Microsoft Foundry, with a key or the credentials of Azure",
    cloud="foundry",
    key_variable="ANTHROPIC_FOUNDRY_API_KEY",
    key_use="optional",
    base_url_variable="ANTHROPIC_FOUNDRY_BASE_URL",
    default_model="claude-sonnet-5-5",
    any_model=True,
    thinking=_THINKING,
)
