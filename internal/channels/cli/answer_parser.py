"""Parse the decision of `larkspur answer` and of the session into an answer as JSON."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from internal.agent.domain.answers import MAX_ANSWER_CHARS, read_answer
from internal.agent.domain.plans import MAX_STEP_CHARS, MAX_STEPS
from internal.agent.domain.questions import Question
from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.i18n.catalog import MessageCatalog

_FIRST_WORD = re.compile(r"([^\s,，:：.。!！]+)[\s,，:：.。!！]*")  # noqa: RUF001 - Chinese punctuation is accepted


class DecisionText(NamedTuple):
    """A decision as entered on the command line.

    Attributes:
        text: a keyword such as `yes`, option numbers, or free text.
        steps: the steps of the edited plan.
        goal: the goal of the edited plan; "" keeps it.
        items: decisions on single calls, such as `2=yes`; a call is named by its number or id.
        rules: permission rules that replace the offered ones.
    """

    text: str
    steps: Sequence[str] = ()
    goal: str = ""
    items: Sequence[str] = ()
    rules: Sequence[str] = ()


def parse_answer(question: Mapping[str, Any], decision: DecisionText) -> dict[str, Any]:
    """Return the answer as JSON. `question` is a record of `GET /api/questions/{id}`.

    Raises:
        CliExit: the decision is empty or malformed, or names a call that does not exist.
    """
    words = decision.text.strip()
    if len(words) > MAX_ANSWER_CHARS:
        raise CliExit(USAGE, f"An answer has at most {MAX_ANSWER_CHARS:,} characters.")
    answer = _parse_edit(question, decision) or _parse_text(question, words)
    if answer is None:
        raise CliExit(USAGE, "The answer is empty. Answer yes, no, an option number, or free text.")
    if decision.items:
        answer["items"] = dict(_parse_item(question["calls"], text) for text in decision.items)
    if decision.rules:
        answer["rules"] = list(decision.rules)
    return answer


def describe_answer(question: Mapping[str, Any], messages: MessageCatalog) -> str:
    """Return one sentence that describes the stored answer of a question."""
    answer = question["answer"]
    decision, text, grant = answer["decision"], answer["text"], answer["grant"]
    match decision:
        case "approve" | "reject" if question["kind"] == "recovery":
            answer_text = messages("answer_retry" if decision == "approve" else "answer_give_up")
        case "approve" if grant != "once":
            answer_text = messages(f"answer_{grant}", text=", ".join(answer["rules"]))
        case "reject" if text:
            answer_text = messages("answer_because", text=text)
        case "edit" | "approve" if answer["edit"]:
            answer_text = messages(
                f"answer_{decision}_plan", text=" → ".join(answer["edit"]["steps"])
            )
        case _:
            answer_text = messages(f"answer_{decision}", text=text)
    yes, no = messages("answer_approve"), messages("answer_reject")
    items = [f"{call_id}: {yes if agreed else no}" for call_id, agreed in answer["items"].items()]
    return messages("answered", answer=" · ".join([answer_text, *items]))


def _parse_text(question: Mapping[str, Any], words: str) -> dict[str, Any] | None:
    known, word = _keywords(), _normalize(words)
    if question["kind"] == "clarify":
        # yes and no are answers to the question; only the names of the decisions decide
        if words not in question["options"] and word in {*known["approve"], *known["reject"]}:
            return {"decision": "approve" if word in known["approve"] else "reject"}
        return _read_text_answer(question, words, (), ())
    if question["kind"] == "recovery":
        words_for = [*known["yes"], *known["retry"]], [*known["no"], *known["give_up"]]
        return _read_text_answer(question, words, *words_for)
    for grant in ("session", "rule"):
        if word in known[grant]:
            return {"decision": "approve", "grant": grant}
    if reason := _parse_reason(words):
        return {"decision": "reject", "text": reason}
    answer = _read_text_answer(question, words, known["yes"], known["no"])
    # free text about calls rejects them with the text as the reason
    return answer or ({"decision": "text", "text": words} if words else None)


def _parse_reason(words: str) -> str:
    """Return the reason in a text such as `no because …`; "" for any other text."""
    known, no = _keywords(), _FIRST_WORD.match(words)
    if no is None or no[1].lower() not in known["no"]:
        return ""
    rest = words[no.end() :]
    why = next((phrase for phrase in known["because"] if rest.lower().startswith(phrase)), "")
    return rest[len(why) :].strip() if why else ""


def _parse_edit(question: Mapping[str, Any], decision: DecisionText) -> dict[str, Any] | None:
    """Return the answer that edits a plan; None if the decision does not edit one."""
    known, word = _keywords(), _normalize(decision.text)
    meant = word in known["edit"]
    if not decision.steps and not (meant and question["kind"] == "plan"):
        if decision.goal:
            raise CliExit(USAGE, "--goal needs the steps of the plan: add --step or --steps.")
        return None
    if not meant and word not in known["yes"]:
        raise CliExit(USAGE, "Steps need the decision edit, or yes to approve them at once.")
    steps = [step.strip() for step in decision.steps]
    if not 0 < len(steps) <= MAX_STEPS or not all(steps):
        example = '--step "first" --step "second", or --steps FILE with one a line'
        raise CliExit(USAGE, f"A plan has 1 to {MAX_STEPS} steps, none of them empty: {example}.")
    if any(len(text) > MAX_STEP_CHARS for text in (*steps, decision.goal)):
        raise CliExit(USAGE, f"A step has at most {MAX_STEP_CHARS:,} characters.")
    plan = {"steps": steps, "goal": decision.goal}
    return {"decision": "edit" if meant else "approve", "edit": plan}


def _parse_item(calls: Sequence[Mapping[str, Any]], text: str) -> tuple[str, bool]:
    name, _, decision = text.rpartition("=")
    ids = [str(call["call_id"]) for call in calls]
    found = ids[int(name) - 1] if name.isdecimal() and 0 < int(name) <= len(ids) else name
    if found not in ids:
        raise CliExit(
            USAGE, f"There is no call {name or text}. Use its number or id, such as 1=yes."
        )
    known, word = _keywords(), _normalize(decision)
    if word not in {*known["yes"], *known["no"]}:
        raise CliExit(
            USAGE, f"Answer a call with yes or no, such as {name}=yes, not {decision or 'nothing'}."
        )
    return found, word in known["yes"]


def _normalize(text: str) -> str:
    return text.strip().lower().rstrip(".!。！")  # noqa: RUF001 - Chinese punctuation is accepted


@cache
def _keywords() -> dict[str, list[str]]:
    """Return the keywords of each decision, in both languages."""
    found = Path(__file__).with_name("decisions.json").read_text(encoding="utf-8")
    words: dict[str, list[str]] = json.loads(found)
    return words


def _read_text_answer(
    view: Mapping[str, Any], text: str, yes: Collection[str], no: Collection[str]
) -> dict[str, Any] | None:
    """Parse a text as the answer to a question in JSON form; None if it is not an answer.

    `yes` and `no` are the exact keywords, in lower case.
    """
    question = msgspec.convert({**view, "id": view["question_id"], "call_id": ""}, Question)
    answer = read_answer(question, text, yes, no)
    if answer is None:
        return None
    return {name: value for name, value in msgspec.to_builtins(answer).items() if value}
