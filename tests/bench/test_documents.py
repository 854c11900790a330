"""What reading a small document costs: its child process, the libraries and the text."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from internal.documents.reader import ChildDocumentReader
from tests.bench.processes import PYTHON, environment, seconds_of
from tests.bench.table import Row, Table
from tests.support import documents

pytestmark = pytest.mark.bench

ROUNDS = 7
FILES = {
    "PDF": documents.pdf("a page", "another page"),
    "DOCX": documents.docx(documents.word_paragraph("a paragraph")),
    "XLSX": documents.xlsx({"Sheet": [["a", "cell"]] * 100}),
    "PNG": documents.picture("PNG", (800, 600)),
}


async def _milliseconds(path: Path) -> float:
    reader, descriptor = ChildDocumentReader(), os.open(path, os.O_RDONLY)
    begun = time.perf_counter()
    if path.suffix == ".png":
        await reader.read_picture(descriptor)
    else:
        await reader.read(descriptor, path.name)
    taken = time.perf_counter() - begun
    os.close(descriptor)
    return taken * 1000


def test_a_document_is_read(tmp_path: Path, table: Table) -> None:
    for form, content in FILES.items():
        path = tmp_path / f"a.{form.lower()}"
        path.write_bytes(content)
        taken, floor = [], []
        for _ in range(ROUNDS):
            taken.append(asyncio.run(_milliseconds(path)))
            floor.append(1000 * seconds_of([PYTHON, "-c", "pass"], environment(tmp_path)))
        table.add(Row(f"reading a small {form} file", "ms", taken, floor, "python -c pass"))
