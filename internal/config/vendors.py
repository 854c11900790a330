"""Providers of models: what their variables are called, and the model each has by default.

Standard library only: whoever needs no more must not wait for the settings.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Vendor(NamedTuple):
    """What a provider calls its variables, None where it has none, and its model by default."""

    key_variable: str | None
    url_variable: str | None
    model: str


# The first whose key is there is the one that does the work when nobody names another.
VENDORS: Mapping[str, Vendor] = {
    "anthropic": Vendor("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "claude-sonnet-5-5"),
    "openai": Vendor("OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-6-sol"),
    "ark": Vendor("ARK_API_KEY", None, "doubao-seed-1-8-251228"),
    "deepseek": Vendor("DEEPSEEK_API_KEY", None, "deepseek-flash"),
    "openrouter": Vendor("OPENROUTER_API_KEY", None, "anthropic/claude-sonnet-5.5"),
    "ollama": Vendor(None, None, "gpt-oss:20b"),
}
