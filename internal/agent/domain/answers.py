"""Answers from people: check them against the question, and read text as an answer. Pure."""

import re
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.permissions.rules import (
    RuleError,
    RuleText,
    check_rule_lengths,
    parse_allow_rule,
)
from internal.agent.domain.plans import MAX_STEP_CHARS, MAX_STEPS, PlanEdit
from internal.agent.domain.questions import (
    ApprovalItem,
    Decision,
    Grant,
    Question,
    QuestionKind,
    QuestionRecord,
)

MAX_ANSWER_CHARS = 20_000
"""Characters; the answer must fit into an event of 64 KB."""

MAX_PLAN_BYTES = 40_000
"""Bytes of an edited plan as JSON; it must fit into an event of 64 KB."""

MIN_ID_LENGTH = 4
"""Characters of the end of an id that name a question or a task."""

_DECISIONS: dict[QuestionKind, list[Decision]] = {
    "plan": ["approve", "edit", "reject", "text"],
    "clarify": ["text", "approve", "reject"],
    "approval": ["approve", "reject", "text"],
    "recovery": ["approve", "text", "reject"],
}
_MAX_RULES = 20
_NUMBERS = re.compile(r"\s*\d{1,3}(?:\s*[,，、\s]\s*\d{1,3})*\s*")  # noqa: RUF001 - people write these


class AnswerInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer as a person submits it.

    `decision` "edit" makes the next version of a plan, which is reviewed again; with "approve" the
    edited plan is approved at once. `text` is feedback on a plan, the answer to a question, advice
    for another try or the reason of a rejection. `choices` are option numbers, from 1. `items`
    approves or rejects single calls by call_id. `grant` is the scope of an approval; `rules`
    replace the offered ones.
    """

    decision: Literal["approve", "edit", "reject", "text"]
    text: Annotated[str, Meta(max_length=MAX_ANSWER_CHARS)] = ""
    edit: PlanEdit | None = None
    choices: Annotated[tuple[Annotated[int, Meta(ge=1)], ...], Meta(max_length=200)] = ()
    items: Annotated[dict[str, bool], Meta(max_length=1_000)] = {}
    grant: Grant = "once"
    rules: Annotated[tuple[RuleText, ...], Meta(max_length=_MAX_RULES)] = ()


def normalize_answer(question: Question, answer: AnswerInput) -> AnswerInput:
    """Return the answer in its canonical form for this question.

    Choices become text, text on an approval becomes a rejection with that reason, and an approval
    for more than once carries the rules that it adds.

    Raises:
        InvalidRequest: the answer does not fit the question.
    """
    match question.kind:
        case "plan":
            return _normalize_plan(answer)
        case "clarify":
            return _normalize_clarify(question, answer)
        case "approval":
            return _normalize_approval(question, answer)
        case "recovery":
            return _normalize_recovery(answer)


def read_answer(
    question: Question, text: str, yes: Collection[str], no: Collection[str]
) -> AnswerInput | None:
    """Return the answer that a text expresses, None if it expresses none.

    `yes` and `no` are exact words in lower case. An approval accepts only these words, every other
    question any text.
    """
    answer_text = text.strip()
    word = answer_text.lower().rstrip(".!。！")  # noqa: RUF001 - people write these
    if not answer_text:
        return None
    if question.kind == "clarify":
        return _chosen(question, answer_text) or AnswerInput("text", answer_text)
    if word in yes:
        return AnswerInput("approve")
    if word in no:
        return AnswerInput("reject")
    return AnswerInput("text", answer_text) if question.kind != "approval" else None


def matches_id(name: str, wanted: str) -> bool:
    """Return True if a person's text is that id or its end."""
    return len(wanted) >= MIN_ID_LENGTH and name.lower().endswith(wanted.lower())


def split_question_id(
    text: str, open_: Sequence[QuestionRecord]
) -> tuple[str, QuestionRecord | None]:
    """Return a text without the id at its end, and the open question with that id."""
    words, last = split_last(text)
    named = [each for each in open_ if matches_id(each.question.id, last)] if words else []
    return (words, named[0]) if len(named) == 1 else (text, None)


def split_last(text: str) -> tuple[str, str]:
    """Return a text without its last word, and that word."""
    words, *last = text.rsplit(maxsplit=1) or [""]
    return (words, last[0]) if last else ("", words)


