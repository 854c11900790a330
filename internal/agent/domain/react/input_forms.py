"""Forms that a tool asks people to fill in during a call, asked as one question per value. Pure.

A form is answered in the order of its fields. An answer that does not fit is asked again with the
reason, at most `MAX_ATTEMPTS` times; then the form is declined.
"""

import math
import re
from collections.abc import Callable
from datetime import date
from typing import Any, Literal, NamedTuple

import msgspec

from internal.agent.domain.ids import QuestionId
from internal.agent.domain.questions import Answer, Question
from internal.agent.domain.text import replace_surrogates, truncate_json
from internal.normal_forms.instants import parse_instant
from internal.normal_forms.urls import split_url

MAX_ATTEMPTS = 3
MAX_ROUNDS = 10
"""Maximum number of times that one call may ask for forms."""
MAX_OFFERED = 18
"""Values that are offered as options; of a longer list people type one."""

DECLINE, LEAVE_OUT = "Decline to answer", "Leave it empty"
_WARNING = "It receives your answer: enter no passwords or keys."
_YES, _NO, _DONE = "Yes", "No", "Done"
_MAX_INTEGER = 2**53
_YES_WORDS = frozenset({"yes", "y", "true", "ok", "done", "是", "好", "完成"})
_NO_WORDS = frozenset({"no", "n", "false", "否", "不"})
_SEPARATORS = re.compile(r"[;；,，\n]")  # noqa: RUF001 - people write these
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")

FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices", "confirm"]
InputValue = str | int | float | bool | list[str]
InputAction = Literal["accept", "decline"]


class InputField(msgspec.Struct, frozen=True):
    """A requested value. `label` and `description` are for people.

    `values` are the choices, `labels` their display names. `minimum` and `maximum` bound a number,
    the characters of a text, or the number of chosen values. `format` is a JSON Schema format of a
    text, "" for any. A `confirm` field has no value.
    """

    name: str
    kind: FieldKind
    label: str
    description: str = ""
    required: bool = False
    default: InputValue | None = None
    values: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    format: str = ""


class InputForm(msgspec.Struct, frozen=True):
    """A form. `key` identifies it to the tool. With a `url`, people open it, then confirm."""

    key: str
    message: str
    fields: tuple[InputField, ...] = ()
    url: str = ""

    def field(self, position: int) -> InputField:
        """Return a field; a form without fields is confirmed."""
        return self.fields[position] if self.fields else _CONFIRM


_CONFIRM = InputField("", "confirm", "", required=True)


class InputRequest(msgspec.Struct, frozen=True):
    """A call's request for input before it continues. `state` goes back to the tool unchanged.

    `source` names the requester for people, such as "The MCP server “github”".
    """

    source: str
    forms: tuple[InputForm, ...]
    state: str | None = None


class InputResponse(msgspec.Struct, frozen=True):
    """The response to a form. `values` are by field name, none if it was declined."""

    key: str
    action: InputAction
    values: dict[str, InputValue] = {}


class InputReply(msgspec.Struct, frozen=True):
    """The responses with which a call continues."""

    responses: tuple[InputResponse, ...]
    state: str | None

    @property
    def has_declined(self) -> bool:
        """True if a form was declined."""
        return any(each.action == "decline" for each in self.responses)


