"""Binary Excel workbooks."""

import struct

from tests.support import documents

BEGIN_BOOK, END_BOOK, BEGIN_SHEETS, END_SHEETS, SHEET = 131, 132, 143, 144, 156


BEGIN_SHEET, END_SHEET, BEGIN_DATA, END_DATA, SIZE = 129, 130, 145, 146, 148


ROW, NUMBER, TEXT = 0, 5, 6


def record(kind: int, content: bytes = b"") -> bytes:
    """Return a record of BIFF12."""
    head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    return head + bytes([len(content)]) + content


def text(value: str) -> bytes:
    """Return a text with its length."""
    return struct.pack("<I", len(value)) + value.encode("utf-16-le")


def workbook() -> bytes:
    """Return a workbook with a text in A1 and a number in C2."""
    book = record(BEGIN_BOOK) + record(BEGIN_SHEETS)
    book += record(SHEET, struct.pack("<II", 0, 1) + text("s") + text("Orders"))
    book += record(END_SHEETS) + record(END_BOOK)
    place = struct.pack("<II", 0, 0)
    sheet = record(BEGIN_SHEET) + record(SIZE, struct.pack("<IIII", 0, 1, 0, 2))
    sheet += record(BEGIN_DATA) + record(ROW, struct.pack("<I", 0) + bytes(21))
    sheet += record(TEXT, place + text("amount")) + record(ROW, struct.pack("<I", 1) + bytes(21))
    sheet += record(NUMBER, struct.pack("<IId", 2, 0, 1200.5)) + record(END_DATA)
    return documents.office(
        {
            "xl/workbook.bin": book,
            "xl/_rels/workbook.bin.rels": documents.relationships(
                {"s": ("worksheet", "worksheets/sheet1.bin")}
            ),
            "xl/worksheets/sheet1.bin": sheet + record(END_SHEET),
        },
        "xl/workbook.bin",
    )
