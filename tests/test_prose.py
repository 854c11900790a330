"""The grammar of docstrings: nouns in place of pronoun phrases.

The figures are occurrences per 1,000 docstrings. Established Python projects have 0.3 to 1.8.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests import ROOT
from tests.support.tracked_files import tracked_files

pytestmark = pytest.mark.slow

PHRASES = {
    "what it is": r"\bwhat (?:it|they|is|was|are|were|a|the|has|have|can)\b",
    "those of": r"\bthose (?:of|that|which)\b",
    "for none": r"\bfor none\b|\bNone for\b",
    "known of": r"\b(?:known|told|done|asked|said) of\b|\bof which\b",
    "a question word first": r"\A(?:What|Who|How|Why) ",
}

# The figures of today, rounded up; they may only fall. Most of what is left is read at run time:
# sections of the settings file, fields of events, and descriptions of the HTTP API.
PRODUCT = {"what it is": 2, "those of": 2, "for none": 1, "known of": 1, "a question word first": 4}
TESTS = {"what it is": 2, "those of": 1, "for none": 1, "known of": 1, "a question word first": 1}

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def _openings(*folders: str) -> list[str]:
    """Return the first paragraph of each docstring."""
    return [
        text.split("\n\n")[0]
        for path in tracked_files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node))
    ]


def _rates(openings: list[str]) -> Iterator[tuple[str, float]]:
    for name, pattern in PHRASES.items():
        found = sum(bool(re.search(pattern, opening)) for opening in openings)
        yield name, 1000 * found / len(openings)


@pytest.mark.parametrize(
    ("folders", "most"),
    [(("internal", "cmd"), PRODUCT), (("tests",), TESTS)],
    ids=["product", "tests"],
)
def test_docstrings_use_nouns(folders: tuple[str, ...], most: dict[str, int]) -> None:
    rates = dict(_rates(_openings(*folders)))
    assert {name: rate for name, rate in rates.items() if rate > most[name]} == {}
    assert {name: rate for name, rate in rates.items() if rate < most[name] - 1} == {}, "lower it"


def test_the_check_finds_examples() -> None:
    found = dict(_rates(["What it is.", "Return those of a run, "]))
    assert found["a question word first"] == found["those of"] == 500
