"""The patterns and sentences of offline.toml."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_CJK = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Job:
    """One part of a request: its kind and the values it names."""

    kind: str
    named: Mapping[str, str]


@dataclass(frozen=True)
class DemoCatalog:
    """The contents of offline.toml."""

    understands: tuple[tuple[str, str], ...]
    examples: tuple[str, ...]
    first_examples: Mapping[str, Sequence[str]]
    split: Mapping[str, re.Pattern[str]]
    ends: str
    signs: Mapping[str, str]
    phrases: Mapping[str, Mapping[str, str]]

    def rules(self) -> Iterator[tuple[str, re.Pattern[str]]]:
        """Yield the job and the pattern of each rule. A pattern is compiled at its first use."""
        return ((job, _compile(pattern)) for job, pattern in self.understands)

    def phrase(self, language: str, name: str, /, **named: object) -> str:
        """Return a sentence in `en` or `zh`."""
        return self.phrases[language][name].format(**named)


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


@cache
def load_catalog() -> DemoCatalog:
    """Return the catalog, read once."""
    text = files("internal.llm.offline").joinpath("offline.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    rules = table["understands"]
    return DemoCatalog(
        understands=tuple((rule["job"], pattern) for rule in rules for pattern in rule["patterns"]),
        examples=tuple(example for rule in rules for example in rule["examples"]),
        first_examples=table["examples"],
        split={
            name: re.compile(table["split"][name], re.IGNORECASE)
            for name in ("next", "quoted", "before", "after", "second", "sentence")
        },
        ends=table["split"]["ends"],
        signs=table["signs"],
        phrases={"en": table["en"], "zh": table["zh"]},
    )


def preload_catalog() -> None:
    """Read the catalog and compile its patterns, if that was not done yet."""
    for _rule in load_catalog().rules():
        pass


def detect_language(text: str) -> str:
    """Return `zh` for text with Chinese characters, else `en`."""
    return "zh" if _CJK.search(text) else "en"
