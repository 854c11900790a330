"""Binary workbooks."""

import io

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.xlsb import read_xlsb
from tests.support import documents
from tests.support.xlsb_samples import (
    workbook,
)


def test_values_are_read_at_their_places() -> None:
    read = "".join(read_xlsb(io.BytesIO(workbook())).pieces)
    assert read.startswith('## Sheet "Orders"\n\n,A,B,C\n1,amount\n2,,,1200.5\n\n')
    assert "were left out" in read


def test_a_damaged_workbook_is_named() -> None:
    with pytest.raises(DocumentUnreadable, match="damaged"):
        read_xlsb(io.BytesIO(documents.archive({"xl/workbook.bin": b"\x83\x01"})))
