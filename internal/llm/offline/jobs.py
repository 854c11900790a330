"""Parses requests for the offline demo model. Patterns and sentences are in offline.toml."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

from internal.llm.offline.arithmetic import evaluate

_CJK = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_HEADER = re.compile(r"\A\[[^\n]*\]\n+")
"""The line with which `read_file` begins the text of a document."""
_SHOWN = 4_000
_MAX_QUOTE_CHARACTERS = 800
_MAX_QUOTED_LINES = 5
_MAX_REQUEST_CHARACTERS = 2_000
_MAX_PARTS = 8
_COURTESIES = frozenset({"greet", "thanks"})
_CLOSING_QUOTES = {"`": "`", '"': '"', "“": "”"}


@dataclass(frozen=True)
class Job:
    """One part of a request: its kind and the values it names."""

    kind: str
    named: Mapping[str, str]


@dataclass(frozen=True)
class ToolJob:
    """A job that takes one tool call."""

    job: Job
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class DemoCatalog:
    """The contents of offline.toml."""

    understands: tuple[tuple[str, re.Pattern[str]], ...]
    examples: tuple[str, ...]
    first_examples: Mapping[str, Sequence[str]]
    split: Mapping[str, re.Pattern[str]]
    ends: str
    signs: Mapping[str, str]
    phrases: Mapping[str, Mapping[str, str]]

    def phrase(self, language: str, name: str, **named: object) -> str:
        """Return a sentence in `en` or `zh`."""
        return self.phrases[language][name].format(**named)


@cache
def load_catalog() -> DemoCatalog:
    """Return the catalog, read once."""
    text = files("internal.llm.offline").joinpath("offline.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    rules = table["understands"]
    return DemoCatalog(
        understands=tuple(
            (rule["job"], re.compile(pattern, re.IGNORECASE | re.DOTALL))
            for rule in rules
            for pattern in rule["patterns"]
        ),
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


def detect_language(text: str) -> str:
    """Return `zh` for text with Chinese characters, else `en`."""
    return "zh" if _CJK.search(text) else "en"


def parse_jobs(text: str) -> list[Job]:
    """Return the jobs in a request, or none if any part of it is not understood.

    Of all ways to divide the request into parts that are understood, the one with the most parts
    counts, so that no part is taken as a value of another. Greetings beside other parts are left
    out.
    """
    known = load_catalog()
    if len(text) > _MAX_REQUEST_CHARACTERS:  # bounds the running time of the patterns
        return []
    parts = _parts(known, text)
    best: list[list[Job] | None] = [[]]  # the jobs before each boundary
    for end in range(1, len(parts) + 1):
        found: list[Job] | None = None
        for start in range(end):
            before = best[start]
            if before is None or (found is not None and len(before) < len(found)):
                continue
            job = _job(known, text[parts[start][0] : parts[end - 1][1]])
            found = found if job is None else [*before, job]
        best.append(found)
    jobs = best[-1] or []
    return [job for job in jobs if job.kind not in _COURTESIES] or jobs[:1]


def find_unknown_part(text: str) -> str:
    """Return the first part of a request that is not understood beside one that is, or ""."""
    known = load_catalog()
    if len(text) > _MAX_REQUEST_CHARACTERS:
        return ""
    parts = [text[start:end].strip() for start, end in _parts(known, text)]
    unknown = [part for part in parts if _job(known, part) is None]
    return unknown[0] if 0 < len(unknown) < len(parts) else ""


def _parts(known: DemoCatalog, text: str) -> list[tuple[int, int]]:
    """Return where the parts of a request begin and end, the whole one if there are too many."""
    quoted = [match.span() for match in known.split["quoted"].finditer(text)]
    parts, start = [], 0
    for match in known.split["next"].finditer(text):
        if not any(first < match.end() and match.start() < last for first, last in quoted):
            parts.append((start, match.start()))
            start = match.end()
    parts.append((start, len(text)))
    parts = [(start, end) for start, end in parts if text[start:end].strip(known.ends + "\t\r\n")]
    return parts if 0 < len(parts) <= _MAX_PARTS else [(0, len(text))]


def _job(known: DemoCatalog, text: str) -> Job | None:
    """Return the job of one part, with or without words of courtesy around it."""
    text = text.strip(known.ends + "\t\r\n")
    plain = known.split["before"].match(text)
    rest = text[plain.end() :] if plain else text
    for candidate in dict.fromkeys((rest, text, _without_end(known, rest))):
        for kind, pattern in known.understands:
            match = pattern.fullmatch(candidate)
            if match and not _holds_second_request(known, match):
                named = {name: value for name, value in match.groupdict().items() if value}
                return Job(kind, named)
    return None


def _without_end(known: DemoCatalog, text: str) -> str:
    return re.sub(f"(?:{known.split['after'].pattern})$", "", text, flags=re.IGNORECASE)


def _holds_second_request(known: DemoCatalog, match: re.Match[str]) -> bool:
    """Return True if a value without quotes contains what looks like another request."""
    for name, value in match.groupdict(default="").items():
        before = match.string[max(0, match.start(name) - 1) : match.start(name)]
        if before in _CLOSING_QUOTES:
            ends = _CLOSING_QUOTES[before] in value
        else:
            unquoted = known.split["quoted"].sub("", value)
            ends = known.split["second"].search(unquoted) is not None
            if name in {"command", "path", "url"}:
                ends = ends or known.split["sentence"].search(value) is not None
        if ends:
            return True
    return False


# The tool of each job kind and which named values are its arguments.
_TOOLS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "list": ("list_dir", {"path": "path"}),
    "poem": ("write_file", {"path": "path", "content": "text"}),
    "write": ("write_file", {"path": "path", "content": "text"}),
    "report": ("write_file", {"path": "path", "content": "text"}),
    "summary": ("read_file", {"path": "path"}),
    "find": ("read_file", {"path": "path"}),
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
_REPORT = "output/report.md"
_READS = frozenset({"count", "find", "read", "summary"})


def with_attachments(jobs: Sequence[Job], attached: Mapping[str, str]) -> list[Job]:
    """Return jobs with the paths of the attached files that they name.

    `attached` are the paths of the files by name, the newest last, which is the file that a job
    without a path means. None of the jobs is returned if such a job has no file.
    """
    found: list[Job] = []
    for job in jobs:
        if job.kind not in _READS:
            found.append(job)
            continue
        path = job.named.get("path") or next(reversed([*attached]), "")
        if not path:
            return []
        found.append(Job(job.kind, {**job.named, "path": attached.get(path, path)}))
    return found


def tool_jobs(job: Job, language: str) -> list[ToolJob]:
    """Return the tool calls of a job in order; none for small talk."""
    if job.kind != "plan":
        return [_tool_job(job, language)] if job.kind in _TOOLS else []
    outline = load_catalog().phrase(language, "outline", topic=job.named["topic"])
    steps = (
        Job("list", {}),
        Job("write", {"path": _PLAN, "text": outline}),
        Job("read", {"path": _PLAN}),
    )
    return [_tool_job(step, language) for step in steps]


def _tool_job(job: Job, language: str) -> ToolJob:
    named: dict[str, Any] = dict(job.named)
    if job.kind == "list":
        named.setdefault("path", ".")
    if job.kind == "poem":
        named["text"] = load_catalog().phrase(language, "haiku", topic=named["topic"])
    if job.kind == "report":
        topic = named.get("topic") or load_catalog().phrase(language, "topic")
        text = load_catalog().phrase(language, "report", topic=topic)
        named = {"topic": topic, "path": _REPORT, "text": text}
    if job.kind == "write":
        named["text"] += "\n"
    if job.kind in {"choose", "several"}:
        named["question"] = load_catalog().phrase(language, f"question_{job.kind}")
        named["options"] = load_catalog().phrase(language, "options").split("|")
    tool, keys = _TOOLS[job.kind]
    arguments = {name: named[key] for name, key in keys.items()}
    if job.kind == "several":
        arguments["multiple"] = True
    return ToolJob(Job(job.kind, named), tool, arguments)


def describe_job(job: Job, language: str) -> str:
    """Return a short description of a job."""
    return load_catalog().phrase(language, f"label_{job.kind}", **_named(job, language))


def describe_result(job: Job, result: str, language: str) -> str:
    """Return a sentence about the outcome of a job, from the tool's real result."""
    known = load_catalog()
    if job.kind in _READS:
        result = _HEADER.sub("", result, count=1)
    shown = result.strip() or known.phrase(language, "nothing")
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + " …"
    facts = {**_named(job, language), "result": shown, "words": len(_WORD.findall(result))}
    if job.kind not in {"find", "summary"}:
        return known.phrase(language, f"done_{job.kind}", **facts)
    lines = _lines_about(job.named["text"], result) if job.kind == "find" else []
    name = "done_find_none" if job.kind == "find" and not lines else f"done_{job.kind}"
    facts["quote"] = _quote("\n".join(lines) or shown)
    return known.phrase(language, name, **facts)


