"""Writes the models down for people: `configs/larkspur.yaml` and the table in `docs/settings.md`.

`python -m internal.config.reference` in the checkout writes both; a test keeps them fresh.
"""

import textwrap
from pathlib import Path

from pydantic import BaseModel

from internal.config.inspect import shown
from internal.config.keys import KEYS, VARIABLES, section_of
from internal.config.settings import Settings

BEGIN, END = "<!-- keys: begin -->", "<!-- keys: end -->"
_HEAD = """\
# Every setting of Larkspur with its default. Copy what you change to $LARKSPUR_HOME/config.yaml.
# An empty value is one that is not set. Unknown keys are errors. ${VARIABLE} is expanded.
"""
# what an unset key comes to is decided when the settings are read, so no value may stand here
_UNSET = {"llm.provider", "llm.model"}


def yaml_text() -> str:
    """Write every key with its default and its line of explanation, as a file that can be used."""
    return _HEAD + "".join(_section(Settings, "", 0))


def table() -> str:
    """Write every key with its default, its variable and its explanation as a Markdown table."""
    variables = {key: name for name, key in VARIABLES.items()}
    rows = (
        f"| `{key}` | {_default(key) and f'`{_default(key)}`'} | {field.description} |"
        f" `{variables[key]}` |"
        for key, field in KEYS.items()
    )
    return "\n".join(("| key | default | | variable |", "|---|---|---|---|", *rows))


def page(text: str) -> str:
    """Put the table into a page, between the two marks."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def _section(model: type[BaseModel], prefix: str, depth: int) -> list[str]:
    lines: list[str] = []
    for name, field in model.model_fields.items():
        key = prefix + name
        inner = section_of(field)
        if inner is None:
            lines += [f"# {field.description}\n", f"{name}: {_default(key)}".rstrip() + "\n"]
        else:
            opening = f"{name}:" if inner.model_fields else f"{name}: {{}}"
            lines += ["\n"] * (depth == 0) + [f"# {inner.__doc__}\n", f"{opening}\n"]
            lines += _section(inner, f"{key}.", depth + 1)
    return [textwrap.indent(line, "  " * bool(depth)) for line in lines]


def _default(key: str) -> str:
    default = KEYS[key].default
    return "" if default is None or key in _UNSET else shown(default)


def main() -> None:
    """Write both files of the checkout this is run in."""
    Path("configs/larkspur.yaml").write_text(yaml_text(), encoding="utf-8")
    settings = Path("docs/settings.md")
    settings.write_text(page(settings.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
