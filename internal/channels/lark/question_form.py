"""What an open question offers to press and to fill in. Pure."""

from internal.agent.domain.questions import Question
from internal.agent.domain.text import truncate_line
from internal.channels.lark.card_answers import (
    CHOSEN,
    LONGEST_FIELD,
    STEPS,
    WORDS,
    Act,
    Press,
    one_a_line,
    ticked,
)
from internal.channels.lark.card_elements import (
    Element,
    button,
    chooser,
    field,
    form,
    plain,
    row,
    ticker,
)
from internal.i18n.chat import ChatPhrases

MOST_CALLS = 15
"""Calls that a card shows and takes one by one; more are answered together."""

_MOST_BUTTONS, _LONGEST_LABEL, _LONGEST_RULES = 8, 60, 600


def controls(question: Question, words: ChatPhrases) -> list[Element]:
    """Return the buttons and forms that answer a question."""
    match question.kind:
        case "plan":
            return _on_plan(question, words)
        case "clarify":
            return _on_words(question, words)
        case "approval":
            return _on_calls(question, words)


def on_buttons(question: Question) -> bool:
    """Say whether all options stand in full on buttons."""
    options = question.options
    return (
        not question.multiple
        and len(options) <= _MOST_BUTTONS
        and all(
            _label(number, option) == f"{number}. {option}"
            for number, option in enumerate(options, 1)
        )
    )


def _label(number: int, text: str) -> str:
    return truncate_line(f"{number}. {text}", _LONGEST_LABEL)


def _on_calls(question: Question, words: ChatPhrases) -> list[Element]:
    several = len(question.calls) > 1
    yes = words("asked_yes_all" if several else "asked_yes")
    buttons = [button(yes, _press(question, "approve"), "primary")]
    made: list[Element] = []
    if all(call.rules for call in question.calls):
        rules = dict.fromkeys(rule for call in question.calls for rule in call.rules)
        listed = truncate_line(", ".join(rules), _LONGEST_RULES)
        made.append(plain(words("asked_rules", rules=listed), soft=True))
        buttons.append(button(words("asked_yes_session"), _press(question, "session")))
        buttons.append(button(words("asked_yes_rule"), _press(question, "rule")))
    buttons.append(button(words("asked_no"), _press(question, "reject"), "danger"))
    made.append(row(buttons))
    if several and len(question.calls) <= MOST_CALLS:
        made.append(_one_by_one(question, words))
    reason = field(WORDS, words("asked_because_hint"))
    return [*made, form("because", [reason, _submit(question, "because", words)])]


def _one_by_one(question: Question, words: ChatPhrases) -> Element:
    boxes = [
        ticker(ticked(number), _label(number, call.what))
        for number, call in enumerate(question.calls, 1)
    ]
    return form("each", [*boxes, _submit(question, "each", words)])


def _on_plan(question: Question, words: ChatPhrases) -> list[Element]:
    approve = button(words("asked_approve"), _press(question, "approve"), "primary")
    reject = button(words("asked_reject"), _press(question, "reject"), "danger")
    feedback = field(WORDS, words("asked_feedback_hint"))
    send = button(words("asked_feedback"), _press(question, "say"), submits=True)
    made = [row([approve, reject]), form("say", [feedback, send])]
    steps = "" if question.plan is None else one_a_line(question.plan)
    if not steps or len(steps) > LONGEST_FIELD:
        return [*made, plain(words("asked_long_plan"), soft=True)]
    editable = field(STEPS, words("asked_steps"), steps, words("asked_steps"))
    submits = row([_submit(question, "edit", words), _submit(question, "change", words)])
    return [*made, form("edit", [editable, submits])]


def _on_words(question: Question, words: ChatPhrases) -> list[Element]:
    options = [_label(number, option) for number, option in enumerate(question.options, 1)]
    hint = words("asked_say_other_hint" if options else "asked_say_hint")
    send = button(words("asked_say"), _press(question, "say"), "primary", submits=True)
    entry = [field(WORDS, hint), send]
    decline = button(words("asked_decline"), _press(question, "reject"))
    if not options:
        go_on = button(words("asked_go_on"), _press(question, "approve"), "primary")
        return [row([go_on, decline]), form("say", entry)]
    if question.multiple or len(options) > _MOST_BUTTONS:
        hint = words("asked_choose_several" if question.multiple else "asked_choose")
        choice = chooser(CHOSEN, hint, options, multiple=question.multiple)
        return [form("say", [choice, *entry]), row([decline])]
    buttons = [
        button(option, _press(question, "choose", number))
        for number, option in enumerate(options, 1)
    ]
    return [row([*buttons, decline]), form("say", entry)]


def _submit(question: Question, act: Act, words: ChatPhrases) -> Element:
    label = words("asked_yes_each" if act == "each" else f"asked_{act}")
    return button(label, _press(question, act), submits=True)


def _press(question: Question, act: Act, number: int = 0) -> Press:
    return Press(question.id, act, number)
