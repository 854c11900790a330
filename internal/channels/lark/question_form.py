"""The elements and the form of a question card, and the answers that its buttons give. Pure.

Text written by a person or a model goes into plain text and code elements, in which Lark interprets
nothing: it cannot mention anyone, load an image or imitate the bot's own messages.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.plans import Plan, read_steps
from internal.agent.domain.questions import Question
from internal.agent.domain.text import truncate_line
from internal.i18n.call_summary import describe_rules, describe_rules_briefly
from internal.i18n.chat import ChatPhrases

ActionName = Literal[
    "approve", "session", "rule", "reject", "because", "each", "choose", "say", "edit", "change"
]
"""Actions of buttons.

Approve once, in this session or by a rule; reject, or with a reason; decide call by call; choose an
option; reply with text and options; approve an edited plan; save an edited plan for another review.
"""

MAX_FIELD_LENGTH = 1_000
"""Characters in a text input (Lark's limit)."""


class ButtonAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of a button. It names the question and grants nothing."""

    question: str
    act: ActionName
    number: int = 0


class StopButton(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of a Stop button. It names the run and grants nothing."""

    run: str


Element = dict[str, Any]


def plain_text(text: str, *, soft: bool = False) -> Element:
    """Return a text without markup; a soft one is small and grey."""
    content: Element = {"tag": "plain_text", "content": text}
    if soft:
        content |= {"text_size": "notation", "text_color": "grey"}
    return {"tag": "div", "text": content}


def panel(title: Element, elements: Sequence[Element], element_id: str = "") -> Element:
    """Return a closed panel that is opened at its title. Lark accepts no form inside."""
    icon = {"tag": "standard_icon", "token": "down-small-ccm_outlined", "size": "16px 16px"}
    folded: Element = {
        "tag": "collapsible_panel",
        "expanded": False,
        "header": {
            "title": title,
            "vertical_align": "center",
            "icon": icon,
            "icon_position": "follow_text",
            "icon_expanded_angle": -180,
        },
        "elements": list(elements),
    }
    return folded | {"element_id": element_id} if element_id else folded


def folded_text(title: str, text: str) -> Element:
    """Return a closed panel with a text without markup."""
    return panel({"tag": "plain_text", "content": title}, [plain_text(text, soft=True)])


def markdown(text: str, *, soft: bool = False) -> Element:
    """Return a text of the bot itself, with Lark's Markdown; a soft one is small."""
    element: Element = {"tag": "markdown", "content": text}
    return element | {"text_size": "notation"} if soft else element


def button(
    label: str, action: ButtonAction, kind: str = "default", *, submits: bool = False
) -> Element:
    """Return a button; one that submits sends the values of its form."""
    element: Element = {
        "tag": "button",
        "name": f"{action.act}_{action.number}",
        "type": kind,
        "text": {"tag": "plain_text", "content": label},
        "behaviors": [{"type": "callback", "value": msgspec.to_builtins(action)}],
    }
    if submits:
        element["form_action_type"] = "submit"
    return element


def stop_button(run_id: str, label: str) -> Element:
    """Return the button that stops a run."""
    return {
        "tag": "button",
        "name": "stop",
        "type": "default",
        "size": "small",
        "text": {"tag": "plain_text", "content": label},
        "behaviors": [{"type": "callback", "value": msgspec.to_builtins(StopButton(run_id))}],
    }


def button_row(buttons: Sequence[Element]) -> Element:
    """Return buttons side by side, wrapped if they do not fit."""
    columns = [{"tag": "column", "width": "auto", "elements": [each]} for each in buttons]
    return {"tag": "column_set", "flex_mode": "flow", "columns": columns}


def form(name: str, elements: Sequence[Element]) -> Element:
    """Return a form; Lark accepts forms at a card's root only."""
    return {"tag": "form", "name": name, "elements": list(elements)}


def text_input(name: str, hint: str, value: str = "", label: str = "") -> Element:
    """Return a text input; with a value it has several lines."""
    element: Element = {
        "tag": "input",
        "name": name,
        "placeholder": {"tag": "plain_text", "content": hint},
        "max_length": MAX_FIELD_LENGTH,
        "width": "fill",
    }
    if label:
        element |= {"label": {"tag": "plain_text", "content": label}, "label_position": "top"}
    if value:
        rows = min(max(value.count("\n") + 1, 3), 10)
        element |= {"default_value": value, "input_type": "multiline_text", "rows": rows}
    return element


def checkbox(name: str, label: str) -> Element:
    """Return a checkbox."""
    return {
        "tag": "checker",
        "name": name,
        "checked": False,
        "text": {"tag": "plain_text", "content": label},
    }


def select(name: str, hint: str, options: Sequence[str], *, multiple: bool) -> Element:
    """Return a drop-down list; the values are numbers from 1."""
    return {
        "tag": "multi_select_static" if multiple else "select_static",
        "name": name,
        "placeholder": {"tag": "plain_text", "content": hint},
        "width": "fill",
        "options": [
            {"text": {"tag": "plain_text", "content": option}, "value": str(number)}
            for number, option in enumerate(options, 1)
        ],
    }


TEXT_FIELD, CHOICE_FIELD, STEPS_FIELD = "words", "chosen", "steps"
"""Names of input fields: free text, options, the steps of a plan."""


_SUBMITS = frozenset[ActionName]({"because", "each", "say", "edit", "change"})
"""Buttons that come with the values of all fields of their form."""


class InvalidAnswer(NamedTuple):
    """The input is not an answer; `phrase` is the key of the message with the reason."""

    phrase: str


def call_field(number: int) -> str:
    """Return the name of the checkbox of a call; numbers begin with 1."""
    return f"call_{number}"


def steps_as_lines(plan: Plan) -> str:
    """Return the steps of a plan, one per line, for editing."""
    return "\n".join(" ".join(step.description.split()) for step in plan.steps)


def read_card_answer(
    action: ButtonAction, values: Mapping[str, Any] | None, question: Question
) -> AnswerInput | InvalidAnswer:
    """Return the answer that a button and its form values mean."""
    allowed = _allowed_fields(action, question)
    if (values is not None) != bool(allowed) or set(values or ()) - set(allowed):
        return InvalidAnswer("click_malformed")
    answer = _read_action(action, values or {}, question)
    if isinstance(answer, InvalidAnswer):
        return answer
    try:
        return msgspec.convert(answer, AnswerInput)
    except msgspec.ValidationError:
        return InvalidAnswer("click_malformed")


def _allowed_fields(action: ButtonAction, question: Question) -> tuple[str, ...]:
    """Return the fields of the form of a button, () for a button that submits none."""
    if action.act not in _SUBMITS:
        return ()
    if question.kind == "plan":
        return TEXT_FIELD, STEPS_FIELD
    if question.kind != "approval":
        return TEXT_FIELD, CHOICE_FIELD
    count = len(question.calls) if len(question.calls) > 1 else 0
    return TEXT_FIELD, *(call_field(number) for number in range(1, count + 1))


def _read_action(
    action: ButtonAction, values: Mapping[str, Any], question: Question
) -> dict[str, Any] | InvalidAnswer:
    match action.act:
        case "approve" | "reject":
            return {"decision": action.act}
        case "session" | "rule":
            return {"decision": "approve", "grant": action.act}
        case "choose":
            return {"decision": "text", "choices": [action.number]}
        case "because" | "each" | "say" | "edit" | "change":
            return _FORM_READERS[action.act](values, question)


def _read_reason(values: Mapping[str, Any], _: Question) -> dict[str, Any] | InvalidAnswer:
    reason = values.get(TEXT_FIELD, "")
    return {"decision": "reject", "text": reason.strip() if isinstance(reason, str) else reason}


def _read_items(values: Mapping[str, Any], question: Question) -> dict[str, Any] | InvalidAnswer:
    items = {
        call.call_id: values.get(call_field(number), False)
        for number, call in enumerate(question.calls, 1)
    }
    if not any(items.values()):
        return InvalidAnswer("click_nothing_ticked")
    return {"decision": "approve", "items": items}


def _read_reply(values: Mapping[str, Any], _: Question) -> dict[str, Any] | InvalidAnswer:
    text, chosen = values.get(TEXT_FIELD, ""), values.get(CHOICE_FIELD, [])
    names = chosen if isinstance(chosen, list) else [chosen]
    names = [name for name in names if name != ""]
    if not all(isinstance(name, str) and name.isascii() and name.isdigit() for name in names):
        return InvalidAnswer("click_malformed")
    if not names and not (isinstance(text, str) and text.strip()):
        return InvalidAnswer("click_empty")
    return {"decision": "text", "text": text, "choices": [int(name[:9]) for name in names]}


def _read_approved_plan(
    values: Mapping[str, Any], question: Question
) -> dict[str, Any] | InvalidAnswer:
    steps = _read_steps(values, question)
    if isinstance(steps, InvalidAnswer):
        return steps
    return {"decision": "approve", "edit": {"steps": steps} if steps else None}


def _read_revised_plan(
    values: Mapping[str, Any], question: Question
) -> dict[str, Any] | InvalidAnswer:
    steps = _read_steps(values, question)
    if isinstance(steps, InvalidAnswer):
        return steps
    return (
        {"decision": "edit", "edit": {"steps": steps}}
        if steps
        else InvalidAnswer("click_unchanged")
    )


def _read_steps(values: Mapping[str, Any], question: Question) -> list[str] | InvalidAnswer:
    """Return the edited steps; an empty list if they are unchanged."""
    text = values.get(STEPS_FIELD, "")
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
"""Calls that a card shows and decides one by one; more are answered together."""

_MAX_OPTION_BUTTONS, _MAX_LABEL_LENGTH, _MAX_RULES_LENGTH = 8, 60, 600


class AnswerControls(NamedTuple):
    """The elements that answer a question: on the face of its card, and folded."""

    face: list[Element]
    folded: list[Element]


def answer_controls(question: Question, phrases: ChatPhrases) -> AnswerControls:
    """Return the buttons and fields that answer a question."""
    match question.kind:
        case "plan":
            return _plan_controls(question, phrases)
        case "clarify":
            return _clarify_controls(question, phrases)
        case "approval":
            return _approval_controls(question, phrases)
        case "recovery":
            return _recovery_controls(question, phrases)


def more_panel(elements: Sequence[Element], title: str) -> Element:
    """Return a closed panel; around one with input fields stands the form that submits them."""
    folded = panel({"tag": "plain_text", "content": title}, elements)
    has_fields = any(each["tag"] in {"input", "checker"} for each in elements)
    return form("more", [folded]) if has_fields else folded


def shows_options(question: Question) -> bool:
    """Return True if the controls of a question show the whole text of every option."""
    return all(
        _option_label(number, option) == f"{number}. {option}"
        for number, option in enumerate(question.options, 1)
    )


def _option_label(number: int, text: str) -> str:
    return truncate_line(f"{number}. {text}", _MAX_LABEL_LENGTH)


def _option_labels(question: Question) -> list[str]:
    """Return the labels of the options: numbers only if the card lists the options as text."""
    named = shows_options(question)
    return [
        _option_label(number, option) if named else str(number)
        for number, option in enumerate(question.options, 1)
    ]


def _approval_controls(question: Question, phrases: ChatPhrases) -> AnswerControls:
    several = len(question.calls) > 1
    trusts = all(call.action == "trust" for call in question.calls)
    yes = phrases("asked_yes_all" if several else "asked_yes_trust" if trusts else "asked_yes")
    buttons = [button(yes, _button_action(question, "approve"), "primary")]
    folded: list[Element] = []
    if all(call.rules for call in question.calls):
        rules = dict.fromkeys(rule for call in question.calls for rule in call.rules)
        listed = truncate_line(describe_rules(rules), _MAX_RULES_LENGTH)
        buttons.append(
            button(_always_label(question, rules, phrases), _button_action(question, "rule"))
        )
        here = button(phrases("asked_yes_session"), _button_action(question, "session"))
        folded += [button_row([here]), plain_text(phrases("asked_rules", rules=listed), soft=True)]
    buttons.append(button(phrases("asked_no"), _button_action(question, "reject"), "danger"))
    if several and len(question.calls) <= MAX_CALLS:
        folded += _item_fields(question, phrases)
    reason = text_input(TEXT_FIELD, phrases("asked_because_hint"))
    folded += [reason, _submit_button(question, "because", phrases)]
    return AnswerControls([button_row(buttons)], folded)


def _always_label(question: Question, rules: Iterable[str], phrases: ChatPhrases) -> str:
    """Return the label for an answer with rules, which omits rules that the card already shows."""
    first = question.calls[0]
    if len(question.calls) == 1 and describe_rules(rules) in {first.what, first.subject}:
        return phrases("asked_yes_rule_this")
    return phrases("asked_yes_rule", rules=describe_rules_briefly(rules))


def _item_fields(question: Question, phrases: ChatPhrases) -> list[Element]:
    boxes = [
        checkbox(call_field(number), _option_label(number, call.subject or call.what))
        for number, call in enumerate(question.calls, 1)
    ]
    return [*boxes, _submit_button(question, "each", phrases)]


def _plan_controls(question: Question, phrases: ChatPhrases) -> AnswerControls:
    approve = button(phrases("asked_approve"), _button_action(question, "approve"), "primary")
    reject = button(phrases("asked_reject"), _button_action(question, "reject"), "danger")
    feedback = text_input(TEXT_FIELD, phrases("asked_feedback_hint"))
    send = button(phrases("asked_feedback"), _button_action(question, "say"), submits=True)
    face, folded = [button_row([approve, reject])], [feedback, send]
    steps = "" if question.plan is None else steps_as_lines(question.plan)
    if not steps or len(steps) > MAX_FIELD_LENGTH:
        return AnswerControls(face, [*folded, plain_text(phrases("asked_long_plan"), soft=True)])
    editable = text_input(STEPS_FIELD, phrases("asked_steps"), steps, phrases("asked_steps"))
    submits = button_row(
        [_submit_button(question, "edit", phrases), _submit_button(question, "change", phrases)]
    )
    return AnswerControls(face, [*folded, editable, submits])


def _clarify_controls(question: Question, phrases: ChatPhrases) -> AnswerControls:
    options = _option_labels(question)
    hint = phrases("asked_say_other_hint" if options else "asked_say_hint")
    send = button(phrases("asked_say"), _button_action(question, "say"), "primary", submits=True)
    entry = [text_input(TEXT_FIELD, hint), send]
    decline = button(phrases("asked_decline"), _button_action(question, "reject"))
    if not options:
        go_on = button(phrases("asked_go_on"), _button_action(question, "approve"), "primary")
        return AnswerControls([form("say", entry), button_row([go_on, decline])], [])
    if question.multiple or len(options) > _MAX_OPTION_BUTTONS:
        hint = phrases("asked_choose_several" if question.multiple else "asked_choose")
        choice = select(CHOICE_FIELD, hint, options, multiple=question.multiple)
        return AnswerControls([form("say", [choice, *entry]), button_row([decline])], [])
    buttons = [
        button(option, _button_action(question, "choose", number))
        for number, option in enumerate(options, 1)
    ]
    return AnswerControls([button_row([*buttons, decline])], entry)


def _recovery_controls(question: Question, phrases: ChatPhrases) -> AnswerControls:
    retry = button(phrases("asked_retry"), _button_action(question, "approve"), "primary")
    give_up = button(phrases("asked_give_up"), _button_action(question, "reject"), "danger")
    advice = text_input(TEXT_FIELD, phrases("asked_guide_hint"))
    send = button(phrases("asked_guide"), _button_action(question, "say"), submits=True)
    return AnswerControls([button_row([retry, give_up])], [advice, send])


def _submit_button(question: Question, act: ActionName, phrases: ChatPhrases) -> Element:
    label = phrases("asked_yes_each" if act == "each" else f"asked_{act}")
    return button(label, _button_action(question, act), submits=True)


def _button_action(question: Question, act: ActionName, number: int = 0) -> ButtonAction:
    return ButtonAction(question.id, act, number)