def _lines_about(text: str, content: str) -> list[str]:
    """Return the first lines that contain all words of a text."""
    words = [word.casefold() for word in _WORD.findall(text)]
    lines = (line.strip() for line in content.splitlines())
    found = (line for line in lines if words and all(word in line.casefold() for word in words))
    return list(islice(found, _MAX_QUOTED_LINES))


def _quote(text: str) -> str:
    """Return the beginning of a text as a quotation in Markdown."""
    start = text[:_MAX_QUOTE_CHARACTERS].strip()
    lines = [line.strip() for line in start.splitlines() if line.strip()]
    return "\n".join(f"> {line}" for line in lines) + (" …" if start != text.strip() else "")


def _named(job: Job, language: str) -> dict[str, str]:
    """Return the values that a job names, for a sentence."""
    if job.named.get("path") == ".":
        return {**job.named, "path": load_catalog().phrase(language, "here")}
    return dict(job.named)


def answer_job(job: Job, language: str) -> str:
    """Return the answer to a job that takes no tool."""
    known = load_catalog()
    if job.kind == "sum":
        text = job.named["sum"]
        for sign, meant in known.signs.items():
            text = text.replace(sign, meant)
        result = evaluate(text)
        name = "no_sum" if result is None else "sum"
        return known.phrase(language, name, sum=job.named["sum"].strip(), result=result)
    if job.kind == "help":
        return introduction("help", language)
    return known.phrase(language, job.kind)


def introduction(opening: str, language: str, **named: str) -> str:
    """Return an introduction and examples in the language: all of them only for `help`."""
    known = load_catalog()
    examples: Iterable[str] = known.first_examples[language]
    if opening == "help":
        examples = (text for text in known.examples if detect_language(text) == language)
    lines = (f"- {text}" for text in examples)
    return "\n".join((known.phrase(language, opening, **named), "", *lines))
