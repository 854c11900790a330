"""Cost of reading a small document: its child process, the libraries and the text."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from internal.agent.ports.sandbox import Sandbox
from internal.documents.reader import ChildDocumentReader
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.native import NativeSandbox
from internal.sandbox.workspaces import SessionFolders
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


async def _milliseconds(sandbox: Sandbox, path: Path) -> float:
    reader, descriptor = ChildDocumentReader(sandbox), os.open(path, os.O_RDONLY)
    begun = time.perf_counter()
    if path.suffix == ".png":
        await reader.read_picture(descriptor)
    else:
        await reader.read(descriptor, path.name)
    taken = time.perf_counter() - begun
    os.close(descriptor)
    return taken * 1000


@pytest.mark.parametrize("provider", [NativeSandbox, BubblewrapSandbox])
def test_a_document_is_read(
    tmp_path: Path, table: Table, provider: type[NativeSandbox | BubblewrapSandbox]
) -> None:
    sandbox = provider(SessionFolders(tmp_path / "homes"))
    for form, content in FILES.items():
        path = tmp_path / f"a.{form.lower()}"
        path.write_bytes(content)
        taken, floor = [], []
        for _ in range(ROUNDS):
            taken.append(asyncio.run(_milliseconds(sandbox, path)))
            floor.append(1000 * seconds_of([PYTHON, "-c", "pass"], environment(tmp_path)))
        table.add(
            Row(
                f"reading a small {form} file, {sandbox.provider}",
                "ms",
                taken,
                floor,
                "python -c pass",
            )
        )
