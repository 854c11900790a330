"""What a person writes behind `larkspur answer` becomes an answer to a question."""

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

_FIRST = re.compile(r"([^\s,，:：.。!！]+)[\s,，:：.。!！]*")  # noqa: RUF001 - people write these


class DecisionText(NamedTuple):
    """What is written: words, the steps of a plan as it should be, yes or no to single calls.

    `items` are texts such as `2=yes`: a call by its number or its id. `rules` replace the offered.
    """

    words: str
    steps: Sequence[str] = ()
    goal: str = ""
    items: Sequence[str] = ()
    rules: Sequence[str] = ()


def parse_answer(question: Mapping[str, Any], decision: DecisionText) -> dict[str, Any]:
    """Return the answer as JSON. `question` is one as `GET /api/questions/{id}` gives it.

    Raises:
        Leave: what is written says nothing, or names what is not there.
    """
    words = decision.words.strip()
    if len(words) > MAX_ANSWER_CHARS:
        raise CliExit(USAGE, f"An answer has at most {MAX_ANSWER_CHARS:,} characters.")
    given = _edit(question, decision) or _spoken(question, words)
    if given is None:
        raise CliExit(USAGE, "The answer is empty: yes, no, a number, or words of your own.")
    if decision.items:
        given["items"] = dict(_item(question["calls"], text) for text in decision.items)
    if decision.rules:
        given["rules"] = list(decision.rules)
    return given


def describe_answer(answer: Mapping[str, Any], phrases: MessageCatalog) -> str:
    """Return how an answer was understood, in a sentence."""
    decision, text, grant = answer["decision"], answer["text"], answer["grant"]
    match decision:
        case "approve" if grant != "once":
            said = phrases(f"said_{grant}", text=", ".join(answer["rules"]))
        case "reject" if text:
            said = phrases("said_because", text=text)
        case "edit" | "approve" if answer["edit"]:
            said = phrases(f"said_{decision}_plan", text=" → ".join(answer["edit"]["steps"]))
        case _:
            said = phrases(f"said_{decision}", text=text)
    yes, no = phrases("said_approve"), phrases("said_reject")
    items = [f"{call_id}: {yes if agreed else no}" for call_id, agreed in answer["items"].items()]
    return phrases("answered", answer=" · ".join([said, *items]))


def _spoken(question: Mapping[str, Any], words: str) -> dict[str, Any] | None:
    known, word = _words(), _word(words)
    if question["kind"] == "clarify":
        # yes and no are answers to what is asked there; only the very names of a decision decide
        if words not in question["options"] and word in {*known["approve"], *known["reject"]}:
            return {"decision": "approve" if word in known["approve"] else "reject"}
        return _read_text_answer(question, words, (), ())
    for grant in ("session", "rule"):
        if word in known[grant]:
            return {"decision": "approve", "grant": grant}
    if reason := _reason(words):
        return {"decision": "reject", "text": reason}
    given = _read_text_answer(question, words, known["yes"], known["no"])
    # free words on calls are a no with that reason
    return given or ({"decision": "text", "text": words} if words else None)


def _reason(words: str) -> str:
    """Return why, of `no because why`; "" when that is not what is said."""
    known, no = _words(), _FIRST.match(words)
    if no is None or no[1].lower() not in known["no"]:
        return ""
    rest = words[no.end() :]
    why = next((one for one in known["because"] if rest.lower().startswith(one)), "")
    return rest[len(why) :].strip() if why else ""


def _edit(question: Mapping[str, Any], decision: DecisionText) -> dict[str, Any] | None:
    """Return a plan as the person wants it, agreed to with a yes; None when they edit none."""
    known, word = _words(), _word(decision.words)
    meant = word in known["edit"]
    if not decision.steps and not (meant and question["kind"] == "plan"):
        if decision.goal:
            raise CliExit(USAGE, "--goal goes with the steps of a plan: --step or --steps.")
        return None
    if not meant and word not in known["yes"]:
        raise CliExit(USAGE, "Steps go with edit, or with yes to agree to them at once.")
    steps = [step.strip() for step in decision.steps]
    if not 0 < len(steps) <= MAX_STEPS or not all(steps):
        example = '--step "first" --step "second", or --steps FILE with one a line'
        raise CliExit(USAGE, f"A plan has 1 to {MAX_STEPS} steps, none of them empty: {example}.")
    if any(len(text) > MAX_STEP_CHARS for text in (*steps, decision.goal)):
        raise CliExit(USAGE, f"A step has at most {MAX_STEP_CHARS:,} characters.")
    plan = {"steps": steps, "goal": decision.goal}
    return {"decision": "edit" if meant else "approve", "edit": plan}


def _item(calls: Sequence[Mapping[str, Any]], text: str) -> tuple[str, bool]:
    name, _, said = text.rpartition("=")
    ids = [str(call["call_id"]) for call in calls]
    found = ids[int(name) - 1] if name.isdecimal() and 0 < int(name) <= len(ids) else name
    if found not in ids:
        raise CliExit(
            USAGE, f"There is no call {name or text}: give its number or its id, as 1=yes."
        )
    known, word = _words(), _word(said)
    if word not in {*known["yes"], *known["no"]}:
        raise CliExit(USAGE, f"Say yes or no to a call, as {name}=yes, not {said or 'nothing'}.")
    return found, word in known["yes"]


def _word(text: str) -> str:
    return text.strip().lower().rstrip(".!。！")  # noqa: RUF001 - people write these


@cache
def _words() -> dict[str, list[str]]:
    """Return the words that decide, in both languages."""
    found = Path(__file__).with_name("decisions.json").read_text(encoding="utf-8")
    words: dict[str, list[str]] = json.loads(found)
    return words


def _read_text_answer(
    view: Mapping[str, Any], text: str, yes: Collection[str], no: Collection[str]
) -> dict[str, Any] | None:
    """Understand a text as the answer to a question shown as JSON; None when it is none.

    `yes` and `no` are the exact words, in lower case.
    """
    question = msgspec.convert({**view, "id": view["question_id"], "call_id": ""}, Question)
    given = read_answer(question, text, yes, no)
    if given is None:
        return None
    return {name: value for name, value in msgspec.to_builtins(given).items() if value}
