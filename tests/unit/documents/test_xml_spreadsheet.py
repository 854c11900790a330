"""Workbooks of Excel 2003 in XML."""

import io

import pytest

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.kinds import detect_kind
from internal.documents.xml_spreadsheet import read_xml_spreadsheet
from tests.support.xml_spreadsheet_samples import workbook


def data(kind: str, text: str) -> str:
    return f'<Data ss:Type="{kind}">{text}</Data>'


def test_values_are_read_at_their_places() -> None:
    content = workbook(
        f'<Row><Cell>{data("String", "a")}</Cell><Cell ss:Index="3">{data("Number", "1.50")}</Cell>'
        f'</Row><Row ss:Index="5"><Cell>{data("DateTime", "2026-11-03T00:00:00.000")}'
        f'<Comment ss:Author="Mia">{data("String", "check")}</Comment></Cell>'
        f"<Cell>{data('Boolean', '1')}</Cell></Row>"
    )
    assert detect_kind(content, "report.xls") == "xmlss"
    text = "".join(read_xml_spreadsheet(io.BytesIO(content)).pieces)
    assert text == (
        '## Sheet "S"\n\n,A,B,C\n1,a,,1.5\n5,2026-11-03,TRUE\nComment at A5 by Mia: check\n\n'
    )


def test_damage_and_entities_are_named() -> None:
    with pytest.raises(DocumentUnreadable, match="damaged"):
        read_xml_spreadsheet(io.BytesIO(workbook("<Row>")[:-9]))
    with pytest.raises(DocumentUnreadable, match="entities"):
        read_xml_spreadsheet(io.BytesIO(workbook("", '<!DOCTYPE x [<!ENTITY e "x">]>')))
