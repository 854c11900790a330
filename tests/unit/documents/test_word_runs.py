"""Runs, fields and links within the paragraphs of Word."""

import io

import pytest

from internal.documents.docx import read_docx
from tests.support.documents import word_file, word_paragraph, word_part
from tests.unit.documents.documented_rows import run


def text_of(body: str, **parts: str) -> str:
    return "".join(read_docx(io.BytesIO(word_file(body, parts))).pieces)


def field(code: str, result: str, data: str = "") -> str:
    """Return a field with its result."""
    begin, separate, end = (
        f'<w:r><w:fldChar w:fldCharType="{each}"/></w:r>' for each in ("begin", "separate", "end")
    )
    begin = begin.replace("/>", f">{data}</w:fldChar>", 1)
    return f"{begin}<w:r><w:instrText>{code}</w:instrText></w:r>{separate}{run(result)}{end}"


CHOICE = (
    '<w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="red"/><w:listEntry w:val="blue"/>'
    "</w:ddList></w:ffData>"
)


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (field(" PAGE ", "3") + run(" of ") + field("NUMPAGES", "9"), "(page) of (pages)"),
        (f'<w:fldSimple w:instr="PAGE">{run("3")}</w:fldSimple>', "(page)"),
        (field("PAGEREF _Toc1", "3"), "3"),
        (field('HYPERLINK "https://x.org"', "x"), "x (https://x.org)"),
        (field("HYPERLINK https://x.org", "x"), "x (https://x.org)"),
        (field('HYPERLINK \\l "chapter"', "see"), "see"),
        (field("IF a", "yes") + run("!"), "yes!"),
        (
            f"<w:fldSimple w:instr='HYPERLINK \"https://x.org\"'>{run('x')}</w:fldSimple>",
            "[x](https://x.org)",
        ),
        (field("FORMDROPDOWN", "", CHOICE), "blue"),
        ("<w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r>", "a-b\tc"),
        (
            "<w:ruby><w:rubyPr/><w:rt>" + run("かん") + "</w:rt><w:rubyBase>" + run("漢")
            + "</w:rubyBase></w:ruby>",
            "漢(かん)",
        ),
        ('<w:r><w:sym w:font="Symbol" w:char="F061"/></w:r>', "\u03b1"),
        ('<w:r><w:sym w:font="Odd" w:char="F061"/></w:r>', "[symbol F061 of Odd]"),
        ('<w:r><w:pict><v:shape><v:textpath string="DRAFT"/></v:shape></w:pict></w:r>', "DRAFT"),
        ("<w:r><w:pict><v:shape><v:imagedata/></v:shape></w:pict></w:r>", "[Picture]"),
        (
            "<w:moveFrom w:author='Mia'>" + run("x") + "</w:moveFrom><w:moveTo w:author='Mia'>"
            + run("x") + "</w:moveTo>",
            "x\n[Tracked changes: Mia moved away this paragraph; Mia moved here this paragraph]",
        ),
    ],
)  # fmt: skip
def test_a_run_is_read_as_it_is_shown(content: str, shown: str) -> None:
    assert text_of(f"<w:p>{content}</w:p>") == f"{shown}\n\n"


def test_a_comment_that_nothing_refers_to_is_at_the_end() -> None:
    comment = f'<w:comment w:id="4" w:author="Mia">{word_paragraph("late")}</w:comment>'
    text = text_of(word_paragraph("a"), comments=word_part("comments", comment))
    assert text == "a\n\n[Comment by Mia: late]\n"


def test_a_comment_on_several_paragraphs_quotes_their_beginning() -> None:
    body = (
        f'<w:p><w:commentRangeStart w:id="1"/>{run("a" * 60)}</w:p><w:p>{run("b" * 60)}'
        '<w:commentRangeEnd w:id="1"/><w:r><w:commentReference w:id="1"/></w:r></w:p>'
    )
    comment = f'<w:comment w:id="1">{word_paragraph("long")}</w:comment>'
    text = text_of(body, comments=word_part("comments", comment))
    assert text.endswith(f'[Comment on "{"a" * 60}{"b" * 20}…": long]\n\n')
