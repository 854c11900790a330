"""`larkspur models`: which models are known, what they take and cost, and whose key is there."""

import json
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.usage import Price
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.output import sanitize_terminal
from internal.config.loader import Loaded, load
from internal.llm.model_catalog import make_model_book
from internal.llm.registry import PRICES_AS_OF, PROVIDERS, ModelInfo, Provider, find_model


class Row(NamedTuple):
    """A model. Tokens, and US dollars for a million of them; None is not known."""

    provider: str
    model: str
    in_use: bool
    key: Literal["set", "missing", "not needed"]
    context_window: int | None
    max_output_tokens: int | None
    price: Price | None


def list_models(config: str | None, *, as_json: bool) -> int:
    """Print every model that is known, the one in use first of its provider.

    Raises:
        ConfigError: the settings cannot be read.
    """
    rows = list(_rows(load(config=config)))
    if as_json:
        plain = [{**row._asdict(), "price": msgspec.to_builtins(row.price)} for row in rows]
        print(json.dumps(plain, indent=2, ensure_ascii=False))
        return OK
    head = ("provider", "model", "key", "context", "output", "in $/M", "out $/M", "cached $/M")
    table = [head, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print(sanitize_terminal("  ".join(padded).rstrip()))
    print(
        f"* in use. List prices as of {PRICES_AS_OF}; - is unknown."
        " Other models of a provider can be used too."
    )
    return OK


def _rows(loaded: Loaded) -> Iterator[Row]:
    llm, prices = loaded.settings.llm, make_model_book(loaded.settings.llm).prices
    for provider in PROVIDERS:
        known = [info for info in provider.models if not info.name.endswith("-")]
        used = llm.model if provider.name == llm.provider else ""
        first = used or provider.default_model
        if first not in {k.name for k in known}:
            known.insert(0, (find_model(first) or ModelInfo(first))._replace(name=first))
        for model in sorted(known, key=lambda model: model.name != first):
            yield Row(
                provider=provider.name,
                model=model.name,
                in_use=model.name == used,
                key=_key(provider, loaded),
                context_window=model.context_window,
                max_output_tokens=model.max_output_tokens,
                price=prices.price(model.name),
            )


def _key(provider: Provider, loaded: Loaded) -> Literal["set", "missing", "not needed"]:
    llm = loaded.settings.llm
    if provider.key_variable is None:
        return "not needed"
    own = provider.name == llm.provider and llm.api_key is not None
    return "set" if own or provider.name in {*loaded.keyed, *llm.keys} else "missing"


def _cells(row: Row) -> tuple[str, ...]:
    price = row.price
    dollars = (None,) * 3 if price is None else (price.input, price.output, price.cache_read)
    return (
        row.provider,
        f"{row.model}{' *' * row.in_use}",
        row.key,
        *("-" if n is None else f"{n:,}" for n in (row.context_window, row.max_output_tokens)),
        *("-" if dollar is None else f"{dollar:g}" for dollar in dollars),
    )
