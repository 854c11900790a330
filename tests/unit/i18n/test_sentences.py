"""Rules of language that hold for every sentence that people read, on every channel."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from internal.i18n import catalog
from tests import ROOT

_STRINGS = re.compile(r"'((?:[^'\\\n]|\\.)*)'|`([^`]*)`")
_INTERNAL = re.compile(r"\b(iter|run_id|task_id|payload|envelope|coordinator|listener|invoke)\b")
_RULES = {
    "names of the program's parts": _INTERNAL,
    "exclamation marks": re.compile(r"[a-z\u4e00-\u9fff][!\uff01]"),
    "two blanks": re.compile(r"[.,a-z]  [A-Za-z]"),
    "narrow punctuation after Chinese": re.compile(r"[\u4e00-\u9fff][,;:?!(]"),
    "apologies and encouragement": re.compile(r"\b(oops|awesome|great|simply)\b", re.IGNORECASE),
}


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def sentences() -> Iterator[tuple[str, str]]:
    """Yield every text of the catalogs of the chats, the terminal and the page."""
    for path in sorted(Path(catalog.__file__).parent.glob("*.json")):
        for text in texts(json.loads(path.read_text(encoding="utf-8"))):
            yield path.name, text
    for path in sorted((ROOT / "web" / "src" / "i18n").glob("*.ts")):
        for match in _STRINGS.finditer(path.read_text(encoding="utf-8")):
            yield path.name, match[1] or match[2] or ""


@pytest.mark.parametrize("rule", _RULES)
def test_no_sentence_contains(rule: str) -> None:
    assert [(name, text) for name, text in sentences() if _RULES[rule].search(text)] == []


def test_all_catalogs_are_read() -> None:
    assert len(list(sentences())) > 1_500
