"""Other providers, routers, and models on this machine."""

from internal.model_providers.provider import (
    ModelInfo,
    OfflineDemo,
    OpenAICompatible,
    ThinkingRule,
    TokenPrices,
    efforts,
    prices,
)

OFFLINE_MODEL = "offline-demo"

# ai.google.dev/gemini-api/docs/openai and github.com/BerriAI/litellm/discussions/39357,
# 2026-11-28: half of the price until 2026-12-31, then 1.50 and 7.50 dollars.
GEMINI = OpenAICompatible(
    name="gemini",
    title="Gemini",
    description="Gemini, by Google AI Studio",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    regions=("https://generativelanguage.googleapis.com/v1beta/openai",),
    key_variable="GEMINI_API_KEY",
    other_key_variables=("GOOGLE_API_KEY",),
    key_pattern=r"AIza[\w-]{35}",
    default_model="gemini-3.8-flash",
    models=(
        ModelInfo("gemini-3.8-flash", 1_048_576, 65_536, prices(0.75, 3.75, 0.075, 0.75)),
        ModelInfo("gemini-3.6-flash", 1_048_576, 65_536),
        ModelInfo("gemini-3.5-flash", 1_048_576, 65_536),
        ModelInfo("gemini-3-", 1_048_576, 65_536),
        ModelInfo("gemini-2.5-", 1_048_576, 65_536),
    ),
    # Gemini 3 always thinks
    thinking=(efforts("gemini-3", off="minimal"), efforts("gemini-2.5", off="none")),
)

# docs.mistral.ai/models and …/inference/conversations/reasoning (2026-11-28). The price of Mistral
# Large 4, which is in preview, changes. An id of a call has nine letters and digits, and `user` may
# not follow `tool`; counts come without `stream_options`, which is not one of its fields.
MISTRAL = OpenAICompatible(
    name="mistral",
    title="Mistral",
    description="Mistral",
    base_url="https://api.mistral.ai/v1",
    regions=("https://api.mistral.ai/v1",),
    key_variable="MISTRAL_API_KEY",
    default_model="mistral-medium-3-5",
    models=(
        ModelInfo("mistral-medium-3-5", 262_144, 256_000, prices(1.5, 7.5, 1.5, 1.5)),
        ModelInfo("mistral-medium-3.5", 262_144, 256_000, prices(1.5, 7.5, 1.5, 1.5)),
        ModelInfo("mistral-medium-latest", 262_144, 256_000, prices(1.5, 7.5, 1.5, 1.5)),
        ModelInfo("mistral-large-4", 1_048_576, 262_144),
        ModelInfo("mistral-small-2603", 262_144),
        ModelInfo("mistral-small-latest", 262_144),
        ModelInfo("codestral-", 256_000, prices=prices(0.3, 0.9, 0.3, 0.3), pictures=False),
    ),
    dialect={"count_tokens": False, "call_ids": "nine", "user_after_results": False},
    thinking=(
        # they take none and high
        efforts("mistral-medium-", "mistral-small-", off="none", low="high", medium="high"),
        efforts("mistral-large-4", off="none"),
    ),
)

# docs.x.ai/developers/grok-4-7 (2026-09-21) and docs.x.ai/developers/models: twice the price from
# 200,000 tokens on. They always think.
XAI = OpenAICompatible(
    name="xai",
    title="xAI",
    description="Grok, by xAI",
    base_url="https://api.x.ai/v1",
    regions=("https://api.x.ai/v1",),
    key_variable="XAI_API_KEY",
    key_pattern=r"xai-\w{20,}",
    default_model="grok-4.7",
    models=(
        ModelInfo("grok-4.7", 500_000, None, prices(2.0, 6.0, 0.5, 2.0)),
        ModelInfo("grok-4.6", 500_000, None, prices(2.0, 6.0, 0.5, 2.0)),
        ModelInfo("grok-4.5", 500_000, None, prices(2.0, 6.0, 0.5, 2.0)),
        ModelInfo("grok-4.3", 1_000_000, None, prices(1.25, 2.5, 0.2, 1.25)),
        ModelInfo("grok-4.20", 1_000_000, None, prices(1.25, 2.5, 0.2, 1.25)),
    ),
    dialect={"limit_field": "max_completion_tokens"},
    thinking=(efforts("grok-4.5", "grok-4.6", "grok-4.7", off="low"),),
)

# openrouter.ai/docs (reasoning tokens; image generation: a model makes pictures if `modalities`
# says so; 2026-11-28). Its prices change daily, so none is listed.
_MAKES_PICTURES = {"modalities": ["image", "text"]}
OPENROUTER = OpenAICompatible(
    name="openrouter",
    title="OpenRouter",
    description="OpenRouter, which serves the models of many providers",
    base_url="https://openrouter.ai/api/v1",
    regions=("https://openrouter.ai/api/v1",),
    key_variable="OPENROUTER_API_KEY",
    key_pattern=r"sk-or-[\w-]{8,}",
    default_model="anthropic/claude-sonnet-5.5",
    models=(
        ModelInfo("anthropic/claude-sonnet-5.5", 1_000_000, 128_000),
        ModelInfo("google/gemini-2.5-flash-image", fields=_MAKES_PICTURES),
        ModelInfo("google/gemini-3-pro-image", fields=_MAKES_PICTURES),
        ModelInfo("google/gemini-3.1-flash-image", fields=_MAKES_PICTURES),
    ),
    any_model=True,
    thinking=(
        ThinkingRule(
            ("",), *({"reasoning": {"effort": e}} for e in ("none", "low", "medium", "high"))
        ),
    ),
)

# docs.ollama.com/api/openai-compatibility, 2026-11-28
OLLAMA = OpenAICompatible(
    name="ollama",
    title="Ollama",
    description="Ollama, at `http://127.0.0.1:11434/v1` by default",
    base_url="http://127.0.0.1:11434/v1",
    regions=("http://127.0.0.1:11434/v1",),
    default_model="gpt-oss:20b",
    models=(ModelInfo("gpt-oss:20b"),),
    any_model=True,
    thinking=(efforts("", off="none"),),
)

OFFLINE = OfflineDemo(
    name="offline",
    title="Offline demo",
    description="the offline demo model: a few rules, not a real model",
    default_model=OFFLINE_MODEL,
    models=(ModelInfo("offline-", prices=TokenPrices(0.0, 0.0, 0.0, 0.0)),),
    any_model=True,
)
