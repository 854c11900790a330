"""Parses requests for the offline demo model. Patterns and sentences are in offline.toml."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from internal.llm.offline.arithmetic import evaluate
from internal.llm.offline.catalog import DemoCatalog, Job, detect_language, load_catalog
from internal.llm.offline.delegation import (
    MAX_COMPARED,
    compared_names,
    created_path,
    describe_comparison,
    describe_ended,
    description,
    is_file_description,
    subagent_arguments,
)

_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_HEADER = re.compile(r"\A\[[^\n]*\]\n+")
"""The line with which `read_file` begins the text of a document."""
_SHOWN = 4_000
_MAX_QUOTE_CHARACTERS = 800
_MAX_QUOTED_LINES = 5
_MAX_REQUEST_CHARACTERS = 2_000
_MAX_PARTS = 16
_COURTESIES = frozenset({"greet", "thanks"})
_CLOSING_QUOTES = {"`": "`", '"': '"', "“": "”"}


@dataclass(frozen=True)
class ToolJob:
    """A job that takes one tool call."""

    job: Job
    tool: str
    arguments: Mapping[str, Any]


def parse_jobs(text: str) -> list[Job]:
    """Return the jobs in a request, or none if any part of it is not understood.

    Of all ways to divide the request into parts that are understood, the one with the most parts
    counts, so that no part is taken as a value of another. Greetings beside other parts are left
    out.
    """
    jobs, unknown = _divide(text)
    if unknown:
        return []
    return [job for job in jobs if job.kind not in _COURTESIES] or jobs[:1]


def find_unknown_part(text: str) -> str:
    """Return the first part of a request that is not understood beside one that is, or ""."""
    jobs, unknown = _divide(text)
    return unknown[0] if jobs and unknown else ""


def _divide(text: str) -> tuple[list[Job], list[str]]:
    """Return the jobs in a request and the parts that are not understood: as few as possible."""
    known = load_catalog()
    if len(text) > _MAX_REQUEST_CHARACTERS:  # bounds the running time of the patterns
        return [], [text]
    parts = _parts(known, text)
    best: list[tuple[list[Job], list[str]]] = [([], [])]  # what is before each boundary
    for end in range(1, len(parts) + 1):
        last = text[parts[end - 1][0] : parts[end - 1][1]].strip()
        found = best[end - 1][0], [*best[end - 1][1], last]
        for start in range(end):
            jobs, unknown = best[start]
            if (len(unknown), -len(jobs) - 1) >= (len(found[1]), -len(found[0])):
                continue
            job = _job(known, text[parts[start][0] : parts[end - 1][1]])
            found = found if job is None else ([*jobs, job], unknown)
        best.append(found)
    return best[-1]


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
        for kind, pattern in known.rules():
            match = pattern.fullmatch(candidate)
            if match and not _holds_second_request(known, match):
                named = {name: value for name, value in match.groupdict().items() if value}
                job = Job(kind, named)
                if _is_possible(job):
                    return job
    return None


def _is_possible(job: Job) -> bool:
    """Return whether the work that a job gives to subtasks can be given to them."""
    if job.kind == "background":
        jobs = parse_jobs(job.named["task"])
        return bool(jobs) and all(each.kind not in {"background", "compare"} for each in jobs)
    return job.kind != "compare" or 1 < len(compared_names(job)) <= MAX_COMPARED


def _without_end(known: DemoCatalog, text: str) -> str:
    return re.sub(f"(?:{known.split['after'].pattern})$", "", text, flags=re.IGNORECASE)


def _holds_second_request(known: DemoCatalog, match: re.Match[str]) -> bool:
    """Return True if a value without quotes seems to contain another request."""
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
    "background": ("create_task", {"instruction": "task"}),
    "describe": ("write_file", {"path": "path", "content": "text"}),
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
    if job.kind == "compare":
        return [ToolJob(job, "subagent", subagent_arguments(job, language))]
    if job.kind == "describe" and is_file_description(job):
        read = Job("read", {"path": job.named["name"]})
        return [_tool_job(read, language), _tool_job(job, language)]
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
    if job.kind == "describe":
        named |= description(job, len(named["name"]), "", language)
    if job.kind in {"choose", "several"}:
        named["question"] = load_catalog().phrase(language, f"question_{job.kind}")
        named["options"] = load_catalog().phrase(language, "options").split("|")
    tool, keys = _TOOLS[job.kind]
    arguments = {name: named[key] for name, key in keys.items()}
    if job.kind == "several":
        arguments["multiple"] = True
    return ToolJob(Job(job.kind, named), tool, arguments)


def fill_in(tool_job: ToolJob, before: str, language: str) -> ToolJob:
    """Return a tool job with its arguments taken from the result of the tool job before."""
    job = tool_job.job
    if job.kind != "describe" or not is_file_description(job):
        return tool_job
    content = _HEADER.sub("", before, count=1)
    named = description(job, len(_WORD.findall(content)), _quote(content), language)
    arguments = {**tool_job.arguments, "content": named["text"]}
    return replace(tool_job, job=Job(job.kind, {**job.named, **named}), arguments=arguments)


def describe_job(job: Job, language: str) -> str:
    """Return a short description of a job."""
    return load_catalog().phrase(language, f"label_{job.kind}", **_named(job, language))


def describe_result(job: Job, result: str, language: str) -> str:
    """Return a sentence about the outcome of a job, from the tool's real result."""
    known = load_catalog()
    if job.kind == "compare":
        return describe_comparison(job, result, language)
    if job.kind in _READS:
        result = _HEADER.sub("", result, count=1)
    shown = result.strip() or known.phrase(language, "nothing")
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + " …"
    facts = {**_named(job, language), "result": shown, "words": len(_WORD.findall(result))}
    if job.kind == "background":
        facts["path"] = created_path(shown)
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
    if job.kind == "ended":
        return describe_ended(job.named["results"], language)
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
