"""Answers as JSON that matches a JSON schema of the user."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import validator_for
from referencing import Registry

from internal.channels.cli.exit_codes import USAGE, CliExit

MAX_SCHEMA_BYTES = 100_000
_MAX_SHOWN_ERRORS = 5
_MAX_ERROR_CHARS = 300
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)
_REQUEST = """{task}

Your final answer must be one JSON value that matches this JSON schema, and nothing else:

{schema}"""
_CORRECTION = """Your final answer does not match the JSON schema:

{problem}

Answer again with only the corrected JSON value."""


class Checked(NamedTuple):
    """The value of an answer, or its `problem` if it is not valid."""

    value: Any
    problem: str = ""


class AnswerSchema:
    """A JSON schema that the final answer must match.

    The draft is that of `$schema`, 2020-12 without one. References lead nowhere else than into the
    schema itself: nothing is fetched.
    """

    def __init__(self, schema: Any) -> None:
        """Check the schema.

        Raises:
            CliExit: it is not a valid schema, or refers to another one.
        """
        if not isinstance(schema, dict):
            raise CliExit(USAGE, 'The JSON schema must be an object, such as {"type": "array"}.')
        kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            sentence = f"The JSON schema is not valid: {_shorten(error.message)}."
            raise CliExit(USAGE, sentence) from None
        for reference in _references(schema):
            if not reference.startswith("#"):
                shown = _shorten(reference)
                raise CliExit(USAGE, f"The JSON schema refers to {shown}; it must be complete.")
        self._text = json.dumps(schema, ensure_ascii=False)
        self._validator = kind(schema, registry=Registry())

    def request(self, task: str) -> str:
        """Return the task with the schema of its answer."""
        return _REQUEST.format(task=task, schema=self._text)

    def correction(self, problem: str) -> str:
        """Return the task to correct an answer."""
        return _CORRECTION.format(problem=problem)

    def check(self, answer: str) -> Checked:
        """Return the value of an answer: the whole text, or its last code block."""
        fenced = _FENCED.findall(answer)
        text = fenced[-1] if fenced else answer
        try:
            value = json.loads(text, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            return Checked(None, f"It is not JSON: {_shorten(str(error))}.")
        errors: list[ValidationError] = sorted(
            self._validator.iter_errors(value), key=lambda one: one.json_path
        )
        lines = [f"{one.json_path}: {_shorten(one.message)}" for one in errors[:_MAX_SHOWN_ERRORS]]
        if more := len(errors) - len(lines):
            lines.append(f"and {more} more")
        return Checked(None if lines else value, "\n".join(lines))


def read_schema(path: str) -> AnswerSchema:
    """Read a schema from a file.

    Raises:
        CliExit: it cannot be read, is too large or is not a valid schema.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_SCHEMA_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise CliExit(USAGE, f"The JSON schema {path} cannot be read: {reason}.") from None
    if len(content) > MAX_SCHEMA_BYTES:
        sentence = f"The JSON schema {path} is larger than {MAX_SCHEMA_BYTES:,} bytes."
        raise CliExit(USAGE, sentence)
    try:
        schema = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CliExit(USAGE, f"The JSON schema {path} is not JSON: {error}.") from None
    return AnswerSchema(schema)


def _references(schema: Any) -> Iterator[str]:
    """Yield the targets of all references, also in parts that no keyword uses."""
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name in {"$ref", "$dynamicRef"} and isinstance(value, str):
                yield value
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_ERROR_CHARS else f"{line[: _MAX_ERROR_CHARS - 1]}…"