def _chosen(question: Question, answer_text: str) -> AnswerInput | None:
    if not question.options:
        return None
    same = [n for n, option in enumerate(question.options, 1) if option.strip() == answer_text]
    if same:
        return AnswerInput("text", choices=tuple(same[:1]))
    numbers = (
        tuple(int(n) for n in re.findall(r"\d+", answer_text))
        if _NUMBERS.fullmatch(answer_text)
        else ()
    )
    fit = all(1 <= n <= len(question.options) for n in numbers)
    if not numbers or not fit or (len(numbers) > 1 and not question.multiple):
        return None
    return AnswerInput("text", choices=tuple(dict.fromkeys(numbers)))


def _normalize_plan(answer: AnswerInput) -> AnswerInput:
    _reject_foreign_fields(answer, "a plan", choices=False, calls=False)
    if answer.decision == "text" and not answer.text.strip():
        raise InvalidRequest(
            "Say what should change in the plan: text is empty.", reason_code="plan_feedback_empty"
        )
    if answer.decision != "edit" and answer.edit is None:
        return answer
    if answer.edit is None:
        raise InvalidRequest(
            'An edited plan needs edit, such as {"steps": ["first", "second"]}.',
            reason_code="plan_edit_missing",
        )
    steps = tuple(step.strip() for step in answer.edit.steps)
    if not 0 < len(steps) <= MAX_STEPS or not all(steps):
        raise InvalidRequest(
            f"A plan has 1 to {MAX_STEPS} steps and none of them is empty.",
            reason_code="plan_steps_invalid",
            limit=MAX_STEPS,
        )
    if len(msgspec.json.encode((steps, answer.edit.goal))) > MAX_PLAN_BYTES:
        raise InvalidRequest(
            f"The plan is too long: goal and steps have {MAX_PLAN_BYTES:,} bytes at most.",
            reason_code="plan_too_long",
            limit=MAX_PLAN_BYTES,
        )
    return msgspec.structs.replace(answer, edit=PlanEdit(steps, answer.edit.goal.strip()))


def _normalize_clarify(question: Question, answer: AnswerInput) -> AnswerInput:
    _reject_foreign_fields(answer, "a question", choices=True, calls=False)
    if answer.decision == "edit":
        raise InvalidRequest(
            "Only a plan can be edited: answer with text or choices.",
            reason_code="only_plans_edited",
        )
    wrong = [n for n in answer.choices if not 1 <= n <= len(question.options)]
    if wrong:
        raise InvalidRequest(
            f"There is no option {wrong[0]}: the options are 1 to {len(question.options)}.",
            reason_code="no_option",
            number=wrong[0],
            count=len(question.options),
        )
    if len(set(answer.choices)) > 1 and not question.multiple:
        raise InvalidRequest(
            "Choose one option: this question takes a single one.", reason_code="single_option"
        )
    chosen = [question.options[n - 1] for n in dict.fromkeys(answer.choices)]
    text = "; ".join([*chosen, *([answer.text.strip()] if answer.text.strip() else [])])
    if answer.decision == "text" and not text:
        raise InvalidRequest(
            "The answer is empty: give text, or choices such as [1].", reason_code="answer_empty"
        )
    return msgspec.structs.replace(answer, text=text)


def _normalize_approval(question: Question, answer: AnswerInput) -> AnswerInput:
    _reject_foreign_fields(answer, "calls", choices=False, calls=True)
    if answer.decision == "edit":
        raise InvalidRequest(
            "Calls cannot be edited: say no and what should be done instead.",
            reason_code="calls_not_edited",
        )
    if answer.decision == "text":
        if not answer.text.strip():
            raise InvalidRequest("Say yes or no: text is empty.", reason_code="say_yes_or_no")
        answer = msgspec.structs.replace(answer, decision="reject")
    known = {call.call_id for call in question.calls}
    if foreign := next((name for name in answer.items if name not in known), None):
        raise InvalidRequest(
            f"The question is not about a call {foreign[:80]!r}.",
            reason_code="foreign_call",
            name=foreign[:80],
        )
    yes = answer.decision == "approve"
    approved = [call for call in question.calls if answer.items.get(call.call_id, yes)]
    if answer.grant != "once" and approved:
        return msgspec.structs.replace(answer, rules=_rules(question, approved, answer.rules))
    if answer.rules:
        raise InvalidRequest(
            "Rules need a yes with the grant session or rule.", reason_code="rules_need_yes"
        )
    return msgspec.structs.replace(answer, grant="once")


