"""The simulator grants the scopes that the documentation lists."""

import re
from pathlib import Path

import pytest

from internal.simulators.lark.model import (
    BOT_MENTION_EVENTS,
    DEFAULT_SCOPES,
    GROUP_MESSAGES,
    URGENT,
)

DOCS = Path(__file__).parents[5] / "docs"


@pytest.mark.parametrize("page", ["lark.md", "lark.zh.md"])
def test_the_documented_scopes_are_those_of_the_simulator(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    listed = re.findall(r"^ {4}\| \W?`([a-z0-9_.:]+)`\W? \|", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == DEFAULT_SCOPES | {GROUP_MESSAGES, URGENT, BOT_MENTION_EVENTS}
