"""The same documents, read by us and exported as text by LibreOffice."""

import csv
import datetime as dt
import io
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import openpyxl
import pytest

from internal.documents.docx import read_docx
from internal.documents.extraction import ExtractedDocument
from internal.documents.open_document import read_ods, read_odt
from internal.documents.xls import read_xls
from internal.documents.xlsx import read_xlsx
from tests.support import documents
from tests.support.documents import word_file, word_paragraph, word_part
from tests.unit.documents.documented_rows import NUMBERING, numbered, run

pytestmark = [pytest.mark.slow, pytest.mark.needs("libreoffice"), pytest.mark.timeout(600)]

_WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default '
    'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    + "".join(
        f'<Override PartName="/word/{part}.xml" ContentType="{_WORD_TYPE}.{kind}+xml"/>'
        for part, kind in (
            ("document", "document.main"),
            ("numbering", "numbering"),
            ("styles", "styles"),
        )
    )
    + "</Types>"
)
TEXT_FILTER = "txt:Text (encoded):UTF8"
CSV_FILTER = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false"


def convert(path: Path, form: str) -> Path:
    """Return a file as LibreOffice saves it in another form, beside it."""
    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    profile = f"-env:UserInstallation=file://{path.parent / 'profile'}"
    command = ["soffice", profile, "--headless", "--convert-to", form, "--outdir", str(folder)]
    subprocess.run([*command, str(path)], check=True, capture_output=True, timeout=300)
    return next(folder.glob(f"{path.stem}.{form.partition(':')[0]}"))


def words_of(text: str) -> list[str]:
    return re.findall(r"[\w.()§]+", text)


def letter() -> bytes:
    """Return a document with numbered lists, a link, a table and changes."""
    cells = "".join(f"<w:tc>{word_paragraph(each)}</w:tc>" for each in ("left", "right"))
    items = (("Price", 0), ("Delivery", 0), ("By air", 1), ("daily", 2), ("weekly", 2), ("Law", 0))
    body = (
        word_paragraph("Contract")
        + "".join(numbered(text, depth) for text, depth in items)
        + numbered("总则", 0, 2)
        + f'<w:p>{run("Pay in ")}<w:ins w:author="Mia">{run("14")}</w:ins>{run(" days")}</w:p>'
        + f"<w:tbl><w:tblPr/><w:tr>{cells}</w:tr></w:tbl>"
        + word_paragraph("end")
    )
    content = word_file(body, {"numbering": NUMBERING, "styles": word_part("styles", "")})
    return documents.replace_entry(content, "[Content_Types].xml", TYPES.encode())


def orders() -> bytes:
    """Return a workbook with dates, percentages and empty rows."""
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.append(["name", "part", "day"])
    sheet.append(["张三", 0.25, dt.date(2026, 11, 3)])
    sheet.append([])
    sheet.append([None, 0.5, dt.date(2026, 2, 28)])
    for each in (sheet["B2"], sheet["B4"]):
        each.number_format = "0%"
    for each in (sheet["C2"], sheet["C4"]):
        each.number_format = "yyyy-mm-dd"
    output = io.BytesIO()
    book.save(output)
    return output.getvalue()


def test_a_letter_has_the_words_and_numbers_that_libreoffice_shows(tmp_path: Path) -> None:
    path = tmp_path / "letter.docx"
    path.write_bytes(letter())
    exported = convert(path, TEXT_FILTER).read_text(encoding="utf-8-sig")
    ours = "".join(read_docx(io.BytesIO(path.read_bytes())).pieces)
    ours = re.sub(r"\[Tracked changes:.*?\]|\| ---.*|[|]", "", ours)
    assert words_of(ours) == words_of(exported)
    with convert(path, "odt").open("rb") as file:
        text = "".join(read_odt(file).pieces)
    assert {"Contract", "Price", "daily", "end"} <= set(words_of(text))


@pytest.mark.parametrize(
    ("form", "read"), [("xlsx", read_xlsx), ("xls", read_xls), ("ods", read_ods)]
)
def test_a_workbook_has_the_values_that_libreoffice_shows(
    tmp_path: Path, form: str, read: Callable[[BinaryIO], ExtractedDocument]
) -> None:
    path = tmp_path / "orders.xlsx"
    path.write_bytes(orders())
    exported = convert(path, CSV_FILTER).read_text(encoding="utf-8-sig")
    source = path if form == "xlsx" else convert(path, form)
    with source.open("rb") as file:
        lines = "".join(read(file).pieces).splitlines()[2:]
    ours = {int(row[0]): row[1:] for row in csv.reader(lines[1:]) if row}
    theirs = {
        number: row
        for number, row in enumerate(csv.reader(exported.splitlines()), start=1)
        if any(row)
    }
    assert ours == theirs
