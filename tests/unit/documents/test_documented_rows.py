"""Statements of docs/files.md about each kind of document, checked with samples."""

import io
import re
from importlib import import_module

import pytest

from internal.documents.child import READERS
from internal.documents.extraction import ExtractedDocument
from internal.documents.kinds import ENCODED_KINDS
from tests import ROOT
from tests.unit.documents.documented_rows import TABLES, Sample, old_workbook

TESTED_ELSEWHERE = {
    "HEIC and AVIF pictures": "test_heif_pictures",
    "Word and PowerPoint files from before 2007, RTF": "test_reader",
}


def documented(page: str) -> list[list[str]]:
    """Return the first cells of the tables below the section about documents."""
    text = (ROOT / "docs" / page).read_text()
    section = re.split("^## ", text, flags=re.MULTILINE)[-1]
    tables = re.split("^### ", section, flags=re.MULTILINE)[1:]
    return [
        [table.partition("\n")[0], *re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)[1:]]
        for table in tables
    ]


def text_of(kind: str, content: bytes) -> str:
    module, function = READERS[kind]
    read = getattr(import_module(f"internal.documents.{module}"), function)
    codec = ("utf-8",) if kind in ENCODED_KINDS else ()
    document: ExtractedDocument = read(io.BytesIO(content), *codec)
    return "".join(document.pieces) or document.if_empty


def test_every_documented_row_has_a_sample() -> None:
    tables = {name: rows for name, *rows in documented("files.md")}
    known = {name: [*rows] for name, rows in TABLES.items()}
    known["Other files"] += TESTED_ELSEWHERE
    assert tables == known


def test_both_languages_have_the_same_rows() -> None:
    english, chinese = documented("files.md"), documented("files.zh.md")
    assert [len(each) for each in english] == [len(each) for each in chinese]


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(sample, id=f"{table}: {row}")
        for table, rows in TABLES.items()
        for row, sample in rows.items()
    ],
)
def test_a_documented_row_is_read_so(sample: Sample) -> None:
    text = text_of(sample.kind, sample.content)
    assert [part for part in sample.shown if part not in text] == [], text
    assert [part for part in sample.absent if part in text] == [], text


def test_a_workbook_from_before_2007_is_read_like_a_new_one() -> None:
    text = text_of("xls", old_workbook())
    assert ",A,B\n1,amount\n3,,25%\n4,2026-11-03\n" in text
    assert '## Sheet "Gone" (hidden)\n\n[No cell' in text