class CallInput(msgspec.Struct, frozen=True):
    """A request for forms and the answers so far. The call waits until it `is_complete`.

    `responses` answer the first forms; `values`, `position`, `attempts` and `problem` belong to the
    next form; `position` is its next field.
    """

    request: InputRequest
    round: int = 1
    responses: tuple[InputResponse, ...] = ()
    values: dict[str, InputValue] = {}
    position: int = 0
    attempts: int = 0
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """True if every form has a response."""
        return len(self.responses) == len(self.request.forms)

    @property
    def reply(self) -> InputReply:
        """The responses so far."""
        return InputReply(self.responses, self.request.state)

    def declined(self) -> "CallInput":
        """Return the request with all forms declined, as when nobody can be asked."""
        declined = tuple(InputResponse(form.key, "decline") for form in self.request.forms)
        return msgspec.structs.replace(self, responses=declined)

    def question(self, question_id: QuestionId, call_id: str) -> Question:
        """Return the question about the next value, which begins with who asks."""
        request, form = self.request, self._form
        field = form.field(self.position)
        lines = [
            self.problem,
            f"Open this address yourself: {form.url}" if form.url else "",
            _describe(field, self.position, len(form.fields)),
            f"{request.source} asks this, not Larkspur. {_WARNING}",
        ]
        return Question(
            question_id,
            "clarify",
            truncate_json(f"{request.source} asks: {form.message}", 8000),
            body=truncate_json("\n".join(filter(None, lines)), 16_000),
            options=tuple(truncate_json(option.label, 1000) for option in _options(form, field)),
            call_id=call_id,
            multiple=field.kind == "choices",
        )

    def with_answer(self, answer: Answer) -> "CallInput":
        """Return the request with the answer to the next value."""
        if answer.decision in ("reject", "expired"):
            return self._respond("decline")
        field = self._form.field(self.position)
        try:
            value = _read(self._form, field, answer)
        except ValueError as error:
            if self.attempts + 1 >= MAX_ATTEMPTS:
                return self._respond("decline")
            return msgspec.structs.replace(self, attempts=self.attempts + 1, problem=str(error))
        if isinstance(value, _Decision):
            return self._respond(value.action)
        values = self.values
        if value is not None and field.kind != "confirm":
            values = {**values, field.name: value}
        position = self.position + 1
        if position >= len(self._form.fields):
            return self._respond("accept", values)
        return CallInput(self.request, self.round, self.responses, values, position)

    @property
    def _form(self) -> InputForm:
        return self.request.forms[len(self.responses)]

    def _respond(
        self, action: InputAction, values: dict[str, InputValue] | None = None
    ) -> "CallInput":
        response = InputResponse(self._form.key, action, values or {})
        responses = (*self.responses, response)
        return CallInput(self.request, self.round, responses)


class _Decision(NamedTuple):
    """The choice to answer nothing."""

    action: InputAction


DECLINED = _Decision("decline")
_Read = InputValue | _Decision | None


class _Option(NamedTuple):
    label: str
    value: _Read


def _options(form: InputForm, field: InputField) -> list[_Option]:
    """Return the options: the values, the default or no value, and always to decline."""
    offered: list[_Option] = []
    match field.kind:
        case "confirm":
            offered.append(_Option(_DONE if form.url else _YES, True))
        case "boolean":
            offered += (_Option(_YES, True), _Option(_NO, False))
        case "choice" | "choices" if len(field.values) <= MAX_OFFERED:
            offered += map(_Option, field.labels, field.values)
        case _:
            pass
    if field.default is not None:
        offered.append(_Option(f"Use the default: {_text(field, field.default)}", field.default))
    elif not field.required:
        offered.append(_Option(LEAVE_OUT, None))
    return [*offered, _Option(DECLINE, DECLINED)]


def _text(field: InputField, value: InputValue) -> str:
    """Return a value as people read it."""
    if isinstance(value, bool):
        return _YES if value else _NO
    labels = dict(zip(field.values, field.labels, strict=True))
    chosen = value if isinstance(value, list) else [str(value)]
    return ", ".join(labels.get(each, each) for each in chosen)


def _describe(field: InputField, position: int, count: int) -> str:
    """Return the description of the requested value and its constraints."""
    if field.kind == "confirm":
        return ""
    place = f" ({position + 1} of {count})" if count > 1 else ""
    bounds = _bounds(field)
    about = f": {field.description}" if field.description else ""
    needs = " · ".join(filter(None, (field.format, bounds, "" if field.required else "optional")))
    lines = [f"{field.label}{place}{about}{f' [{needs}]' if needs else ''}"]
    if len(field.values) > MAX_OFFERED:
        lines.append(f"Type one of: {', '.join(field.labels)}")
    return "\n".join(lines)


