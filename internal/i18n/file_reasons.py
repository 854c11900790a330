"""Translates why files cannot be used.

The reasons are English sentences from many layers, some of them from a child process. The
catalogue has the translation of each by the sentence itself, with its variable parts as
placeholders.
"""

import re
from functools import cache
from string import Formatter

from internal.i18n.catalog import load_catalog
from internal.i18n.language import Language


def translate_problem(problem: str, language: Language) -> str:
    """Return `NAME: REASON` or a reason in a language; an unknown reason stays unchanged."""
    if language == "en" or (found := find_reason(problem)) is None:
        return problem
    template, parts = found
    name = parts.pop("file_name")
    translated = load_catalog("file_reasons", language)[template].format(**parts)
    return f"{name}\uff1a{translated}" if name else translated


def find_reason(problem: str) -> tuple[str, dict[str, str]] | None:
    """Return the key of a reason in the catalogue and its variable parts, None if it is unknown.

    `file_name` is the name of the file before the reason, "" without one.
    """
    for template, pattern in _patterns():
        if found := pattern.fullmatch(problem):
            return template, found.groupdict(default="")
    return None


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    # the ones with the most fixed text first: a placeholder matches anything
    templates = sorted(
        load_catalog("file_reasons", "zh"),
        key=lambda template: -len(re.sub(r"{\w+}", "", template)),
    )
    return [(template, _pattern(template)) for template in templates]


def _pattern(template: str) -> re.Pattern[str]:
    parts = [
        re.escape(fixed) + (f"(?P<{name}>.*?)" if name else "")
        for fixed, name, _, _ in Formatter().parse(template)
    ]
    return re.compile(f"(?:(?P<file_name>.*): )?{''.join(parts)}", re.DOTALL)
