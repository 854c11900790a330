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
    if language == "en":
        return problem
    for pattern, text in _translations(language):
        if found := pattern.fullmatch(problem):
            parts = found.groupdict()
            name = parts.pop("file_name")
            translated = text.format(**parts)
            return f"{name}\uff1a{translated}" if name else translated
    return problem


@cache
def _translations(language: Language) -> list[tuple[re.Pattern[str], str]]:
    known = load_catalog("file_reasons", language)
    # the ones with the most fixed text first: a placeholder matches anything
    templates = sorted(known, key=lambda template: -len(re.sub(r"{\w+}", "", template)))
    return [(_pattern(template), known[template]) for template in templates]


def _pattern(template: str) -> re.Pattern[str]:
    parts = [
        re.escape(fixed) + (f"(?P<{name}>.*?)" if name else "")
        for fixed, name, _, _ in Formatter().parse(template)
    ]
    return re.compile(f"(?:(?P<file_name>.*): )?{''.join(parts)}", re.DOTALL)