def _bounds(field: InputField) -> str:
    unit = {"text": " characters", "choices": " choices", "integer": "", "number": ""}
    if field.kind not in unit:
        return ""
    least, most = field.minimum, field.maximum
    name = unit[field.kind]
    if least is not None and most is not None:
        return f"{least:.15g} to {most:.15g}{name}"
    if least is not None:
        return f"at least {least:.15g}{name}"
    if most is not None:
        return f"at most {most:.15g}{name}"
    return "a whole number" if field.kind == "integer" else ""


def _read(form: InputForm, field: InputField, answer: Answer) -> _Read:
    """Return the value of an answer; None if the value is left out.

    Raises:
        ValueError: it does not fit; the message is a sentence for people.
    """
    options = _options(form, field)
    text = replace_surrogates(answer.text).strip()
    if answer.choices:
        chosen = [options[number - 1].value for number in answer.choices]
        return _choose(field, chosen)
    if answer.decision == "approve" and not text:
        return _agree(field)
    folded = text.casefold()
    for option in options:
        if option.label.casefold() == folded:
            return _choose(field, [option.value])
    return _parse(field, text)


def _choose(field: InputField, chosen: list[_Read]) -> _Read:
    """Return the value of chosen options."""
    if DECLINED in chosen:
        return DECLINED
    if field.kind != "choices" or isinstance(chosen[0], list) or None in chosen:
        return chosen[0]
    return _within(field, [each for each in chosen if isinstance(each, str)])


def _agree(field: InputField) -> _Read:
    """Return the value of a yes without a value."""
    if field.kind in ("boolean", "confirm"):
        return True
    if field.default is not None or not field.required:
        return field.default
    raise ValueError("A value is needed.")


def _parse(field: InputField, text: str) -> _Read:
    match field.kind:
        case "text":
            return _parse_text(field, text)
        case "number" | "integer":
            return _parse_number(field, text)
        case "boolean" | "confirm":
            return _parse_boolean(field, text)
        case "choice":
            return _find(field, text)
        case "choices":
            parts = [part.strip() for part in _SEPARATORS.split(text)]
            found = [_find(field, part) for part in parts if part]
            return _within(field, list(dict.fromkeys(found)))


def _parse_text(field: InputField, text: str) -> str:
    _check_bounds(field, len(text))
    fits = _FORMATS.get(field.format)
    if fits is not None and not fits(text):
        raise ValueError(f"That is not a valid {field.format}.")
    return text


def _parse_number(field: InputField, text: str) -> float | int:
    try:
        value = int(text) if field.kind == "integer" else float(text)
    except ValueError as error:
        kind = "a whole number" if field.kind == "integer" else "a number"
        raise ValueError(f"That is not {kind}.") from error
    if not math.isfinite(value) or (abs(value) > _MAX_INTEGER and field.kind == "integer"):
        raise ValueError("That number is too large.")
    _check_bounds(field, value)
    return int(value) if value == int(value) and abs(value) <= _MAX_INTEGER else value


def _parse_boolean(field: InputField, text: str) -> _Read:
    word = text.casefold().rstrip(".!。！")  # noqa: RUF001 - people write these
    if word in _YES_WORDS:
        return True
    if word in _NO_WORDS:
        return False if field.kind == "boolean" else DECLINED
    raise ValueError("Answer yes or no.")


def _find(field: InputField, text: str) -> str:
    """Return the value with this label or name."""
    folded = text.casefold()
    for value, label in zip(field.values, field.labels, strict=True):
        if folded in (label.casefold(), value.casefold()):
            return value
    raise ValueError("That is none of the values to choose from.")


def _within(field: InputField, chosen: list[str]) -> list[str]:
    _check_bounds(field, len(chosen))
    return chosen


def _check_bounds(field: InputField, amount: float) -> None:
    least, most = field.minimum, field.maximum
    if (least is not None and amount < least) or (most is not None and amount > most):
        raise ValueError(f"That does not fit: {_bounds(field)}.")


def _is_date(text: str) -> bool:
    return _parses(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    return _parses(parse_instant, text)


def _is_address(text: str) -> bool:
    try:
        parts = split_url(text)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path)) and " " not in text


def _parses(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


_FORMATS: dict[str, Callable[[str], bool]] = {
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uri": _is_address,
    "date": _is_date,
    "date-time": _is_time,
}
