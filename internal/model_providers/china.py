"""Providers whose models are hosted in China; most have a second address for other countries.

Prices in US dollars apply to the international address; where the price of cached tokens is not
public, it is the price of the input. Ark lists its prices in yuan only.
"""

from internal.model_providers.provider import (
    ModelInfo,
    OpenAICompatible,
    ThinkingRule,
    efforts,
    prices,
    switch,
)

# volcengine.com/docs/82379, read 2026-11-21; the second address is BytePlus ModelArk.
ARK = OpenAICompatible(
    name="ark",
    title="Ark",
    description="Volcano Engine Ark (Doubao and others)",
    base_url="https://ark.cn-beijing.volces.com/api/v3",
    regions=(
        "https://ark.cn-beijing.volces.com/api/v3",
        "https://ark.ap-southeast.bytepluses.com/api/v3",
    ),
    key_variable="ARK_API_KEY",
    key_pattern=r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    default_model="doubao-seed-1-8-251228",
    models=(
        ModelInfo("doubao-seed-1-8-", 256_000),
        ModelInfo("doubao-seed-1-6-", 256_000),
        ModelInfo("doubao-seed-2-0-", 256_000),
    ),
    thinking=(switch("doubao-seed-"),),
)

# api-docs.deepseek.com/quick_start/pricing, read 2026-11-21: the prices of its peak hours; outside
# of them it takes half. Its table of models has vision for deepseek-flash only. Thinking:
# docs.agno.com/reference/models/deepseek, 2026-11-28.
DEEPSEEK = OpenAICompatible(
    name="deepseek",
    title="DeepSeek",
    description="DeepSeek",
    base_url="https://api.deepseek.com",
    regions=("https://api.deepseek.com",),
    key_variable="DEEPSEEK_API_KEY",
    key_pattern=r"sk-[0-9a-f]{32}",
    default_model="deepseek-flash",
    models=(
        ModelInfo("deepseek-flash", 1_000_000, 384_000, prices(0.3, 1.2, 0.006, 0.3)),
        ModelInfo(
            "deepseek-v4-pro", 1_000_000, 384_000, prices(1.32, 3.96, 0.044, 1.32), pictures=False
        ),
    ),
    dialect={"resend_reasoning": True},
    thinking=(
        ThinkingRule(
            ("deepseek-",),
            {"thinking": {"type": "disabled"}},
            *(
                {"thinking": {"type": "enabled"}, "reasoning_effort": effort}
                for effort in ("low", "medium", "high")
            ),
        ),
    ),
)

# qwen3.8-max: docs.apiyi.com/api-capabilities/qwen-3-8/overview (2026-08-03) and
# vercel.com/ai-gateway/models/alibaba/qwen3.8-max-0902. qwen3-max: vercel.com/ai-gateway. Fields:
# alibabacloud.com/help/model-studio (compatible mode, `enable_thinking`, `thinking_budget`).
QWEN = OpenAICompatible(
    name="qwen",
    title="Qwen",
    description="Qwen, by Alibaba Cloud Model Studio (DashScope)",
    base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
    regions=(
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    ),
    key_variable="DASHSCOPE_API_KEY",
    key_pattern=r"sk-[0-9a-f]{32}",
    default_model="qwen3.8-max",
    models=(
        ModelInfo("qwen3.8-max", 1_000_000, 131_072, prices(2.0, 6.0, 2.0, 2.0)),
        ModelInfo("qwen3.7-max", 1_000_000, pictures=False),
        ModelInfo("qwen3.6-plus", 1_000_000),
        ModelInfo("qwen3-max", 262_144, 65_536, prices(1.2, 6.0, 1.2, 1.2), pictures=False),
        ModelInfo("qwen-plus", 1_000_000),
    ),
    thinking=(
        ThinkingRule(
            ("qwen",),
            {"enable_thinking": False},
            *(
                {"enable_thinking": True, "thinking_budget": tokens}
                for tokens in (2_048, 8_192, 32_768)
            ),
        ),
    ),
)

