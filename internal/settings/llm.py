"""Settings of the models."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from internal.model_providers.registry import (
    OFFLINE_MODEL,
    PROVIDER_NAMES,
    ThinkingLevel,
    find_provider,
)
from internal.settings.types import (
    ConfigError,
    Count,
    Dollars,
    File,
    Retries,
    Seconds,
    Secret,
    Section,
    Temperature,
    Text,
    WebAddress,
    key,
    one_of,
)


def _known_provider(name: object) -> object:
    if name not in PROVIDER_NAMES:
        *others, last = (f"'{known}'" for known in PROVIDER_NAMES)
        raise PydanticCustomError(
            "unknown_provider",
            "unknown provider",
            {"expected": f"{', '.join(others)} or {last}"},
        )
    return name


def _model_of_provider(text: str) -> str:
    provider, colon, model = text.partition(":")
    if not colon or not model.strip() or provider not in PROVIDER_NAMES:
        raise ValueError("must have the form provider:model, such as openai:gpt-6-sol")
    return text


ProviderName = Annotated[str, BeforeValidator(_known_provider)]
RemoteProviderName = Annotated[str, one_of(name for name in PROVIDER_NAMES if name != "offline")]
ModelOfProvider = Annotated[str, AfterValidator(_model_of_provider)]


class PriceSettings(Section):
    """What a model costs, in US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars = 0.0
    cache_write: Dollars = 0.0


class LlmSettings(Section):
    """Which model does the work, and how it is reached."""

    provider: ProviderName = key(
        "offline", "unset: the provider whose key, model or address is set, else offline."
    )
    model: Text = key(OFFLINE_MODEL, "unset: the provider's default, see docs/models.md.")
    api_key: Secret | None = key(
        None, "API key of the provider; also read from its variable, such as ANTHROPIC_API_KEY."
    )
    base_url: WebAddress | None = key(
        None,
        "Base URL instead of the provider's; also read from ANTHROPIC_BASE_URL, OPENAI_BASE_URL.",
    )
    keys: Mapping[RemoteProviderName, Secret] = key(
        {}, "{provider: key} of the fallbacks' providers; also read from their variables."
    )
    base_urls: Mapping[RemoteProviderName, WebAddress] = key(
        {}, "{provider: base URL} of the fallbacks' providers."
    )
    recording: File | None = key(
        None, "A recorded session that the offline demo model replays, see docs/models.md."
    )
    thinking: ThinkingLevel | None = key(
        None,
        "off, low, medium or high: how much models that can think do so; unset: their default.",
    )
    tool_calls: Literal["native", "text"] = key(
        "native", "text: describes tools in the prompt, for models without tool calling."
    )
    max_output_tokens: Count | None = key(
        None, "Maximum output of one call, in tokens; unset: that of the model, see docs/models.md."
    )
    context_window: Count = key(200_000, "Context window to use, in tokens, including the output.")
    temperature: Temperature | None = key(None, "0 to 2; unset: the provider's default.")
    request_timeout_seconds: Seconds = key(
        120.0, "Seconds without data from the provider after which a call fails."
    )
    max_retries: Retries = key(
        10, "Number of retries while the model is overloaded or cannot be reached."
    )
    fallbacks: tuple[ModelOfProvider, ...] = key(
        (), "provider:model to use, in order, when the model is unavailable."
    )
    concurrency: Count = key(16, "Maximum number of concurrent model calls in this process.")
    prices: Mapping[str, PriceSettings] = key(
        {}, "{model: {input, output, cache_read, cache_write}} in US dollars per million tokens."
    )

    @model_validator(mode="before")
    @classmethod
    def _model_follows_provider(cls, given: Any) -> Any:
        if isinstance(given, dict) and "model" not in given:
            provider = find_provider(str(given.get("provider")))
            return {**given, "model": provider.default_model} if provider else given
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.provider == "offline") != (self.model == OFFLINE_MODEL):
            raise ValueError(
                f"provider is {self.provider}, which has no model {self.model}; set both or neither"
            )
        if self.recording is not None and self.provider != "offline":
            raise ValueError("recording needs provider: offline")
        if self.max_output_tokens is not None and self.max_output_tokens >= self.context_window:
            raise ValueError("max_output_tokens must be smaller than context_window")
        return self

    def credentials(self, provider: str) -> tuple[str, str | None]:
        """Return the key of a provider, "" where none is set, and its address if one is set."""
        key, base_url = self.keys.get(provider), self.base_urls.get(provider)
        if provider == self.provider:
            key, base_url = self.api_key or key, self.base_url
        return (key.get_secret_value() if key else ""), base_url

    def require_api_key(self) -> SecretStr:
        """Return the key of the provider; it is empty if no key is needed.

        A base URL of the user's own that implements OpenAI's API needs none.

        Raises:
            ConfigError: no key is set; the sentence names the settings to set.
        """
        provider = find_provider(self.provider)
        if self.api_key is None and provider is not None and provider.needs_key(self.base_url):
            raise ConfigError(
                f"The provider {self.provider} needs a key: set {provider.key_variable} or"
                f" llm.api_key, store one with `larkspur models key {self.provider}`,"
                " or set llm.provider to offline for the offline demo model."
            )
        return self.api_key or SecretStr("")
