"""Requests of the offline demo model that are carried out by subtasks."""

import re
from collections.abc import Mapping
from typing import Any

from internal.agent.domain.delegation.reports import END_OPENING, REPORT_OPENING
from internal.llm.offline.catalog import Job, load_catalog

_NAME_SEPARATOR = re.compile(r"\s*[,，、]\s*(?:and\s+)?|\s+(?:and|with)\s+|\s*(?:和|与|以及)\s*")  # noqa: RUF001  # as people type it
_DOCUMENT = re.compile(r".+\.(?:md|txt|csv|json|html?|pdf|docx?|xlsx?|pptx?|epub|py|toml|ya?ml)")
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_ROW = re.compile(r"^\| (\S+) \| (\d+) \| (\S+) \|$", re.MULTILINE)
_HEADING = re.compile(r"^## \S+ \((.*)\): (\w+)(?: \(\w+\))?(.*)$", re.MULTILINE)
_FILE = re.compile(r"^File: (.+) \(\S+\)$", re.MULTILINE)
_CREATED = re.compile(r"\S+ \(([^()]*)\)")
MAX_COMPARED = 8


def compared_names(job: Job) -> list[str]:
    """Return the names that a `compare` job names, each once."""
    return list(dict.fromkeys(filter(None, _NAME_SEPARATOR.split(job.named["names"]))))


def _are_files(job: Job) -> bool:
    what = job.named.get("what", "")
    names = compared_names(job)
    return what.startswith(("file", "doc", "文")) or (
        not what and all(map(_DOCUMENT.fullmatch, names))
    )


def subagent_arguments(job: Job, language: str) -> dict[str, Any]:
    """Return the arguments of the `subagent` call of a `compare` job: a task for each name."""
    known = load_catalog()
    wanted = "instruction_file" if _are_files(job) else "instruction_site"
    return {
        "tasks": [
            {
                "instruction": known.phrase(
                    language,
                    wanted,
                    name=name,
                    path=f"output/{_NOT_IN_NAMES.sub('-', name)}.md",
                ),
                "agent_profile": {"role": known.phrase(language, "role")},
            }
            for name in compared_names(job)
        ]
    }


def is_file_description(job: Job) -> bool:
    """Return whether a `describe` job needs the text of a file."""
    return job.named["what"] in {"file", "文件"}


def description(job: Job, size: int, quote: str, language: str) -> Mapping[str, str]:
    """Return the text of the file of a `describe` job, and its row of the comparison."""
    name = "text_file" if is_file_description(job) else "text_site"
    text = load_catalog().phrase(language, name, name=job.named["name"], size=size, quote=quote)
    row = f"| {job.named['name']} | {size} | {job.named['path']} |"
    return {"text": text, "row": row}


def describe_comparison(job: Job, result: str, language: str) -> str:
    """Return the comparison of the answers of the tasks of a `subagent` call."""
    known = load_catalog()
    rows = {name: (int(size), path) for name, size, path in _ROW.findall(result)}
    if not rows:
        return known.phrase(language, "done_compare_none", result=result)
    ordered = sorted(rows, key=lambda name: rows[name][0], reverse=True)
    size = known.phrase(language, "size_file" if _are_files(job) else "size_site")
    lines = [known.phrase(language, "heads", size=size)]
    lines += [f"| {name} | {rows[name][0]} | {rows[name][1]} |" for name in ordered]
    most = [name for name in ordered if rows[name][0] == rows[ordered[0]][0]]
    verdict = "equal" if len(most) == len(rows) > 1 else "most"
    missing = [name for name in compared_names(job) if name not in rows]
    return known.phrase(
        language,
        "done_compare",
        table="\n".join(lines),
        verdict=known.phrase(language, verdict, names=", ".join(most)),
        files=", ".join(rows[name][1] for name in ordered),
        missing=known.phrase(language, "missing", names=", ".join(missing)) if missing else "",
    )


def created_path(result: str) -> str:
    """Return the path of the task in the result of `create_task`."""
    found = _CREATED.match(result)
    return found[1] if found else result.partition(" ")[0]


def is_end_message(text: str) -> bool:
    """Return whether a message tells a running task that a subtask has ended."""
    return text.startswith(END_OPENING)


def ended_tasks(text: str) -> str:
    """Return the results in the prompt of a report of background tasks; "" for another text."""
    return text.removeprefix(REPORT_OPENING).strip() if text.startswith(REPORT_OPENING) else ""


def describe_ended(results: str, language: str) -> str:
    """Return the answer to the prompt of a report of background tasks."""
    known = load_catalog()
    for each in ("en", "zh"):
        results = results.replace(known.phrase(each, "signature"), "")
    results = _HEADING.sub(r"**\1**: \2\3\n", _FILE.sub(r"- \1", results))
    results = re.sub(r"\n{3,}", "\n\n", results).strip()
    return f"{known.phrase(language, 'ended')}\n\n{results}"
