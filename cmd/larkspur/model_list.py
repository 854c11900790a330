"""The list of known models, with the settings that apply to them."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from internal.channels.cli.application import ListedModel
from internal.config.loader import Loaded
from internal.llm.model_catalog import make_model_book
from internal.model_providers.registry import PROVIDERS, ModelInfo, Provider, find_model


def list_models(loaded: Loaded) -> Iterator[ListedModel]:
    """Yield the known models of every provider, the first one of each being its default."""
    llm, prices = loaded.settings.llm, make_model_book(loaded.settings.llm).prices
    for provider in PROVIDERS:
        models = [info for info in provider.models if not info.name.endswith("-")]
        used = llm.model if provider.name == llm.provider else ""
        first = used or provider.default_model
        if first not in {info.name for info in models}:
            models.insert(0, (find_model(first) or ModelInfo(first))._replace(name=first))
        for info in sorted(models, key=lambda info: info.name != first):
            price = prices.price(info.name)
            yield ListedModel(
                provider=provider.name,
                model=info.name,
                in_use=info.name == used,
                key=_key_state(provider, loaded),
                context_window=info.context_window,
                max_output_tokens=info.max_output_tokens,
                price=None if price is None else msgspec.to_builtins(price),
            )


def _key_state(provider: Provider, loaded: Loaded) -> Literal["set", "missing", "not needed"]:
    llm = loaded.settings.llm
    if provider.key_variable is None:
        return "not needed"
    own = provider.name == llm.provider and llm.api_key is not None
    if own or provider.name in {*loaded.keyed, *llm.keys}:
        return "set"
    return "not needed" if provider.key_use == "optional" else "missing"
