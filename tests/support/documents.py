"""Documents made by hand: PDF, Word, PowerPoint, Excel, EPUB and archives."""

import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence

import openpyxl
from PIL import Image

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
CHARTS = "http://schemas.openxmlformats.org/drawingml/2006/chart"
DIAGRAMS = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
_PICTURES = "http://schemas.openxmlformats.org/drawingml/2006/picture"
_WORD_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"
_COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"
WORD_NAMESPACES = (
    f'xmlns:w="{WORD}" xmlns:r="{OFFICE}" xmlns:m="{MATH}" xmlns:a="{DRAWING}" xmlns:c="{CHARTS}"'
    f' xmlns:dgm="{DIAGRAMS}" xmlns:pic="{_PICTURES}" xmlns:wp="{_WORD_DRAWING}"'
    f' xmlns:mc="{_COMPATIBILITY}" xmlns:v="urn:schemas-microsoft-com:vml"'
    ' xmlns:o="urn:schemas-microsoft-com:office:office"'
)
_RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"
_CONTAINER = "urn:oasis:names:tc:opendocument:xmlns:container"

_CHINESE_FONT = """\
<</Type/Font/Subtype/Type0/BaseFont/STSong-Light/Encoding/UniGB-UCS2-H/DescendantFonts[4 0 R]>>
<</Type/Font/Subtype/CIDFontType0/BaseFont/STSong-Light/FontDescriptor 5 0 R/CIDSystemInfo 6 0 R>>
<</Type/FontDescriptor/FontName/STSong-Light/Flags 6/FontBBox[0 -200 1000 900]/ItalicAngle 0>>
<</Registry(Adobe)/Ordering(GB1)/Supplement 2>>"""


def pdf(*pages: str, trailer: str = "") -> bytes:
    """Return a PDF with a line of text on each page; the text may be Chinese."""
    count = len(pages)
    kids = " ".join(f"{7 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {count}/Kids[{kids}]>>",
        *_CHINESE_FONT.splitlines(),
    ]
    for number, text in enumerate(pages):
        stream = ""
        if text:
            shown = text.encode("utf-16-be").hex()
            stream = f"BT /F1 12 Tf 20 100 Td <{shown}> Tj ET"
        objects.append(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 2000 200]"
            f"/Resources<</Font<</F1 3 0 R>>>>/Contents {8 + 2 * number} 0 R>>"
        )
        objects.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
    return pdf_of(objects, trailer)


def scanned_pdf(pages: int) -> bytes:
    """Return a PDF whose pages show a red picture and no text."""
    kids = " ".join(f"{number} 0 R" for number in range(5, 5 + pages))
    draw = "q 100 0 0 50 0 0 cm /I Do Q"
    page = "<</Type/Page/Parent 2 0 R/Resources<</XObject<</I 3 0 R>>>>/Contents 4 0 R>>"
    image = "<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceRGB"
    return pdf_of(
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            f"<</Type/Pages/Count {pages}/MediaBox[0 0 100 50]/Kids[{kids}]>>",
            f"{image}/BitsPerComponent 8/Length 3>>stream\n\xff\0\0\nendstream",
            f"<</Length {len(draw)}>>stream\n{draw}\nendstream",
            *[page] * pages,
        ]
    )


def pdf_of(objects: Sequence[str], trailer: str = "") -> bytes:
    """Return a PDF of numbered objects. The first object is its catalog."""
    output = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(output))
        output += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = len(output)
    output += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    output += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    output += f"trailer<</Root 1 0 R/Size {len(objects) + 1}{trailer}>>\n".encode()
    output += f"startxref\n{table}\n%%EOF\n".encode()
    return bytes(output)


def encrypted_pdf() -> bytes:
    """Return a PDF that asks for a password: no password fits its check values."""
    word = "31" * 32
    identity = "<00112233445566778899aabbccddeeff>"
    return pdf(
        "secret",
        trailer=f"/ID[{identity}{identity}]/Encrypt<</Filter/Standard/V 1/R 2/P -4"
        f"/O<{word}>/U<{word}>>>",
    )


