"""A small document for each row of the tables in docs/files.md, and how it is read."""

import datetime as dt
import email.message
import email.policy
import io
from typing import NamedTuple

import xlwt  # type: ignore[import-untyped]  # it has no type hints

from tests.support import documents
from tests.support.documents import slide_text, word_file, word_paragraph, word_part

WORDS = "Mia Example"


class Sample(NamedTuple):
    """A document: its kind, its content, and strings present in and absent from its text."""

    kind: str
    content: bytes
    shown: tuple[str, ...]
    absent: tuple[str, ...] = ()


def pdf_page(text: str, annotations: str = "", catalog: str = "", *more: str) -> bytes:
    """Return a PDF of one page with annotations; further objects are numbered from 6 on."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET" if text else ""
    return documents.pdf_of(
        [
            f"<</Type/Catalog/Pages 2 0 R{catalog}>>",
            "<</Type/Pages/Count 1/Kids[3 0 R]>>",
            (
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 200]/Resources<</Font<</F1 4 0 R>>>>"
                f"/Contents 5 0 R/Annots[{annotations}]>>"
            ),
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
            *more,
        ]
    )


FIELD = "<</Type/Annot/Subtype/Widget/Rect[180 10 380 30]/F 4"
NOTE = "<</Type/Annot/Rect[20 95 200 120]/F 4"
XFA = "<x:datasets><x:data><form><name>Mia &amp; Co</name></form></x:data></x:datasets>"
PDF = {
    "text of a page": Sample("pdf", pdf_page("Hello"), ("## Page 1\n\nHello\n",)),
    "form fields": Sample(
        "pdf",
        pdf_page(
            "Name:",
            "6 0 R 7 0 R",
            "/AcroForm<</Fields[6 0 R 7 0 R]>>",
            f"{FIELD}/FT/Tx/T(name)/V(Mia Example)>>",
            f"{FIELD}/FT/Tx/T(city)/TU(Town)>>",
        ),
        ("- name: Mia Example\n", "- city (Town): (empty)\n"),
    ),
    "ticked boxes and choices": Sample(
        "pdf",
        pdf_page(
            "",
            "6 0 R 7 0 R",
            "/AcroForm<</Fields[6 0 R 7 0 R]>>",
            f"{FIELD}/FT/Btn/T(agree)/V/Yes/AS/Yes>>",
            f"{FIELD}/FT/Btn/T(news)/V/Off/AS/Off>>",
        ),
        ("- agree: [x] Yes\n", "- news: [ ]"),
    ),
    "comments and notes": Sample(
        "pdf",
        pdf_page(
            "x",
            "6 0 R 7 0 R",
            "",
            f"{NOTE}/Subtype/Text/T(Mia)/Contents(reject this)>>",
            "<</Type/Annot/Rect[0 0 9 9]/F 2/Subtype/Text/Contents(secret)>>",
        ),
        ("[Comment by Mia: reject this]",),
        ("secret",),
    ),
    "marked text": Sample(
        "pdf",
        pdf_page(
            "30 days",
            "6 0 R 7 0 R",
            "",
            f"{NOTE}/Subtype/Highlight/QuadPoints[15 115 90 115 15 95 90 95]/Contents(long)>>",
            f"{NOTE}/Subtype/StrikeOut/QuadPoints[15 115 90 115 15 95 90 95]>>",
        ),
        ('[Comment on "30 days": long]', '[Struck out: "30 days"]'),
    ),
    "links": Sample(
        "pdf",
        pdf_page(
            "terms", "6 0 R", "", f"{NOTE}/Subtype/Link/A<</S/URI/URI(https://example.com/t)>>>>"
        ),
        ("Link: https://example.com/t",),
    ),
    "attached files": Sample(
        "pdf",
        pdf_page(
            "x",
            "",
            "/Names<</EmbeddedFiles<</Names[(a) 6 0 R]>>>>",
            "<</Type/Filespec/F(a.csv)/UF(a.csv)/EF<</F 7 0 R>>>>",
            "<</Length 3>>stream\nabc\nendstream",
        ),
        ("## Attached files, which were not read\n\n- a.csv",),
        ("abc",),
    ),
    "a page without text": Sample(
        "pdf", documents.pdf("one", ""), ("## Page 2\n\n[This page has no text that can be read",)
    ),
    "a form that only Adobe's programs show (XFA)": Sample(
        "pdf",
        pdf_page(
            "Please wait",
            "",
            "/AcroForm<</Fields[]/XFA[(datasets) 6 0 R]>>",
            f"<</Length {len(XFA)}>>stream\n{XFA}\nendstream",
        ),
        ("(XFA) were not understood", "- name: Mia & Co\n"),
    ),
    "pictures and drawings": Sample("pdf", pdf_page("x"), ("x",), ("icture",)),
}


def run(text: str) -> str:
    """Return a run of Word."""
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def level(number: int, form: str, text: str) -> str:
    """Return a level of a list."""
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def numbered(text: str, depth: int = 0, number: int = 1) -> str:
    """Return a paragraph of a list."""
    return word_paragraph(
        text, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>'
    )


NUMBERING = word_part(
    "numbering",
    f'<w:abstractNum w:abstractNumId="0">{level(0, "decimal", "%1.")}'
    f"{level(1, 'decimal', '%1.%2')}{level(2, 'lowerLetter', '(%3)')}</w:abstractNum>"
    f'<w:abstractNum w:abstractNumId="1">{level(0, "chineseCounting", "%1、")}</w:abstractNum>'
    f'<w:abstractNum w:abstractNumId="2">{level(0, "bullet", "o")}</w:abstractNum>'
    + "".join(f'<w:num w:numId="{n + 1}"><w:abstractNumId w:val="{n}"/></w:num>' for n in range(3)),
)
FRACTION = (
    "<m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den>"
    "</m:f></m:oMath>"
)
BOX = f"<w:txbxContent>{word_paragraph('Draft')}</w:txbxContent>"
SECTION = (
    '<w:sectPr><w:headerReference r:id="header1" w:type="default"/>'
    '<w:headerReference r:id="header2" w:type="first"/>'
    '<w:footerReference r:id="footer1" w:type="default"/></w:sectPr>'
)
CELL = "<w:tc>{}</w:tc>"
PICTURE = (
    "<wp:inline><wp:docPr id='1' descr='our office'/><a:graphic><a:graphicData><pic:pic/>"
    "</a:graphicData></a:graphic></wp:inline>"
)
WORD = {
    "headings": Sample(
        "docx",
        documents.docx(word_paragraph("Terms", '<w:pStyle w:val="a3"/>')),
        ("## Terms\n",),
    ),
    "list numbers": Sample(
        "docx",
        word_file(
            numbered("Price")
            + numbered("Delivery")
            + numbered("By air", 1)
            + numbered("daily", 2)
            + numbered("weekly", 2)
            + numbered("Law")
            + numbered("总则", 0, 2)
            + numbered("point", 0, 3),
            {"numbering": NUMBERING},
        ),
        (
            *("1. Price\n", "2. Delivery\n", "  2.1 By air\n", "    (a) daily\n"),
            *("    (b) weekly\n", "3. Law\n", "一、 总则\n", "- point\n"),
        ),
    ),
    "page headers and footers": Sample(
        "docx",
        word_file(
            word_paragraph("Pay") + SECTION,
            {
                "header1": word_part("hdr", word_paragraph("Example Ltd")),
                "header2": word_part("hdr", word_paragraph("not printed")),
                "footer1": word_part("ftr", word_paragraph("Invoice 4711")),
            },
        ),
        ("Header: Example Ltd\n\nPay\n\nFooter: Invoice 4711\n",),
        ("not printed",),
    ),
    "comments": Sample(
        "docx",
        word_file(
            f'<w:p>{run("Pay in ")}<w:commentRangeStart w:id="0"/>{run("30 days")}'
            '<w:commentRangeEnd w:id="0"/><w:r><w:commentReference w:id="0"/></w:r></w:p>',
            {
                "comments": word_part(
                    "comments",
                    f'<w:comment w:id="0" w:author="Mia">{word_paragraph("too long")}</w:comment>',
                )
            },
        ),
        ('Pay in 30 days\n[Comment by Mia on "30 days": too long]\n',),
    ),
    "links": Sample(
        "docx",
        word_file(
            f'<w:p><w:hyperlink r:id="h">{run("the terms")}</w:hyperlink></w:p>'
            '<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>HYPERLINK '
            '"https://example.com/f"</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/>'
            f'</w:r>{run("field")}<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>',
            addresses={"h": "https://example.com/terms"},
        ),
        ("[the terms](https://example.com/terms)", "field (https://example.com/f)"),
    ),
    "equations": Sample(
        "docx", word_file(f"<w:p>{run('x = ')}{FRACTION}</w:p>"), ("x = a/b\n",), ("ab",)
    ),
    "text boxes": Sample(
        "docx",
        word_file(
            f"<w:p>{run('Body')}<w:r><mc:AlternateContent><mc:Choice Requires='wps'>{BOX}"
            f"</mc:Choice><mc:Fallback>{BOX}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
            f"<w:tbl><w:tr>{CELL.format(f'<w:p><w:r>{BOX}</w:r></w:p>')}</w:tr></w:tbl>"
        ),
        ("Body\n\nText box: Draft\n\n| Text box: Draft |\n",),
    ),
    "tables": Sample(
        "docx",
        word_file(
            "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>"
            f"{word_paragraph('wide')}</w:tc>{CELL.format(word_paragraph('c'))}</w:tr><w:tr>"
            f"{CELL.format(word_paragraph('1'))}{CELL.format(word_paragraph('2'))}<w:tc><w:tbl>"
            f"<w:tr>{CELL.format(word_paragraph('in'))}{CELL.format(word_paragraph('ner'))}</w:tr>"
            "</w:tbl></w:tc></w:tr></w:tbl>"
        ),
        ("| wide |  | c |\n| --- | --- | --- |\n| 1 | 2 | [in, ner] |\n",),
    ),
    "footnotes and endnotes": Sample(
        "docx",
        word_file(
            f'<w:p>{run("a")}<w:r><w:footnoteReference w:id="7"/></w:r>{run("b")}<w:r>'
            '<w:endnoteReference w:id="3"/></w:r></w:p>',
            {
                "footnotes": word_part(
                    "footnotes", f'<w:footnote w:id="7">{word_paragraph("foot")}</w:footnote>'
                ),
                "endnotes": word_part(
                    "endnotes", f'<w:endnote w:id="3">{word_paragraph("end")}</w:endnote>'
                ),
            },
        ),
        ("a[^1]b[^i]\n\n[^1]: foot\n[^i]: end\n",),
    ),
    "tracked changes": Sample(
        "docx",
        word_file(
            f'<w:p>{run("Pay in ")}<w:del w:author="Mia"><w:r><w:delText>30</w:delText></w:r>'
            f'</w:del><w:ins w:author="Mia">{run("14")}</w:ins>{run(" days")}</w:p>'
        ),
        ('Pay in 14 days\n[Tracked changes: Mia deleted "30"; Mia inserted "14"]\n',),
    ),
    "embedded documents": Sample(
        "docx+html",
        word_file(
            '<w:altChunk r:id="aFChunk1"/><w:altChunk r:id="aFChunk2"/>',
            {
                "aFChunk1": "<html><body><p>from <b>a page</b></p></body></html>",
                "aFChunk2": word_file(word_paragraph("from Word")),
            },
        ),
        ("from **a page**\n\nfrom Word\n",),
    ),
    "pictures": Sample(
        "docx", word_file(f"<w:p><w:r>{PICTURE}</w:r></w:p>"), ("[Picture: our office]\n",)
    ),
    "charts and diagrams": Sample(
        "docx",
        word_file(
            '<w:p><w:r><c:chart r:id="chart1"/><dgm:relIds r:dm="diagramData1"/></w:r></w:p>',
            {
                "chart1": documents.chart("Sales", "2026", {"May": 5, "June": 0.25}, "0%"),
                "diagramData1": documents.diagram("Plan", "Build"),
            },
        ),
        (
            "[Chart: Sales]\n|  | 2026 |\n| --- | --- |\n| May | 500% |\n| June | 25% |\n",
            "[Diagram]\n- Plan\n- Build\n",
        ),
    ),
    "boxes of forms and symbols": Sample(
        "docx",
        word_file(
            '<w:p><w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox>'
            '<w:checked w:val="1"/></w:checkBox></w:ffData></w:fldChar></w:r><w:r>'
            "<w:instrText>FORMCHECKBOX</w:instrText></w:r><w:r>"
            f'<w:fldChar w:fldCharType="end"/></w:r>{run(" yes ")}<w:r>'
            '<w:sym w:font="Wingdings" w:char="F0A8"/></w:r></w:p>'
        ),
        ("☒ yes ☐\n",),
    ),
    "hidden text": Sample(
        "docx",
        word_file(f"<w:p>{run('a')}<w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r></w:p>"),
        ("a[hidden: secret]\n",),
    ),
    "embedded objects": Sample(
        "docx",
        word_file(
            "<w:p><w:r><w:object><o:OLEObject ProgID='Excel.Sheet.12'/></w:object></w:r></w:p>"
        ),
        ("[Embedded object: Excel.Sheet.12]",),
    ),
    "page numbers, fonts, colours, positions": Sample(
        "docx",
        word_file(f"<w:p><w:r><w:rPr><w:color w:val='FF0000'/></w:rPr></w:r>{run('red')}</w:p>"),
        ("red\n",),
        ("FF0000",),
    ),
}


def text_cell(place: str, text: str) -> str:
    """Return a cell with a text."""
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def number_cell(place: str, value: float, style: int = 0) -> str:
    """Return a cell with a number."""
    return f'<c r="{place}" s="{style}"><v>{value}</v></c>'


def row(number: int, *cells: str, more: str = "") -> str:
    """Return a row."""
    return f'<row r="{number}"{more}>{"".join(cells)}</row>'


def formatted(*values: tuple[float, str]) -> bytes:
    """Return a workbook with a row of numbers in their formats."""
    cells = (number_cell(f"{chr(65 + n)}1", v, n + 1) for n, (v, _) in enumerate(values))
    return documents.workbook_file(row(1, *cells), formats=[code for _, code in values])


def old_workbook() -> bytes:
    """Return an .xls file."""
    book = xlwt.Workbook()
    sheet = book.add_sheet("Old")
    sheet.write(0, 0, "amount")
    sheet.write(2, 1, 0.25, xlwt.easyxf(num_format_str="0%"))
    sheet.write(3, 0, dt.date(2026, 11, 3), xlwt.easyxf(num_format_str="D/M/YYYY"))
    book.add_sheet("Gone").visibility = 1
    output = io.BytesIO()
    book.save(output)
    return output.getvalue()


ONE = row(1, text_cell("A1", "x"))
COMMENTS = (
    f'<comments xmlns="{documents.SHEETS}"><authors><author>Mia</author></authors><commentList>'
    '<comment ref="B2" authorId="0"><text><r><t>check this</t></r></text></comment></commentList>'
    "</comments>"
)
SHEET_DRAWING = (
    f'<d xmlns:a="{documents.DRAWING}"><sp><txBody><a:p><a:r><a:t>Draft</a:t></a:r></a:p></txBody>'
    "</sp><pic><nvPicPr><cNvPr descr='our office'/></nvPicPr></pic></d>"
)
EXCEL = {
    "rows and columns": Sample(
        "xlsx",
        documents.workbook_file(row(1, text_cell("B1", "a")) + row(5, text_cell("A5", "late"))),
        (",A,B\n1,,a\n5,late\n",),
    ),
    "dates and times": Sample(
        "xlsx",
        formatted(
            (46329, "d.m.yyyy"), (46329.375, "m/d/yy h:mm"), (1.5, "[h]:mm:ss"), (0.5, "h:mm")
        ),
        ("1,2026-11-03,2026-11-03 09:00,36:00:00,12:00\n",),
    ),
    "percentages, units, currencies": Sample(
        "xlsx",
        formatted((0.125, "0%"), (12.5, "0.0&quot; kg&quot;"), (1200.5, "[$€-407] #,##0.00")),
        ("1,12.5%,12.5 kg,€ 1200.5\n",),
    ),
    "codes with leading zeros": Sample("xlsx", formatted((420, "00000")), ("1,00420\n",)),
    "results of formulas": Sample(
        "xlsx",
        documents.workbook_file(
            row(1, '<c r="A1"><f>1+1</f><v>2</v></c>', '<c r="B1"><f>SUM(A1)</f></c>')
        ),
        ("1,2,=SUM(A1)\n",),
    ),
    "hidden sheets, rows and columns": Sample(
        "xlsx",
        documents.replace_entry(
            documents.workbook_file(
                ONE + row(3, text_cell("A3", "y"), more=' hidden="1"'),
                before='<cols><col min="3" max="3" hidden="1"/></cols>',
            ),
            "xl/workbook.xml",
            f'<workbook xmlns="{documents.SHEETS}" xmlns:r="{documents.OFFICE}"><sheets>'
            '<sheet name="Old" state="hidden" r:id="s"/></sheets></workbook>'.encode(),
        ),
        ('## Sheet "Old" (hidden)\n', "3,y\n", "Hidden rows: 3\n", "Hidden columns: C\n"),
    ),
    "merged cells": Sample(
        "xlsx",
        documents.workbook_file(ONE, after='<mergeCells><mergeCell ref="A1:C1"/></mergeCells>'),
        ("Merged cells: A1:C1\n",),
    ),
    "comments": Sample(
        "xlsx",
        documents.workbook_file(ONE, related={"k": ("comments", COMMENTS)}),
        ("Comment at B2 by Mia: check this\n",),
    ),
    "links": Sample(
        "xlsx",
        documents.workbook_file(
            ONE,
            after='<hyperlinks><hyperlink ref="A1" r:id="h"/></hyperlinks>',
            addresses={"h": "https://example.com"},
        ),
        ("Link at A1: https://example.com\n",),
    ),
    "charts, pictures and text boxes": Sample(
        "xlsx",
        documents.workbook_file(ONE, after="<drawing/>", related={"d": ("drawing", SHEET_DRAWING)}),
        ("Text box: Draft\n", "[Picture: our office]\n"),
    ),
    "printed headers and footers": Sample(
        "xlsx",
        documents.workbook_file(
            ONE,
            after="<headerFooter><oddHeader>&amp;L&amp;&quot;Arial,Bold&quot;Example Ltd"
            "</oddHeader></headerFooter>",
        ),
        ("Header: Example Ltd\n",),
    ),
    "a sheet without values": Sample(
        "xlsx", documents.workbook_file(""), ("[No cell of this sheet has a value.]",)
    ),
    "colours, filters, conditional formats, pivot settings, macros": Sample(
        "xlsx",
        documents.replace_entry(
            documents.workbook_file(ONE), "xl/styles.xml", b"<styleSheet><fills><fill/></fills>"
        ),
        ("1,x\n", "[Not understood and left out: xl/styles.xml.]"),
    ),
}


def shape(text: str, kind: str) -> str:
    """Return a placeholder of a slide."""
    return slide_text(text).replace(
        "<p:sp>", f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
    )


def described(element: str, text: str) -> str:
    """Return a picture or another object with its description."""
    return (
        f'<p:{element}><p:nv{element.title()}Pr><p:cNvPr descr="{text}"/><p:nvPr/>'
        f"</p:nv{element.title()}Pr></p:{element}>"
    )


FRAME = "<p:graphicFrame><a:graphic><a:graphicData>{}</a:graphicData></a:graphic></p:graphicFrame>"
SLIDE_CELL = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
POWERPOINT = {
    "texts of a slide": Sample(
        "pptx",
        documents.pptx(slide_text("Title") + f"<p:grpSp>{slide_text('grouped')}</p:grpSp>"),
        ("## Slide 1\n\nTitle\ngrouped\n",),
    ),
    "numbered paragraphs": Sample(
        "pptx",
        documents.pptx(
            slide_text("first", "second").replace(
                "<a:p>", '<a:p><a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr>'
            )
        ),
        ("1. first\n2. second\n",),
    ),
    "tables": Sample(
        "pptx",
        documents.pptx(
            FRAME.format(
                f"<a:tbl><a:tr>{SLIDE_CELL.format('A')}{SLIDE_CELL.format('B')}</a:tr></a:tbl>"
            )
        ),
        ("| A | B |\n| --- | --- |\n",),
    ),
    "charts": Sample(
        "pptx",
        documents.pptx(
            FRAME.format('<c:chart r:id="x"/>'),
            related={"x": ("chart", documents.chart("Sales", "2026", {"May": 5, "June": 7}))},
        ),
        ("[Chart: Sales]\n", "| May | 5 |\n| June | 7 |\n"),
    ),
    "diagrams (SmartArt)": Sample(
        "pptx",
        documents.pptx(
            FRAME.format('<dgm:relIds r:dm="x"/>'),
            related={"x": ("diagramData", documents.diagram("Plan", "Build"))},
        ),
        ("[Diagram]\n- Plan\n- Build\n",),
    ),
    "descriptions of pictures": Sample(
        "pptx",
        documents.pptx(described("pic", "our office")),
        ("[Picture: our office]\n",),
    ),
    "speaker notes": Sample(
        "pptx", documents.pptx(slide_text("x"), notes="slowly"), ("Notes: slowly\n",)
    ),
    "hidden slides": Sample(
        "pptx",
        documents.pptx(slide_text("x"), slide_text("y"), hidden=[2]),
        ("## Slide 1\n", "## Slide 2 (hidden)\n\ny\n"),
    ),
    "comments": Sample(
        "pptx",
        documents.pptx(
            slide_text("x"),
            related={"k": ("comments", "<cmLst><cm><text>shorter</text></cm></cmLst>")},
        ),
        ("[Comment: shorter]\n",),
    ),
    "links": Sample(
        "pptx",
        documents.pptx(
            slide_text("the terms").replace(
                "<a:t>", '<a:rPr><a:hlinkClick r:id="h"/></a:rPr><a:t>'
            ),
            addresses={"h": "https://example.com/t"},
        ),
        ("[the terms](https://example.com/t)",),
    ),
    "footers and texts of the master": Sample(
        "pptx",
        documents.pptx(
            slide_text("x") + shape("Example Ltd", "ftr"),
            related={"k": ("slideLayout", documents.slide(slide_text("confidential")))},
        ),
        ("## On several slides\n\nExample Ltd\nconfidential\n",),
    ),
    "sounds, films, embedded objects": Sample(
        "pptx",
        documents.pptx(FRAME.format('<p:oleObj progId="Excel.Sheet.12"/>')),
        ("[Embedded object: Excel.Sheet.12]\n",),
    ),
    "animations, slide numbers, dates": Sample(
        "pptx",
        documents.pptx(slide_text("x") + shape("17", "sldNum")),
        ("x\n",),
        ("17",),
    ),
}


def message(*, html: bool = False) -> email.message.EmailMessage:
    """Return a message."""
    made = email.message.EmailMessage(policy=email.policy.SMTP)
    made["From"] = "Mia Example <mia@example.com>"
    made["To"] = "bob@example.com"
    made["Subject"] = "报价 äö"
    made["Date"] = "Mon, 02 Nov 2026 10:00:00 +0800"
    made.set_content("<p>Hello <b>Bob</b></p>" if html else "Hello", "html" if html else "plain")
    return made


def message_with(kind: str) -> bytes:
    """Return a message with an attachment, or with another message."""
    made = message()
    if kind == "message":
        made.add_attachment(message(html=True))
    else:
        made.add_attachment(b"abc", maintype="application", subtype="pdf", filename="报价.pdf")
    return made.as_bytes()


RTF_MESSAGE = documents.compound_file({"__substg1.0_0037001F": "Hi", "__substg1.0_10090102": b"x"})
MAIL = {
    "headers": Sample(
        "mail",
        message().as_bytes(),
        (
            (
                "From: Mia Example <mia@example.com>\nTo: bob@example.com\n"
                "Date: Mon, 02 Nov 2026 10:00:00 +0800\nSubject: 报价 äö\n\nHello\n"
            ),
        ),
    ),
    "the message": Sample("mail", message(html=True).as_bytes(), ("\n\nHello **Bob**\n",)),
    "attachments": Sample(
        "mail",
        message_with("pdf"),
        ("which were not read:\n- 报价.pdf (application/pdf, 3 bytes)\n",),
        ("abc",),
    ),
    "attached messages": Sample(
        "mail", message_with("message"), ("[Attached message]\nFrom: Mia", "Hello **Bob**")
    ),
    "a message that is RTF only": Sample(
        "msg", RTF_MESSAGE, ("Subject: Hi\n", "in RTF, which was not understood")
    ),
}
LOG = b"started\n" + bytes(4_096) + b"stopped\n"
OTHER = {
    "a web page with another name": Sample("html", b"<html><table><tr><td>a", ("| a |",)),
    "a log with NUL bytes": Sample("text", LOG, ("started\n[4,096 NUL bytes]stopped\n",)),
}
TABLES = {
    "PDF": PDF,
    "Word": WORD,
    "Excel": EXCEL,
    "PowerPoint": POWERPOINT,
    "Mail": MAIL,
    "Other files": OTHER,
}
"""The samples by the tables and the rows of docs/files.md."""
