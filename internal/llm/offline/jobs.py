"""What the offline demo model understands. Its patterns and sentences stand in offline.toml."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from internal.llm.offline.arithmetic import worked_out

_CJK = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_SHOWN = 4_000
_LONGEST_ASK = 2_000


@dataclass(frozen=True)
class Job:
    """Something understood: its kind, and what was named in the request."""

    kind: str
    named: Mapping[str, str]


@dataclass(frozen=True)
class Errand:
    """A job that takes one tool call."""

    job: Job
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Catalogue:
    """The contents of offline.toml."""

    understands: tuple[tuple[str, re.Pattern[str]], ...]
    examples: tuple[str, ...]
    then: re.Pattern[str]
    ends: str
    signs: Mapping[str, str]
    phrases: Mapping[str, Mapping[str, str]]

    def say(self, language: str, name: str, **named: object) -> str:
        """Return a sentence in `en` or `zh`."""
        return self.phrases[language][name].format(**named)


@cache
def catalogue() -> Catalogue:
    """Return the catalogue, read once."""
    text = files("internal.llm.offline").joinpath("offline.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    rules = table["understands"]
    return Catalogue(
        understands=tuple(
            (rule["job"], re.compile(pattern, re.IGNORECASE | re.DOTALL))
            for rule in rules
            for pattern in rule["patterns"]
        ),
        examples=tuple(example for rule in rules for example in rule["examples"]),
        then=re.compile(table["split"]["then"], re.IGNORECASE),
        ends=table["split"]["ends"],
        signs=table["signs"],
        phrases={"en": table["en"], "zh": table["zh"]},
    )


def language_of(text: str) -> str:
    """Return `zh` for a text with Chinese characters, else `en`."""
    return "zh" if _CJK.search(text) else "en"


def understand(text: str) -> list[Job]:
    """Return the jobs in a request, none when any part of it is not understood."""
    known = catalogue()
    if (job := _job(known, text)) is not None:
        return [job]
    jobs = [_job(known, part) for part in known.then.split(text)]
    return [job for job in jobs if job is not None] if None not in jobs else []


def _job(known: Catalogue, text: str) -> Job | None:
    text = text.strip(known.ends + " \t\r\n")
    if len(text) > _LONGEST_ASK:  # patterns need no more, and must not take forever
        return None
    for kind, pattern in known.understands:
        if match := pattern.fullmatch(text):
            return Job(kind, {name: value for name, value in match.groupdict().items() if value})
    return None


# Which tool does a job, and which of the things named in the request are its arguments.
_TOOLS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "list": ("list_dir", {"path": "path"}),
    "poem": ("write_file", {"path": "path", "content": "text"}),
    "write": ("write_file", {"path": "path", "content": "text"}),
    "count": ("read_file", {"path": "path"}),
    "read": ("read_file", {"path": "path"}),
    "shell": ("shell", {"command": "command"}),
    "fetch": ("web_fetch", {"url": "url"}),
    "search": ("search_files", {"pattern": "text"}),
    "ask": ("request_user", {"question": "question"}),
    "choose": ("request_user", {"question": "question", "options": "options"}),
    "several": ("request_user", {"question": "question", "options": "options"}),
}
_PLAN = "plan.md"


def errands(job: Job, language: str) -> list[Errand]:
    """Return the tool calls that a job takes, one after the other; none for mere talk."""
    if job.kind != "plan":
        return [_errand(job, language)] if job.kind in _TOOLS else []
    outline = catalogue().say(language, "outline", topic=job.named["topic"])
    steps = (
        Job("list", {}),
        Job("write", {"path": _PLAN, "text": outline}),
        Job("read", {"path": _PLAN}),
    )
    return [_errand(step, language) for step in steps]


def _errand(job: Job, language: str) -> Errand:
    named: dict[str, Any] = dict(job.named)
    if job.kind == "list":
        named.setdefault("path", ".")
    if job.kind == "poem":
        named["text"] = catalogue().say(language, "haiku", topic=named["topic"])
    if job.kind == "write":
        named["text"] += "\n"
    if job.kind in {"choose", "several"}:
        named["question"] = catalogue().say(language, f"question_{job.kind}")
        named["options"] = catalogue().say(language, "options").split("|")
    tool, keys = _TOOLS[job.kind]
    arguments = {name: named[key] for name, key in keys.items()}
    if job.kind == "several":
        arguments["multiple"] = True
    return Errand(Job(job.kind, named), tool, arguments)


def label(job: Job, language: str) -> str:
    """Return what a job is about, in a few words."""
    return catalogue().say(language, f"label_{job.kind}", **_named(job, language))


def report(job: Job, result: str, language: str) -> str:
    """Return what came of a job, told from the tool's real result."""
    known = catalogue()
    shown = result.strip() or known.say(language, "nothing")
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + " …"
    facts = {**_named(job, language), "result": shown, "words": len(_WORD.findall(result))}
    return known.say(language, f"done_{job.kind}", **facts)


def _named(job: Job, language: str) -> dict[str, str]:
    """Return what a job names, as a person says it."""
    if job.named.get("path") == ".":
        return {**job.named, "path": catalogue().say(language, "here")}
    return dict(job.named)


def chat(job: Job, language: str) -> str:
    """Return the answer to a job that takes no tool."""
    known = catalogue()
    if job.kind == "sum":
        text = job.named["sum"]
        for sign, meant in known.signs.items():
            text = text.replace(sign, meant)
        result = worked_out(text)
        name = "no_sum" if result is None else "sum"
        return known.say(language, name, sum=job.named["sum"].strip(), result=result)
    if job.kind == "help":
        return understood("help", language)
    return known.say(language, job.kind)


def understood(opening: str, language: str) -> str:
    """Return an opening sentence and the examples of that language."""
    known = catalogue()
    lines = (f"- {text}" for text in known.examples if language_of(text) == language)
    return "\n".join((known.say(language, opening), "", *lines))
