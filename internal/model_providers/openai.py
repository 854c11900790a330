"""OpenAI, and its models on Azure."""

from internal.model_providers.provider import ModelInfo, OpenAICompatible, efforts, prices

# `none` turns reasoning off, the only way in which gpt-6 takes tools over Chat Completions: see
# `Dialect.effort`. Names of models of other servers get no field.
_THINKING = (
    efforts("gpt-6", "gpt-5.", off="none"),
    efforts("gpt-5", off="minimal"),  # learn.microsoft.com, reasoningeffort, 2026-11-28
    efforts("o1", "o3", "o4", off="low"),
)

# developers.openai.com/api/docs/models, read 2026-11-21. Calls of gpt-6 over 272,000 tokens cost
# twice as much.
OPENAI = OpenAICompatible(
    name="openai",
    title="OpenAI",
    description="OpenAI, or any server that implements Chat Completions",
    base_url="https://api.openai.com/v1",
    regions=("https://api.openai.com/v1",),
    key_variable="OPENAI_API_KEY",
    key_pattern=r"sk-(?:(?:proj|svcacct|admin|None)-[\w-]{8,}|[0-9A-Za-z]{48})",
    base_url_variable="OPENAI_BASE_URL",
    default_model="gpt-6-sol",
    models=(
        ModelInfo("gpt-6-sol", 1_050_000, 128_000, prices(2.0, 10.0, 0.2)),
        ModelInfo("gpt-6-luna", 1_050_000, 128_000, prices(0.1, 0.5, 0.01)),
        ModelInfo("gpt-6-astra", 1_050_000, 128_000, prices(10.0, 50.0, 1.0)),
        ModelInfo("gpt-6.1-terra", 1_050_000, 128_000, prices(1.0, 5.0, 0.05)),
        ModelInfo("gpt-6.1-sol", 1_050_000, 128_000, prices(2.0, 10.0, 0.1)),
        ModelInfo("gpt-6.2-sol", 1_050_000, 128_000, prices(2.0, 10.0, 0.1)),
        ModelInfo("gpt-5.4-mini", 400_000, 128_000, prices(0.75, 4.5, 0.075, 0.75)),
        ModelInfo("gpt-5.4-nano", None, None, prices(0.2, 1.25, 0.02, 0.2)),
    ),
    dialect={"limit_field": "max_completion_tokens"},
    thinking=_THINKING,
)

# learn.microsoft.com/azure/foundry/openai/api-version-lifecycle, 2026-11-28: the v1 API is at
# https://RESOURCE.openai.azure.com/openai/v1, needs no `api-version`, and takes the key in the
# header `api-key`. The model is the name of a deployment, by default the name of its model.
AZURE = OpenAICompatible(
    name="azure",
    title="Azure OpenAI",
    description="models of OpenAI on Azure, at the address of your resource",
    base_url="",
    own_path="/openai/v1",
    key_header="api-key",
    key_use="always",
    needs_address=True,
    key_variable="AZURE_OPENAI_API_KEY",
    base_url_variable="AZURE_OPENAI_ENDPOINT",
    default_model="gpt-6-sol",
    any_model=True,
    dialect={"limit_field": "max_completion_tokens"},
    thinking=_THINKING,
)
