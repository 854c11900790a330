"""Presses: what the buttons and fields of a question's card mean. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.plans import Plan, read_steps
from internal.agent.domain.questions import Question

Act = Literal[
    "approve", "session", "rule", "reject", "because", "each", "choose", "say", "edit", "change"
]
"""Yes, yes in this session, yes for good, no, no with a reason, call by call; an option, words (and
options chosen); yes to a plan as a person wants it, or such a plan without a yes."""

WORDS, CHOSEN, STEPS = "words", "chosen", "steps"
"""The names of fields: free text, options, the steps of a plan."""

LONGEST_FIELD = 1_000
"""Characters that a field of a card takes (Lark's limit)."""

FIELDS: dict[Act, tuple[str, ...]] = {
    "because": (WORDS,),
    "say": (WORDS, CHOSEN),
    "edit": (STEPS,),
    "change": (STEPS,),
}


class Press(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a button carries: it names the question, nothing in it gives a right."""

    question: str
    act: Act
    number: int = 0


class Wrong(NamedTuple):
    """It is no answer; `phrase` says why."""

    phrase: str


def ticked(number: int) -> str:
    """Return the name of the field that allows one call; numbers begin with 1."""
    return f"call_{number}"


def one_a_line(plan: Plan) -> str:
    """Return the steps as a person edits them."""
    return "\n".join(" ".join(step.description.split()) for step in plan.steps)


def given_by(
    press: Press, entered: Mapping[str, Any] | None, question: Question
) -> AnswerInput | Wrong:
    """Return the answer that a press and the fields of its form are."""
    allowed = _fields(press, question)
    if (entered is not None) != bool(allowed) or set(entered or ()) - set(allowed):
        return Wrong("click_malformed")
    answer = _answer(press, entered or {}, question)
    if isinstance(answer, Wrong):
        return answer
    try:
        return msgspec.convert(answer, AnswerInput)
    except msgspec.ValidationError:
        return Wrong("click_malformed")


def _fields(press: Press, question: Question) -> tuple[str, ...]:
    if press.act == "each":
        return tuple(ticked(number) for number in range(1, len(question.calls) + 1))
    return FIELDS.get(press.act, ())


def _answer(press: Press, entered: Mapping[str, Any], question: Question) -> dict[str, Any] | Wrong:
    match press.act:
        case "approve" | "reject":
            return {"decision": press.act}
        case "session" | "rule":
            return {"decision": "approve", "grant": press.act}
        case "choose":
            return {"decision": "text", "choices": [press.number]}
        case "because" | "each" | "say" | "edit" | "change":
            return _FORMS[press.act](entered, question)


def _because(entered: Mapping[str, Any], _: Question) -> dict[str, Any] | Wrong:
    reason = entered.get(WORDS, "")
    return {"decision": "reject", "text": reason.strip() if isinstance(reason, str) else reason}


def _each(entered: Mapping[str, Any], question: Question) -> dict[str, Any] | Wrong:
    items = {
        call.call_id: entered.get(ticked(number), False)
        for number, call in enumerate(question.calls, 1)
    }
    if not any(items.values()):
        return Wrong("click_nothing_ticked")
    return {"decision": "approve", "items": items}


def _said(entered: Mapping[str, Any], _: Question) -> dict[str, Any] | Wrong:
    text, chosen = entered.get(WORDS, ""), entered.get(CHOSEN, [])
    names = chosen if isinstance(chosen, list) else [chosen]
    names = [name for name in names if name != ""]
    if not all(isinstance(name, str) and name.isascii() and name.isdigit() for name in names):
        return Wrong("click_malformed")
    if not names and not (isinstance(text, str) and text.strip()):
        return Wrong("click_empty")
    return {"decision": "text", "text": text, "choices": [int(name[:9]) for name in names]}


def _edited(entered: Mapping[str, Any], question: Question) -> dict[str, Any] | Wrong:
    steps = _steps(entered, question)
    if isinstance(steps, Wrong):
        return steps
    return {"decision": "approve", "edit": {"steps": steps} if steps else None}


def _changed(entered: Mapping[str, Any], question: Question) -> dict[str, Any] | Wrong:
    steps = _steps(entered, question)
    if isinstance(steps, Wrong):
        return steps
    return {"decision": "edit", "edit": {"steps": steps}} if steps else Wrong("click_unchanged")


def _steps(entered: Mapping[str, Any], question: Question) -> list[str] | Wrong:
    """Return the steps as a person wants them, none when they are as they were."""
    text = entered.get(STEPS, "")
    if not isinstance(text, str) or question.plan is None:
        return Wrong("click_malformed")
    steps = read_steps(text)
    if not steps:
        return Wrong("click_no_steps")
    return [] if steps == read_steps(one_a_line(question.plan)) else list(steps)


_FORMS: Mapping[str, Callable[[Mapping[str, Any], Question], dict[str, Any] | Wrong]] = {
    "because": _because,
    "each": _each,
    "say": _said,
    "edit": _edited,
    "change": _changed,
}
