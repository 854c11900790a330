"""Generates `configs/larkspur.yaml` and the tables of settings and model providers in docs/.

`make generate` runs it; a test fails while a generated file is stale.
"""

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel

from internal.config.inspect import shown
from internal.config.setting_keys import KEYS, VARIABLES, section_of
from internal.model_providers.registry import PROVIDERS, Provider
from internal.settings.settings import Settings

_HEAD = """\
# Every setting of Larkspur with its default. Copy what you change to $LARKSPUR_HOME/config.yaml.
# An empty value is one that is not set. Unknown keys are errors. ${VARIABLE} is expanded.
"""
# the loader derives the value of these keys when they are unset
_UNSET = {"llm.provider", "llm.model"}


def yaml_text() -> str:
    """Return every key with its default and explanation as a usable configuration file."""
    return _HEAD + "".join(_section(Settings, "", 0))


def settings_table() -> str:
    """Return every key with its default, variable and explanation as a Markdown table."""
    variables = {key: name for name, key in VARIABLES.items()}
    rows = (
        f"| `{key}` | {_default(key) and f'`{_default(key)}`'} | {field.description} |"
        f" `{variables[key]}` |"
        for key, field in KEYS.items()
    )
    return "\n".join(("| key | default | | variable |", "|---|---|---|---|", *rows))


def provider_table() -> str:
    """Return the model providers with their keys and default models as a Markdown table."""
    rows = (
        f"| `{p.name}` | {p.description} | {_quoted(p.key_variables) or 'none'} |"
        f" `{p.default_model}` |"
        for p in PROVIDERS
    )
    return "\n".join(
        ("| provider | what it is | key | default model |", "|---|---|---|---|", *rows)
    )


def ability_table() -> str:
    """Return the known abilities of each provider's requests and models as a Markdown table."""
    head = (
        "| provider | addresses | without sight | thinking | oddities |",
        "|---|---|---|---|---|",
    )
    rows = (
        f"| `{p.name}` | {_quoted(map(_host, p.regions)) or 'yours'} |"
        f" {_quoted(info.name for info in p.models if info.pictures is False)} |"
        f" {_quoted(dict.fromkeys(name for rule in p.thinking for name in rule.low))} |"
        f" {'; '.join(_oddities(p))} |"
        for p in PROVIDERS
        if p.name != "offline"
    )
    return "\n".join((*head, *rows))


def _oddities(provider: Provider) -> Iterator[str]:
    for name, value in provider.dialect.items():
        yield _ODDITIES[name].format(value)
    header = getattr(provider, "key_header", "authorization")
    if header != "authorization":
        yield f"the key is in the header `{header}`"
    if provider.needs_address:
        yield "needs the address of your resource"
    if provider.key_use == "optional":
        yield "a key is one of several credentials"


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_ODDITIES = {
    "limit_field": "the output limit is `{}`",
    "count_tokens": "no `stream_options`",
    "temperature": "no temperature",
    "tool_choice": "no `tool_choice`: no tools are offered where none may be called",
    "resend_reasoning": "reasoning goes back with the calls that it led to",
    "reasoning_in_content": "reasoning is in the text, in `<think>`",
    "call_ids": "ids of calls have nine letters and digits",
    "user_after_results": "no message of a person right after a result",
}


def insert_table(text: str, name: str, table: str) -> str:
    """Return a page with a table between its marks `<!-- NAME: begin -->` and `… end -->`."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"


def _section(model: type[BaseModel], prefix: str, depth: int) -> list[str]:
    lines: list[str] = []
    for name, field in model.model_fields.items():
        key = prefix + name
        inner = section_of(field)
        if inner is None:
            lines += ["\n"] * (depth == 0)
            lines += [f"# {field.description}\n", f"{name}: {_default(key)}".rstrip() + "\n"]
        else:
            opening = f"{name}:" if inner.model_fields else f"{name}: {{}}"
            text = inspect.getdoc(inner)  # __doc__ is indented before Python 3.13
            lines += ["\n"] * (depth == 0) + [f"# {text}\n", f"{opening}\n"]
            lines += _section(inner, f"{key}.", depth + 1)
    return [textwrap.indent(line, "  " * bool(depth)) for line in lines]


def _default(key: str) -> str:
    default = KEYS[key].default
    return "" if default is None or key in _UNSET else shown(default)


GENERATED = (
    ("docs/settings.md", "keys", settings_table),
    ("docs/models.md", "providers", provider_table),
    ("docs/models.md", "abilities", ability_table),
)
"""The generated tables: page, name of the marks, and the function that returns the table."""


def main() -> None:
    """Write the generated files of the checkout in the working directory."""
    Path("configs/larkspur.yaml").write_text(yaml_text(), encoding="utf-8")
    for path, name, table in GENERATED:
        page = Path(path)
        page.write_text(
            insert_table(page.read_text(encoding="utf-8"), name, table()), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
