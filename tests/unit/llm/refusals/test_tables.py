"""Each row of the tables of refusals, by a sample answer with its source."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from internal.agent.domain.errors import RefusalKind
from internal.llm.refusals.answer import read_answer
from internal.llm.refusals.classifier import classify, find_row
from internal.llm.refusals.table import load_tables
from internal.model_providers.dialect import Dialect

FOLDER = Path(__file__).parent / "answers"


class Sample(NamedTuple):
    """A received answer of a table row. `status` is None in a stream."""

    table: str
    row: str
    content: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.table}/{self.row}"


def load_answers() -> list[Sample]:
    return [
        Sample(file.stem, row, content)
        for file in sorted(FOLDER.glob("*.json"))
        for row, content in json.loads(file.read_text("utf-8")).items()
    ]


ANSWERS = load_answers()


@pytest.mark.parametrize("sample", ANSWERS, ids=str)
def test_a_sample_answer_fits_its_row_and_no_other(sample: Sample) -> None:
    content = sample.content
    answer = read_answer(content["status"], content["body"])
    found = find_row(answer)
    assert found is not None
    assert (found.table, found.name) == (sample.table, sample.row)
    for field in ("name", "number", "limit"):
        assert getattr(found.refusal, field) == content.get(field, "" if field == "name" else None)


@pytest.mark.parametrize("sample", ANSWERS, ids=str)
def test_an_answer_is_understood_without_its_codes_or_as_nothing_else(sample: Sample) -> None:
    """A row of words alone that fits the answer of another row is too general."""
    content = sample.content
    answer = read_answer(content["status"], content["body"])
    kind = load_tables()[sample.table][sample.row].kind
    assert classify(answer._replace(codes=())).kind in {kind, "unknown"}


def test_what_a_row_changes_is_a_field_of_the_dialect() -> None:
    for rows in load_tables().values():
        for row in rows.values():
            assert set(row.change) <= set(Dialect.__struct_fields__)


def test_each_row_has_a_sample_answer_with_its_source() -> None:
    rows = {(table, row) for table, rows in load_tables().items() for row in rows}
    assert {(each.table, each.row) for each in ANSWERS} == rows
    assert all(each.content["source"] for each in ANSWERS)


def test_the_tables_hold_all_kinds_of_many_servers() -> None:
    rows = [row for rows in load_tables().values() for row in rows.values()]
    assert len(rows) >= 60
    assert len(load_tables()) >= 12
    assert {row.kind for row in rows} == set(get_args(RefusalKind)) - {"unknown"}
