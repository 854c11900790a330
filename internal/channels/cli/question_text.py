"""Questions as text, with the command that answers them. Standard library only."""

from collections.abc import Iterator, Mapping
from typing import Any

from internal.channels.cli.command_output import short_id
from internal.i18n.call_summary import tool_label
from internal.i18n.catalog import MessageCatalog
from internal.i18n.runs import RunMessages

_MAX_LINES = 40
"""Maximum number of lines of a command or diff; the number of further lines is shown."""


def render_question(question: Mapping[str, Any], messages: MessageCatalog) -> list[str]:
    """Return a question as lines: its content, and the command that answers it.

    `question` has the fields of `workflow.question.asked`.
    """
    runs = RunMessages(messages.language)
    asks = runs.question_title(str(question["title"]), str(question.get("reason_code") or ""))
    title = asks
    if asked_by := question.get("asked_by"):
        title = f"{asked_by}: {title}"
    lines = [f"? {title}"]
    if (body := str(question.get("body") or "")).strip() not in {"", asks.strip()}:
        lines += _cut(body, "  ", messages)
    if plan := question.get("plan"):
        lines += [f"  {plan['goal']}"] if plan["goal"] != asks else []
        lines += [f"  {n}. {step['description']}" for n, step in enumerate(plan["steps"], 1)]
        lines += [f"  {runs('plan_by_larkspur')}"] if plan.get("made_by") == "larkspur" else []
    calls = question.get("calls") or ()
    for number, call in enumerate(calls, 1):
        lines += _call(call, number if len(calls) > 1 else 0, messages)
    lines += [f"  {n}. {option}" for n, option in enumerate(question.get("options") or (), 1)]
    return [*lines, *(f"  {line}" for line in answer_command(question, messages))]


def answer_command(question: Mapping[str, Any], messages: MessageCatalog) -> list[str]:
    """Return a command that answers a question, and a line with the other possible answers.

    The command can be pasted into a shell unchanged.
    """
    kind, calls = question["kind"], question.get("calls") or ()
    once_only = kind == "approval" and not all(call.get("rules") for call in calls)
    answers = messages("approval_once" if once_only else kind).split(" | ")
    if question.get("options"):
        answers.insert(0, "1,2" if question.get("multiple") else "1")
    if len(calls) > 1:
        answers.append(messages("item"))
    first, *others = answers
    command = messages("answer_command", question=short_id(question["question_id"]), answer=first)
    more = messages("other_answers", answer=first, others=" · ".join(others))
    return [command, more] if others else [command]


def _call(call: Mapping[str, Any], number: int, messages: MessageCatalog) -> Iterator[str]:
    reason = f": {call['reason']}" if call["reason"] else ""
    head = f"{number}. " if number else ""
    yield f"  {head}{tool_label(call['tool'], call.get('title', ''))} ({call['risk']}){reason}"
    yield from _cut(call.get("diff") or call["what"], "    ", messages)
    if whole := call.get("whole"):
        count = f"{whole['size']:,}"
        yield f"    {messages('too_long', count=count)}"


def _cut(text: str, indent: str, messages: MessageCatalog) -> Iterator[str]:
    lines = text.rstrip().splitlines()
    for line in lines[:_MAX_LINES]:
        yield f"{indent}{line}"
    if len(lines) > _MAX_LINES:
        yield f"{indent}{messages('more_lines', count=len(lines) - _MAX_LINES)}"
