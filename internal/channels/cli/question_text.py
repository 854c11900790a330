"""A question as a terminal shows it, and how it is answered there. Standard library only."""

from collections.abc import Iterator, Mapping
from typing import Any

from internal.i18n.catalog import MessageCatalog

_LINES = 40
"""Lines of a command or a change that are shown; of more it says how many."""


def render_question(question: Mapping[str, Any], phrases: MessageCatalog) -> list[str]:
    """Return a question as lines: what is asked, and the command that answers it.

    `question` has the fields of `workflow.question.asked`.
    """
    title = str(question["title"])
    lines = [f"? {title}"]
    if (body := str(question.get("body") or "")).strip() not in {"", title.strip()}:
        lines += _cut(body, "  ", phrases)
    if plan := question.get("plan"):
        lines += [f"  {plan['goal']}"] if plan["goal"] != title else []
        lines += [f"  {n}. {step['description']}" for n, step in enumerate(plan["steps"], 1)]
    calls = question.get("calls") or ()
    for number, call in enumerate(calls, 1):
        lines += _call(call, number if len(calls) > 1 else 0, phrases)
    lines += [f"  {n}. {option}" for n, option in enumerate(question.get("options") or (), 1)]
    return [*lines, f"  {answer_command(question, phrases)}"]


def answer_command(question: Mapping[str, Any], phrases: MessageCatalog) -> str:
    """Return the command that answers a question, with what may be answered."""
    kind, calls = question["kind"], question.get("calls") or ()
    ruled = kind == "approval" and not all(call.get("rules") for call in calls)
    answers = [phrases("approval_once" if ruled else kind)]
    if question.get("options"):
        answers.insert(0, "1,2" if question.get("multiple") else "1")
    if len(calls) > 1:
        answers.append(phrases("item"))
    return phrases("asks", question=question["question_id"], answers=" | ".join(answers))


def _call(call: Mapping[str, Any], number: int, phrases: MessageCatalog) -> Iterator[str]:
    reason = f": {call['reason']}" if call["reason"] else ""
    head = f"{number}. " if number else ""
    yield f"  {head}{call['tool']} ({call['risk']}){reason}"
    yield from _cut(call.get("diff") or call["what"], "    ", phrases)
    if whole := call.get("whole"):
        count = f"{whole['size']:,}"
        yield f"    {phrases('too_long', count=count)}"


def _cut(text: str, indent: str, phrases: MessageCatalog) -> Iterator[str]:
    lines = text.rstrip().splitlines()
    for line in lines[:_LINES]:
        yield f"{indent}{line}"
    if len(lines) > _LINES:
        yield f"{indent}{phrases('more_lines', count=len(lines) - _LINES)}"