# Kimi: the guides at platform.kimi.ai/docs by way of apidog.com, 2026-10-24, prices of
# docs.apiyi.com/api-capabilities/kimi-k3-1/overview as of 2026-10-25, thinking as it was tried for
# docs.rs/synaps-engine 0.11.0, fields of java.agentscope.io. The platform fixes the temperature.
KIMI = OpenAICompatible(
    name="kimi",
    title="Kimi",
    description="Kimi, by Moonshot AI",
    base_url="https://api.moonshot.cn/v1",
    regions=("https://api.moonshot.cn/v1", "https://api.moonshot.ai/v1"),
    key_variable="MOONSHOT_API_KEY",
    other_key_variables=("KIMI_API_KEY",),
    # the keys of OpenAI have the same form, with a mark in the middle
    key_pattern=r"sk-(?!\w*T3BlbkFJ)[0-9A-Za-z]{48}",
    default_model="kimi-k3.1-pro",
    models=(
        ModelInfo("kimi-k3.1-pro", 1_048_576, 1_048_576, prices(2.0, 10.0, 0.2, 2.0)),
        ModelInfo("kimi-k3.1-pro-highspeed", 1_048_576, 1_048_576, prices(4.0, 20.0, 0.2, 4.0)),
        ModelInfo("kimi-k3", 1_048_576, 1_048_576, prices(3.0, 15.0, 0.3, 3.0)),
        ModelInfo("kimi-k2.7-code", 262_144),
        ModelInfo("kimi-k2.6", 262_144),
        ModelInfo("kimi-k2.5", 262_144),
    ),
    dialect={
        "limit_field": "max_completion_tokens",
        "temperature": False,
        "resend_reasoning": True,
    },
    thinking=(
        # it always thinks, and takes low, high and max
        efforts("kimi-k3", off="low", medium="high", high="max"),
        switch("kimi-k2.5", "kimi-k2.6"),
    ),
)

# Z.ai's price table of GLM-5.3 by way of dev.to (2026-08-19) and openrouter.ai; docs.together.ai
# (GLM-5.2); java.agentscope.io (fields: `max_tokens`, no `stream_options`; counts come anyway;
# `tool_choice` can only be `auto`).
GLM = OpenAICompatible(
    name="glm",
    title="GLM",
    description="GLM, by Zhipu (bigmodel.cn and z.ai)",
    base_url="https://open.bigmodel.cn/api/paas/v4",
    regions=("https://open.bigmodel.cn/api/paas/v4", "https://api.z.ai/api/paas/v4"),
    key_variable="ZHIPUAI_API_KEY",
    other_key_variables=("ZAI_API_KEY",),
    key_pattern=r"[0-9a-f]{32}\.[0-9A-Za-z]{16}",
    default_model="glm-5.3",
    models=(
        ModelInfo("glm-5.3", 1_000_000, 131_072, prices(1.4, 4.4, 0.26, 1.4), pictures=False),
        ModelInfo("glm-5.2", 1_000_000, 131_072, prices(1.4, 4.4, 0.26, 1.4), pictures=False),
        ModelInfo("glm-5", 204_800, 131_072, pictures=False),
        ModelInfo("glm-4.7", 169_984, pictures=False),
        ModelInfo("glm-4.6", 204_800, pictures=False),
        ModelInfo("glm-4.5", 131_072, 98_304, prices(0.6, 2.2, 0.6, 0.6), pictures=False),
        ModelInfo("glm-5v"),
        ModelInfo("glm-4.6v"),
        ModelInfo("glm-4.5v"),
    ),
    dialect={"count_tokens": False, "tool_choice": False},
    thinking=(
        # it always thinks, and takes low, high and max; `disabled` is an error
        efforts("glm-5.3", off="low", medium="high", high="max"),
        switch("glm-4", "glm-5"),
    ),
)

# platform.minimax.io/docs/api-reference/text-openai-api and …/guides/text-generation;
# github.com/VladoIvankovic/Codeep v3.14.0 (2026-10-20, prices of M3.1), novita.ai (M3, under
# 512,000 tokens), qiita.com (2026-10-19, `reasoning_effort`), java.agentscope.io (`thinking` of
# M3; `tool_choice` is not one of the fields). Reasoning is in the content, in `<think>`, unless
# `reasoning_split` is sent.
MINIMAX = OpenAICompatible(
    name="minimax",
    title="MiniMax",
    description="MiniMax",
    base_url="https://api.minimaxi.com/v1",
    regions=("https://api.minimaxi.com/v1", "https://api.minimax.io/v1"),
    key_variable="MINIMAX_API_KEY",
    default_model="MiniMax-M3.1-Flash",
    models=(
        ModelInfo("MiniMax-M3.1-Flash", 1_000_000, 524_288, prices(0.15, 0.6, 0.015, 0.15)),
        ModelInfo("MiniMax-M3", 1_000_000, 131_072, prices(0.3, 1.2, 0.06, 0.3)),
        ModelInfo("MiniMax-M2", 204_800, pictures=False),
    ),
    dialect={"limit_field": "max_completion_tokens", "tool_choice": False},
    thinking=(
        # it always thinks: `disabled` is an error (2013, requires adaptive thinking)
        efforts("MiniMax-M3.1", off="low"),
        switch("MiniMax-M3", on="adaptive"),
    ),
)