def _normalize_recovery(answer: AnswerInput) -> AnswerInput:
    """Retry with a text is advice, as the decision text is."""
    _reject_foreign_fields(answer, "another try", choices=False, calls=False)
    if answer.decision == "edit" or answer.edit is not None:
        raise InvalidRequest(
            "Only a plan can be edited: answer with text, approve or reject.",
            reason_code="only_plans_edited",
        )
    text = answer.text.strip()
    if answer.decision == "text" and not text:
        raise InvalidRequest(
            "Say what the agent should do differently: text is empty.", reason_code="advice_empty"
        )
    if answer.decision == "approve" and text:
        return msgspec.structs.replace(answer, decision="text")
    return answer


def _rules(
    question: Question, approved: Sequence[ApprovalItem], wanted: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the rules that an approval adds: the rules in the answer, else all offered ones."""
    without_rule = next((call for call in approved if not call.rules), None)
    if without_rule is not None and not wanted:
        raise InvalidRequest(
            f"No rule may allow this call of {without_rule.tool}: it can be allowed once only.",
            reason_code="no_rule_allows",
            tool=without_rule.tool,
        )
    check_rule_lengths(wanted)
    rules = wanted or tuple(rule for call in approved for rule in call.rules)
    for rule in rules:
        try:
            parse_allow_rule(rule, question.targets)
        except RuleError as error:
            raise InvalidRequest(
                str(error), reason_code=error.reason_code, **error.params
            ) from error
    return tuple(dict.fromkeys(rules))


def _reject_foreign_fields(answer: AnswerInput, about: str, *, choices: bool, calls: bool) -> None:
    """Reject fields that have no meaning for this kind of question."""
    if answer.edit is not None and answer.decision not in ("edit", "approve"):
        raise InvalidRequest(
            "edit goes with the decision edit or approve.", reason_code="edit_without_decision"
        )
    if answer.edit is not None and calls + choices:
        raise InvalidRequest(
            f"edit has no meaning for {about}.", reason_code="field_meaningless", field="edit"
        )
    if answer.choices and not choices:
        raise InvalidRequest(
            f"choices have no meaning for {about}.",
            reason_code="field_meaningless",
            field="choices",
        )
    if (answer.items or answer.rules or answer.grant != "once") and not calls:
        raise InvalidRequest(
            f"items, grant and rules have no meaning for {about}.",
            reason_code="field_meaningless",
            field="items, grant, rules",
        )


def answer_schema(question: Question) -> dict[str, Any]:
    """Return the JSON Schema of the answers to a question."""
    text: dict[str, Any] = {"type": "string", "maxLength": MAX_ANSWER_CHARS}
    fields: dict[str, Any] = {"text": text}
    match question.kind:
        case "plan":
            step = {"type": "string", "minLength": 1, "maxLength": MAX_STEP_CHARS}
            steps = {"type": "array", "items": step, "minItems": 1, "maxItems": MAX_STEPS}
            goal = {"type": "string", "maxLength": MAX_STEP_CHARS}
            edit = {"type": "object", "properties": {"steps": steps, "goal": goal}}
            fields["edit"] = {**edit, "required": ["steps"], "additionalProperties": False}
        case "clarify":
            numbers = {"type": "integer", "minimum": 1, "maximum": len(question.options)}
            most = len(question.options) if question.multiple else min(len(question.options), 1)
            fields["choices"] = {"type": "array", "items": numbers, "maxItems": most}
        case "approval":
            calls = {call.call_id: {"type": "boolean"} for call in question.calls}
            fields["items"] = {"type": "object", "properties": calls, "additionalProperties": False}
            fields["grant"] = {"enum": ["once", "session", "rule"]}
            rules = {"type": "array", "items": {"type": "string"}, "maxItems": _MAX_RULES}
            fields["rules"] = rules
        case "recovery":
            pass  # a decision, and a text
    return {
        "type": "object",
        "properties": {"decision": {"enum": _DECISIONS[question.kind]}, **fields},
        "required": ["decision"],
        "additionalProperties": False,
    }