def archive(entries: Mapping[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP archive."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", method) as packed:
        for name, content in entries.items():
            packed.writestr(zipfile.ZipInfo(name), content, method)  # of the same time always
    return output.getvalue()


def bomb(megabytes: int, name: str = "a") -> bytes:
    """Return a ZIP archive whose one entry is a thousand times larger than its file."""
    output = io.BytesIO()
    with (
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as packed,
        packed.open(name, "w", force_zip64=True) as entry,
    ):
        for _ in range(megabytes):
            entry.write(b"x" * (1 << 20))
    return output.getvalue()


def tar_bomb() -> bytes:
    """Return a compressed tar archive whose one entry has 100 GB; its file has 10 MB."""
    header = tarfile.TarInfo("zeros")
    header.size = 100 << 30
    member = gzip.compress(bytes(10 << 20), mtime=0)
    return gzip.compress(header.tobuf(), mtime=0) + member * 1_000


def slow_pdf(pages: int) -> bytes:
    """Return a PDF whose pages share one long content."""
    lines = "BT /F1 9 Tf 9 9 Td (slow) Tj ET\n" * 2_000
    kids = " ".join(f"{number} 0 R" for number in range(5, 5 + pages))
    page = "<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 3 0 R>>>>/Contents 4 0 R>>"
    return pdf_of(
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            f"<</Type/Pages/Count {pages}/MediaBox[0 0 99 99]/Kids[{kids}]>>",
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            f"<</Length {len(lines)}>>stream\n{lines}\nendstream",
            *[page] * pages,
        ]
    )


def encrypted_archive(entries: Mapping[str, bytes | str]) -> bytes:
    """Return a ZIP archive whose entries are marked as encrypted."""
    content = bytearray(archive(entries, zipfile.ZIP_STORED))
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(signature)
        while at >= 0:
            content[at + place] |= 1
            at = content.find(signature, at + 4)
    return bytes(content)


def office(parts: Mapping[str, bytes | str], main: str) -> bytes:
    """Return an Office file with the parts and the relationship to its main part."""
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relationships({"m": ("officeDocument", main)}),
            **parts,
        }
    )


def relationships(
    targets: Mapping[str, tuple[str, str]], addresses: Mapping[str, str] | None = None
) -> str:
    """Return the relationships of a part: id → (kind, target), and id → address of a link."""
    items = "".join(
        f'<Relationship Id="{each}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for each, (kind, target) in targets.items()
    )
    items += "".join(
        f'<Relationship Id="{each}" Type="{OFFICE}/hyperlink" Target="{address}"'
        ' TargetMode="External"/>'
        for each, address in (addresses or {}).items()
    )
    return f'<Relationships xmlns="{_RELATIONSHIPS}">{items}</Relationships>'


def docx(body: str, *, prolog: str = "") -> bytes:
    """Return a Word document with a body of WordprocessingML, a style of headings and a note."""
    styles = (
        f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="a3"><w:name w:val="heading 2"/></w:style>'
        "</w:styles>"
    )
    notes = (
        f'<w:footnotes xmlns:w="{WORD}"><w:footnote w:id="2">{word_paragraph("a note")}'
        "</w:footnote></w:footnotes>"
    )
    return word_file(body, {"styles": styles, "footnotes": notes}, prolog=prolog)


def word_file(
    body: str,
    parts: Mapping[str, str | bytes] | None = None,
    *,
    addresses: Mapping[str, str] | None = None,
    prolog: str = "",
) -> bytes:
    """Return a Word document with parts by their kinds, such as `comments`, which serve as ids.

    Links refer to addresses by their ids.
    """
    own = {f"word/{kind}.xml": content for kind, content in (parts or {}).items()}
    targets = {kind: (kind.rstrip("0123456789"), f"{kind}.xml") for kind in parts or {}}
    document = f"<w:document {WORD_NAMESPACES}><w:body>{body}</w:body></w:document>"
    return office(
        {
            "word/document.xml": prolog + document,
            "word/_rels/document.xml.rels": relationships(targets, addresses),
            **own,
        },
        "word/document.xml",
    )


def word_part(name: str, content: str) -> str:
    """Return a part of Word with a root element such as `hdr`."""
    return f"<w:{name} {WORD_NAMESPACES}>{content}</w:{name}>"


