"""Presses: what the buttons and fields of a question's card mean. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.plans import Plan, read_steps
from internal.agent.domain.questions import Question
from internal.agent.domain.text import truncate_line
from internal.channels.lark.card_elements import (
    MAX_FIELD_LENGTH,
    ActionName,
    ButtonAction,
    Element,
    button,
    button_row,
    checkbox,
    form,
    plain_text,
    select,
    text_input,
)
from internal.i18n.chat import ChatPhrases

TEXT_FIELD, CHOICE_FIELD, STEPS_FIELD = "words", "chosen", "steps"
"""The names of fields: free text, options, the steps of a plan."""


FORM_FIELDS: dict[ActionName, tuple[str, ...]] = {
    "because": (TEXT_FIELD,),
    "say": (TEXT_FIELD, CHOICE_FIELD),
    "edit": (STEPS_FIELD,),
    "change": (STEPS_FIELD,),
}


class InvalidAnswer(NamedTuple):
    """It is no answer; `phrase` says why."""

    phrase: str


def call_field(number: int) -> str:
    """Return the name of the field that allows one call; numbers begin with 1."""
    return f"call_{number}"


def steps_as_lines(plan: Plan) -> str:
    """Return the steps as a person edits them."""
    return "\n".join(" ".join(step.description.split()) for step in plan.steps)


def read_card_answer(
    press: ButtonAction, entered: Mapping[str, Any] | None, question: Question
) -> AnswerInput | InvalidAnswer:
    """Return the answer that a press and the fields of its form are."""
    allowed = _allowed_fields(press, question)
    if (entered is not None) != bool(allowed) or set(entered or ()) - set(allowed):
        return InvalidAnswer("click_malformed")
    answer = _read_action(press, entered or {}, question)
    if isinstance(answer, InvalidAnswer):
        return answer
    try:
        return msgspec.convert(answer, AnswerInput)
    except msgspec.ValidationError:
        return InvalidAnswer("click_malformed")


def _allowed_fields(press: ButtonAction, question: Question) -> tuple[str, ...]:
    if press.act == "each":
        return tuple(call_field(number) for number in range(1, len(question.calls) + 1))
    return FORM_FIELDS.get(press.act, ())


def _read_action(
    press: ButtonAction, entered: Mapping[str, Any], question: Question
) -> dict[str, Any] | InvalidAnswer:
    match press.act:
        case "approve" | "reject":
            return {"decision": press.act}
        case "session" | "rule":
            return {"decision": "approve", "grant": press.act}
        case "choose":
            return {"decision": "text", "choices": [press.number]}
        case "because" | "each" | "say" | "edit" | "change":
            return _FORM_READERS[press.act](entered, question)


def _read_reason(entered: Mapping[str, Any], _: Question) -> dict[str, Any] | InvalidAnswer:
    reason = entered.get(TEXT_FIELD, "")
    return {"decision": "reject", "text": reason.strip() if isinstance(reason, str) else reason}


def _read_items(entered: Mapping[str, Any], question: Question) -> dict[str, Any] | InvalidAnswer:
    items = {
        call.call_id: entered.get(call_field(number), False)
        for number, call in enumerate(question.calls, 1)
    }
    if not any(items.values()):
        return InvalidAnswer("click_nothing_ticked")
    return {"decision": "approve", "items": items}


def _read_reply(entered: Mapping[str, Any], _: Question) -> dict[str, Any] | InvalidAnswer:
    text, chosen = entered.get(TEXT_FIELD, ""), entered.get(CHOICE_FIELD, [])
    names = chosen if isinstance(chosen, list) else [chosen]
    names = [name for name in names if name != ""]
    if not all(isinstance(name, str) and name.isascii() and name.isdigit() for name in names):
        return InvalidAnswer("click_malformed")
    if not names and not (isinstance(text, str) and text.strip()):
        return InvalidAnswer("click_empty")
    return {"decision": "text", "text": text, "choices": [int(name[:9]) for name in names]}


def _read_approved_plan(
    entered: Mapping[str, Any], question: Question
) -> dict[str, Any] | InvalidAnswer:
    steps = _read_steps(entered, question)
    if isinstance(steps, InvalidAnswer):
        return steps
    return {"decision": "approve", "edit": {"steps": steps} if steps else None}


def _read_revised_plan(
    entered: Mapping[str, Any], question: Question
) -> dict[str, Any] | InvalidAnswer:
    steps = _read_steps(entered, question)
    if isinstance(steps, InvalidAnswer):
        return steps
    return (
        {"decision": "edit", "edit": {"steps": steps}}
        if steps
        else InvalidAnswer("click_unchanged")
    )


def _read_steps(entered: Mapping[str, Any], question: Question) -> list[str] | InvalidAnswer:
    """Return the steps as a person wants them, none when they are as they were."""
    text = entered.get(STEPS_FIELD, "")
    if not isinstance(text, str) or question.plan is None:
        return InvalidAnswer("click_malformed")
    steps = read_steps(text)
    if not steps:
        return InvalidAnswer("click_no_steps")
    return [] if steps == read_steps(steps_as_lines(question.plan)) else list(steps)


_FORM_READERS: Mapping[
    str, Callable[[Mapping[str, Any], Question], dict[str, Any] | InvalidAnswer]
] = {
    "because": _read_reason,
    "each": _read_items,
    "say": _read_reply,
    "edit": _read_approved_plan,
    "change": _read_revised_plan,
}


MAX_CALLS = 15
"""Calls that a card shows and takes one by one; more are answered together."""

_MAX_OPTION_BUTTONS, _MAX_LABEL_LENGTH, _MAX_RULES_LENGTH = 8, 60, 600


def answer_controls(question: Question, words: ChatPhrases) -> list[Element]:
    """Return the buttons and forms that answer a question."""
    match question.kind:
        case "plan":
            return _plan_controls(question, words)
        case "clarify":
            return _clarify_controls(question, words)
        case "approval":
            return _approval_controls(question, words)


def has_option_buttons(question: Question) -> bool:
    """Say whether all options stand in full on buttons."""
    options = question.options
    return (
        not question.multiple
        and len(options) <= _MAX_OPTION_BUTTONS
        and all(
            _option_label(number, option) == f"{number}. {option}"
            for number, option in enumerate(options, 1)
        )
    )


def _option_label(number: int, text: str) -> str:
    return truncate_line(f"{number}. {text}", _MAX_LABEL_LENGTH)


def _approval_controls(question: Question, words: ChatPhrases) -> list[Element]:
    several = len(question.calls) > 1
    yes = words("asked_yes_all" if several else "asked_yes")
    buttons = [button(yes, _button_action(question, "approve"), "primary")]
    made: list[Element] = []
    if all(call.rules for call in question.calls):
        rules = dict.fromkeys(rule for call in question.calls for rule in call.rules)
        listed = truncate_line(", ".join(rules), _MAX_RULES_LENGTH)
        made.append(plain_text(words("asked_rules", rules=listed), soft=True))
        buttons.append(button(words("asked_yes_session"), _button_action(question, "session")))
        buttons.append(button(words("asked_yes_rule"), _button_action(question, "rule")))
    buttons.append(button(words("asked_no"), _button_action(question, "reject"), "danger"))
    made.append(button_row(buttons))
    if several and len(question.calls) <= MAX_CALLS:
        made.append(_item_form(question, words))
    reason = text_input(TEXT_FIELD, words("asked_because_hint"))
    return [*made, form("because", [reason, _submit_button(question, "because", words)])]


def _item_form(question: Question, words: ChatPhrases) -> Element:
    boxes = [
        checkbox(call_field(number), _option_label(number, call.what))
        for number, call in enumerate(question.calls, 1)
    ]
    return form("each", [*boxes, _submit_button(question, "each", words)])


def _plan_controls(question: Question, words: ChatPhrases) -> list[Element]:
    approve = button(words("asked_approve"), _button_action(question, "approve"), "primary")
    reject = button(words("asked_reject"), _button_action(question, "reject"), "danger")
    feedback = text_input(TEXT_FIELD, words("asked_feedback_hint"))
    send = button(words("asked_feedback"), _button_action(question, "say"), submits=True)
    made = [button_row([approve, reject]), form("say", [feedback, send])]
    steps = "" if question.plan is None else steps_as_lines(question.plan)
    if not steps or len(steps) > MAX_FIELD_LENGTH:
        return [*made, plain_text(words("asked_long_plan"), soft=True)]
    editable = text_input(STEPS_FIELD, words("asked_steps"), steps, words("asked_steps"))
    submits = button_row(
        [_submit_button(question, "edit", words), _submit_button(question, "change", words)]
    )
    return [*made, form("edit", [editable, submits])]


def _clarify_controls(question: Question, words: ChatPhrases) -> list[Element]:
    options = [_option_label(number, option) for number, option in enumerate(question.options, 1)]
    hint = words("asked_say_other_hint" if options else "asked_say_hint")
    send = button(words("asked_say"), _button_action(question, "say"), "primary", submits=True)
    entry = [text_input(TEXT_FIELD, hint), send]
    decline = button(words("asked_decline"), _button_action(question, "reject"))
    if not options:
        go_on = button(words("asked_go_on"), _button_action(question, "approve"), "primary")
        return [button_row([go_on, decline]), form("say", entry)]
    if question.multiple or len(options) > _MAX_OPTION_BUTTONS:
        hint = words("asked_choose_several" if question.multiple else "asked_choose")
        choice = select(CHOICE_FIELD, hint, options, multiple=question.multiple)
        return [form("say", [choice, *entry]), button_row([decline])]
    buttons = [
        button(option, _button_action(question, "choose", number))
        for number, option in enumerate(options, 1)
    ]
    return [button_row([*buttons, decline]), form("say", entry)]


def _submit_button(question: Question, act: ActionName, words: ChatPhrases) -> Element:
    label = words("asked_yes_each" if act == "each" else f"asked_{act}")
    return button(label, _button_action(question, act), submits=True)


def _button_action(question: Question, act: ActionName, number: int = 0) -> ButtonAction:
    return ButtonAction(question.id, act, number)
