"""Schemas of answers: which are accepted, and which answers match."""

import json
from pathlib import Path
from typing import Any

import pytest

from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.headless.answer_schema import MAX_SCHEMA_BYTES, AnswerSchema, read_schema

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ANN = '{"name": "Ann", "age": 7}'


@pytest.mark.parametrize(
    "answer",
    [ANN, f"\n {ANN}\n", f"Here it is:\n```json\n{ANN}\n```\nDone.", f"```\n{ANN}\n```"],
)
def test_a_matching_answer_is_read_with_or_without_a_code_block(answer: str) -> None:
    assert AnswerSchema(PERSON).check(answer) == ({"name": "Ann", "age": 7}, "")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("seven", "It is not JSON"),
        ("", "It is not JSON"),
        ('{"name": "Ann", "age": NaN}', "NaN is not a JSON value"),
        ("[" * 100_000, "It is not JSON"),
        ('{"name": "Ann"}', "$: 'age' is a required property"),
        ('{"name": "Ann", "age": -1}', "$.age: -1 is less than the minimum of 0"),
        ('{"name": "Ann", "age": "' + "x" * 9_999 + '"}', "…"),
    ],
)
def test_another_answer_is_rejected_with_the_place_of_the_problem(
    answer: str, problem: str
) -> None:
    checked = AnswerSchema(PERSON).check(answer)
    assert checked.value is None
    assert problem in checked.problem
    assert len(checked.problem) < 1_000


def test_many_problems_are_counted() -> None:
    schema = AnswerSchema({"type": "array", "items": {"type": "string"}})
    assert schema.check(json.dumps([*range(8)])).problem.endswith("and 3 more")


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ([], "must be an object"),
        ({"type": "text"}, "is not valid: 'text' is not valid"),
        ({"$ref": "https://example.com/person.json"}, "refers to https://example.com"),
        ({"$defs": {"a": {"$ref": "file:///etc/passwd"}}}, "refers to file:"),
    ],
)
def test_an_unusable_schema_is_a_usage_error(schema: Any, sentence: str) -> None:
    with pytest.raises(CliExit, match=sentence) as refused:
        AnswerSchema(schema)
    assert refused.value.code == 2


def test_references_into_the_schema_and_older_drafts_are_allowed() -> None:
    local = {"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}
    assert AnswerSchema(local).check("1").value == 1
    assert AnswerSchema(local).check("2").problem
    draft7 = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"type": "string"}],
        "additionalItems": False,
    }
    assert AnswerSchema(draft7).check('["a"]').value == ["a"]
    assert AnswerSchema(draft7).check('["a", 1]').problem


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    for content, sentence in (
        (None, "cannot be read: no such file"),
        (b"{", "is not JSON"),
        (b" " * (MAX_SCHEMA_BYTES + 1), "is larger than 100,000 bytes"),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(CliExit, match=sentence):
            read_schema(str(path))
    path.write_text(json.dumps(PERSON), encoding="utf-8")
    assert read_schema(str(path)).check(ANN).problem == ""