def word_paragraph(text: str, properties: str = "") -> str:
    """Return a paragraph of Word."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def pptx(
    *slides: str,
    notes: str = "",
    prolog: str = "",
    related: Mapping[str, tuple[str, str]] | None = None,
    addresses: Mapping[str, str] | None = None,
    hidden: Sequence[int] = (),
) -> bytes:
    """Return a presentation; the slides are stored in reverse order of their file names.

    `related` are the parts that the first slide refers to: their kind and content by their ids.
    """
    count = len(slides)
    names = [f"slides/slide{count - number}.xml" for number in range(count)]
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="r{n}"/>' for n in range(count))
    parts: dict[str, str] = {
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{SLIDES}" xmlns:r="{OFFICE}">'
        f"<p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relationships(
            {f"r{n}": ("slide", name) for n, name in enumerate(names)}
        ),
    }
    for number, (name, content) in enumerate(zip(names, slides, strict=True), start=1):
        parts[f"ppt/{name}"] = prolog + slide(content, is_hidden=number in hidden)
    more = {key: (kind, f"../parts/{key}.xml") for key, (kind, _) in (related or {}).items()}
    parts |= {f"ppt/parts/{key}.xml": content for key, (_, content) in (related or {}).items()}
    if notes:
        more["n"] = ("notesSlide", "../notes/note1.xml")
        parts["ppt/notes/note1.xml"] = slide(slide_text(notes))
    if more or addresses:
        folder, file = names[0].split("/")
        parts[f"ppt/{folder}/_rels/{file}.rels"] = relationships(more, addresses)
    return office(parts, "ppt/presentation.xml")


def slide_text(*paragraphs: str) -> str:
    """Return a shape with paragraphs."""
    lines = "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in paragraphs)
    return f"<p:sp><p:txBody>{lines}</p:txBody></p:sp>"


def slide(content: str, *, is_hidden: bool = False) -> str:
    """Return a slide, or another part with shapes."""
    shown = ' show="0"' if is_hidden else ""
    return (
        f'<p:sld xmlns:p="{SLIDES}" xmlns:a="{DRAWING}" xmlns:r="{OFFICE}" xmlns:c="{CHARTS}"'
        f' xmlns:dgm="{DIAGRAMS}" xmlns:m="{MATH}" xmlns:mc="{_COMPATIBILITY}"{shown}>'
        f"<p:cSld><p:spTree>{content}</p:spTree></p:cSld></p:sld>"
    )


def chart(title: str, name: str, points: Mapping[str, float], code: str = "General") -> str:
    """Return a chart of one series, with a value for each category."""
    head = f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{title}</a:t></a:r></a:p></c:rich></c:tx>"
    labels, values = (
        "".join(f'<c:pt idx="{n}"><c:v>{each}</c:v></c:pt>' for n, each in enumerate(items))
        for items in (points.keys(), points.values())
    )
    series = (
        f'<c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>{name}</c:v></c:pt></c:strCache>'
        f"</c:strRef></c:tx><c:cat><c:strRef><c:strCache>{labels}</c:strCache></c:strRef></c:cat>"
        f"<c:val><c:numRef><c:numCache><c:formatCode>{code}</c:formatCode>{values}</c:numCache>"
        "</c:numRef></c:val></c:ser>"
    )
    return (
        f'<c:chartSpace xmlns:c="{CHARTS}" xmlns:a="{DRAWING}"><c:chart>{head}</c:title>'
        f"<c:plotArea><c:barChart>{series}</c:barChart></c:plotArea></c:chart></c:chartSpace>"
    )


def diagram(*boxes: str) -> str:
    """Return the data of a diagram (SmartArt)."""
    points = "".join(
        f'<dgm:pt modelId="{n}"><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>'
        for n, text in enumerate(boxes)
    )
    return (
        f'<dgm:dataModel xmlns:dgm="{DIAGRAMS}" xmlns:a="{DRAWING}"><dgm:ptLst>'
        f'<dgm:pt modelId="90" type="doc"/>{points}</dgm:ptLst></dgm:dataModel>'
    )


def workbook_file(
    rows: str,
    *,
    formats: Sequence[str] = (),
    after: str = "",
    before: str = "",
    related: Mapping[str, tuple[str, str]] | None = None,
    addresses: Mapping[str, str] | None = None,
) -> bytes:
    """Return a workbook of one sheet with these rows of SpreadsheetML.

    A cell with the style `n` (from 1 on) has the number format `formats[n - 1]`. `related` are the
    parts that the sheet refers to: their kind and content by their ids.
    """
    codes = "".join(
        f'<numFmt numFmtId="{164 + n}" formatCode="{code}"/>' for n, code in enumerate(formats)
    )
    styles = "".join(f'<xf numFmtId="{164 + n}"/>' for n in range(len(formats)))
    more = {key: (kind, f"../parts/{key}.xml") for key, (kind, _) in (related or {}).items()}
    parts = {f"xl/parts/{key}.xml": content for key, (_, content) in (related or {}).items()}
    return office(
        {
            "xl/workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}"><sheets>'
            '<sheet name="S" sheetId="1" r:id="s"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relationships(
                {"s": ("worksheet", "worksheets/sheet1.xml"), "y": ("styles", "styles.xml")}
            ),
            "xl/styles.xml": f'<styleSheet xmlns="{SHEETS}"><numFmts>{codes}</numFmts>'
            f'<cellXfs><xf numFmtId="0"/>{styles}</cellXfs></styleSheet>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEETS}" xmlns:r="{OFFICE}">{before}'
            f"<sheetData>{rows}</sheetData>{after}</worksheet>",
            "xl/worksheets/_rels/sheet1.xml.rels": relationships(more, addresses),
            **parts,
        },
        "xl/workbook.xml",
    )


def xlsx(sheets: Mapping[str, Iterable[Sequence[object]]]) -> bytes:
    """Return a workbook."""
    workbook = openpyxl.Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    output = io.BytesIO()
    workbook.save(output)
    return output.getvalue()


def replace_entry(package: bytes, name: str, content: bytes) -> bytes:
    """Return a ZIP archive with the content of one entry replaced."""
    with zipfile.ZipFile(io.BytesIO(package)) as packed:
        entries: dict[str, bytes | str] = {each: packed.read(each) for each in packed.namelist()}
    return archive({**entries, name: content})


def epub(*chapters: str, extra: Mapping[str, str] | None = None) -> bytes:
    """Return a book of XHTML chapters."""
    numbers = range(1, len(chapters) + 1)
    items = "".join(f'<item id="c{n}" href="text/chapter%20{n}.xhtml"/>' for n in numbers)
    spine = "".join(f'<itemref idref="c{n}"/>' for n in numbers)
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": f'<container xmlns="{_CONTAINER}"><rootfiles>'
            '<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>',
            "OEBPS/content.opf": '<package xmlns="http://www.idpf.org/2007/opf">'
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{f"OEBPS/text/chapter {n}.xhtml": text for n, text in enumerate(chapters, 1)},
            **(extra or {}),
        }
    )


def ole_file(*streams: str) -> bytes:
    """Return the header and directory of an OLE file with streams of these names."""
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
    entries = (name.encode("utf-16-le").ljust(128, b"\0") for name in ("Root Entry", *streams))
    return header + b"".join(entries)


_SECTOR = 512
_MINI_SECTOR = 64
_END, _FREE, _TABLE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def compound_file(streams: Mapping[str, bytes | str]) -> bytes:
    """Return an OLE file with short streams by their names, such as an Outlook message.

    Text is stored as UTF-16.
    """
    content, mini_table, entries = b"", list[int](), list[tuple[str, int, int, int]]()
    for name, each in streams.items():
        stored = each.encode("utf-16-le") if isinstance(each, str) else each
        first, count = len(mini_table), max(-(-len(stored) // _MINI_SECTOR), 1)
        mini_table += [*range(first + 1, first + count), _END]
        content += stored.ljust(count * _MINI_SECTOR, b"\0")
        entries.append((name, 2, first, len(stored)))
    parts = [
        _padded(struct.pack(f"<{len(mini_table)}I", *mini_table), b"\xff"),
        _padded(content, b"\0"),
    ]
    first_of_content = 1 + len(parts[0]) // _SECTOR
    rows = [("Root Entry", 5, first_of_content, len(content)), *entries]
    parts.append(_padded(b"".join(_directory_entry(rows, n) for n in range(len(rows))), b"\0"))
    table, starts = [_TABLE], list[int]()
    for part in parts:
        starts.append(len(table))
        count = len(part) // _SECTOR
        table += [*range(len(table) + 1, len(table) + count), _END]
    allocation = _padded(struct.pack(f"<{len(table)}I", *table), b"\xff")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    head += struct.pack("<HHHHH6xII", 62, 3, 0xFFFE, 9, 6, 0, 1)
    mini = (starts[0], len(parts[0]) // _SECTOR)
    head += struct.pack("<IIIIIIII", starts[2], 0, 4_096, *mini, _END, 0, 0)
    return b"".join([_padded(head, b"\xff"), allocation, *parts])


def _padded(content: bytes, filler: bytes) -> bytes:
    return content.ljust(max(-(-len(content) // _SECTOR), 1) * _SECTOR, filler)


def _directory_entry(rows: Sequence[tuple[str, int, int, int]], number: int) -> bytes:
    name, kind, first, size = rows[number]
    raw = name.encode("utf-16-le") + b"\0\0"
    following = number + 1 if 0 < number < len(rows) - 1 else _FREE
    child = 1 if number == 0 and len(rows) > 1 else _FREE
    links = struct.pack("<HBBIII", len(raw), kind, 1, _FREE, following, child)
    return raw.ljust(64, b"\0") + links + bytes(36) + struct.pack("<IQ", first, size)


def entry(package: bytes, name: str) -> bytes:
    """Return one entry of a ZIP archive."""
    with zipfile.ZipFile(io.BytesIO(package)) as packed:
        return packed.read(name)


def picture(
    form: str, size: tuple[int, int] = (8, 8), *, mode: str = "RGB", exif: bytes = b""
) -> bytes:
    """Return a picture of one colour, such as `picture("PNG")`."""
    colour = (200, 30, 30) if mode == "RGB" else 0
    output = io.BytesIO()
    Image.new(mode, size, colour).save(output, form, **({"exif": exif} if exif else {}))
    return output.getvalue()
