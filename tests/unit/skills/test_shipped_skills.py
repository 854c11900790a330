"""The shipped skills: they are complete, and their scripts work as real processes."""

import atexit
import base64
import json
import re
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import defusedxml.ElementTree
import openpyxl
import pytest

from internal.skills.library import Skill, SkillLibrary, shipped_folder
from internal.skills.presentation import MAX_DESCRIPTION_CHARS
from internal.skills.review import review_skill
from internal.skills.skill_places import SkillPlace
from internal.tools.registry import TOOLS
from tests.support.script_runner import ScriptRunner

CHART = shipped_folder() / "report-with-charts" / "scripts" / "chart.py"
INLINE = CHART.with_name("inline_images.py")
PROFILE = shipped_folder() / "spreadsheet-analysis" / "scripts" / "profile_table.py"
NAMES = ["code-review", "report-with-charts", "spreadsheet-analysis"]
LIBRARY = SkillLibrary(
    [SkillPlace(shipped_folder(), "shipped")], [each.spec.name for each in TOOLS]
)
SVG = "{http://www.w3.org/2000/svg}"


@cache
def runner() -> ScriptRunner:
    """Return a runner of the scripts, which import only the standard library."""
    started = ScriptRunner(
        "argparse", "csv", "datetime", "json", "xml.etree.ElementTree", "zipfile"
    )
    atexit.register(started.close)
    return started


def run(script: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return runner().run(script, *arguments)


@pytest.mark.parametrize("script", [CHART, INLINE, PROFILE], ids=lambda script: script.stem)
def test_a_script_starts_alone(script: Path) -> None:
    command = [sys.executable, "-I", str(script), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run(script, "--help").stdout


def refused(script: Path, *arguments: object) -> str:
    done = run(script, *arguments)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def test_all_are_offered() -> None:
    assert [(each.name, each.state) for each in LIBRARY.skills()] == [
        (name, "offered") for name in NAMES
    ]


@pytest.mark.parametrize("skill", LIBRARY.skills(), ids=lambda skill: skill.name)
def test_a_skill_is_complete(skill: Skill) -> None:
    assert skill.file is not None
    assert skill.warnings == ()
    assert skill.folder.name == skill.name
    assert len(skill.description) <= MAX_DESCRIPTION_CHARS
    mentioned = set(re.findall(r"\b(?:scripts|references|assets)/[\w.-]+\w", skill.file.body))
    files = {each.path for each in skill.entries}
    assert mentioned == files - {"SKILL.md"}
    review = review_skill(skill)
    assert (review.binary, review.invisible) == ((), ())
    assert all(path.endswith(".py") for path in review.scripts)


# Charts


def chart(folder: Path, name: str, text: str, *arguments: str) -> tuple[Any, str]:
    """Return the drawn chart and the messages of the script."""
    (folder / name).write_text(text, encoding="utf-8")
    done = run(CHART, folder / name, "-o", folder / "chart.svg", *arguments)
    assert done.returncode == 0, done.stderr
    drawn = (folder / "chart.svg").read_text(encoding="utf-8")
    return defusedxml.ElementTree.fromstring(drawn), done.stderr


def bars(picture: Any) -> list[str]:
    return [title.text for title in picture.findall(f"{SVG}rect/{SVG}title")]


def test_bars_of_a_csv_file(tmp_path: Path) -> None:
    text = "region;revenue;cost\nNorth;1,234.5;3\nSouth;-20;\nWest;n/a;5 %\n"
    picture, said = chart(
        tmp_path, "a.csv", text, "--value", "revenue", "--value", "cost", "--title", "T"
    )
    assert bars(picture) == [
        *("North, revenue: 1,234.5", "South, revenue: -20", "North, cost: 3", "West, cost: 5"),
    ]
    assert "revenue: 1 of 3 cells are not numbers" in said
    heights = [float(each.get("height")) for each in picture.findall(f"{SVG}rect")[1:5]]
    assert heights[0] > heights[1] > heights[2] > 0
    texts = [each.text for each in picture.findall(f"{SVG}text")]
    assert {"T", "North", "South", "West", "0", "revenue", "cost"} <= set(texts)


def test_bars_can_be_sorted_and_limited(tmp_path: Path) -> None:
    text = json.dumps({"a": 1, "b": 3, "c": None, "d": 2})
    picture, _ = chart(tmp_path, "a.json", text, "--sort", "--top", "2")
    assert bars(picture) == ["b, value: 3", "d, value: 2"]


def test_a_line_has_a_gap_where_there_is_no_number(tmp_path: Path) -> None:
    rows = [{"day": str(day), "visits": None if day == 3 else day} for day in range(1, 7)]
    picture, _ = chart(tmp_path, "a.json", json.dumps(rows), "--type", "line")
    lines = [each.get("points").split() for each in picture.findall(f"{SVG}polyline")]
    assert [len(points) for points in lines] == [2, 3]
    assert len(picture.findall(f"{SVG}circle")) == 5


@pytest.mark.parametrize(
    "values",
    [["0"], ["-5"], ["5e-324", "0"], ["1e99", "-1e99"], ["7", "7"], ["0.00001", "0.00002"]],
)
@pytest.mark.parametrize("kind", ["bar", "line"])
def test_any_range_of_numbers_can_be_drawn(tmp_path: Path, values: list[str], kind: str) -> None:
    text = "name,value\n" + "".join(f"a,{value}\n" for value in values)
    picture, _ = chart(tmp_path, "a.csv", text, "--type", kind)
    ends = picture.findall(f"{SVG}text[@text-anchor='end']")
    ticks = [each.text for each in ends if not each.get("transform")]
    assert 2 <= len(ticks) == len(set(ticks)) <= 12
    places = [float(each.get(at)) for each in picture.iter() for at in ("y", "cy") if each.get(at)]
    assert all(0 <= place <= 500 for place in places)


def test_text_from_the_data_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>]]>&\"'\x01\ud800\uffff" + "鸟" * 500
    rows = [{"<b>": evil, "</title><image href='x'/>": 1, "n": "1"}, {"<b>": "b", "n": "1" * 9_999}]
    arguments = ("--value", "</title><image href='x'/>", "--value", "n", "--title", "<image/>")
    for kind in ("bar", "line"):
        picture, _ = chart(tmp_path, "a.json", json.dumps(rows), "--type", kind, *arguments)
        tags = {each.tag.removeprefix(SVG) for each in picture.iter()}
        assert tags <= {"svg", "title", "rect", "text", "line", "polyline", "circle"}
        assert not any(
            name.startswith(("on", "href")) for each in picture.iter() for name in each.attrib
        )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "name,value\n", "has no rows"),
        ("a.csv", "name\na\n", "only one column"),
        ("a.csv", "name,value\na,x\nb,nan\nc,inf\n", "'value' has no numbers"),
        ("a.csv", "name,value\n" + "a,1\n" * 61, "at most 60"),
        ("a.csv", "name,value\na," + "1" * 200_000 + "x\n", "field larger than"),
        ("a.json", "[" * 100_000, "is not JSON"),
        ("a.json", "[1, 2]", "neither a list of objects"),
        ("a.json", '[{"a": 1, "b": NaN}]', "has no numbers"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    assert message in refused(CHART, tmp_path / name, "-o", tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()


def test_missing_files_columns_and_other_encodings_are_refused(tmp_path: Path) -> None:
    output = ("-o", tmp_path / "a.svg")
    assert "cannot be read" in refused(CHART, tmp_path / "missing.csv", *output)
    (tmp_path / "a.csv").write_bytes("Größe,b\nx,1\n".encode("latin-1"))
    assert "not text in UTF-8" in refused(CHART, tmp_path / "a.csv", *output)
    (tmp_path / "a.csv").write_text("a,b\nx,1\n")
    assert "There is no column 'c'; there are: a, b." in refused(
        CHART, tmp_path / "a.csv", "--value", "c", *output
    )


def test_local_images_are_put_into_the_html_file(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    (tmp_path / "secret.png").write_text("canary")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "a b.svg").write_text("<svg/>")
    sources = ["a%20b.svg", "../secret.png", "link.png", "https://example.org/x.png", "none.png"]
    (folder / "a.html").write_text("".join(f'<img alt="x" src="{each}">\n' for each in sources))
    said = refused(INLINE, folder / "a.html", "-o", folder / "b.html")
    first, *others = (folder / "b.html").read_text().splitlines()
    content = base64.b64encode(b"<svg/>").decode()
    assert first == f'<img alt="x" src="data:image/svg+xml;base64,{content}">'
    assert others == [f'<img alt="x" src="{each}">' for each in sources[1:]]
    assert said.count("outside of the folder") == 2
    assert "not a local file" in said
    assert "no such file" in said


def test_the_template_of_a_report_becomes_one_file(tmp_path: Path) -> None:
    template = CHART.parents[1] / "assets" / "report.html"
    (tmp_path / "report.html").write_text(template.read_text())
    chart(tmp_path, "a.csv", "name,value\na,1\n")
    done = run(INLINE, tmp_path / "report.html", "-o", tmp_path / "complete.html")
    assert done.returncode == 0, done.stderr
    assert 'src="data:image/svg+xml;base64,' in (tmp_path / "complete.html").read_text()


# Tables


def profiles(path: Path, *arguments: str) -> list[dict[str, Any]]:
    done = run(PROFILE, path, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def columns(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["column"]: each for each in table["columns"]}


def test_a_csv_file_is_profiled(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "name,amount,when,code,name\n"
        "lark,1,2026-01-02,007,x\n"
        "wren,2.5,2026/3/4 10:00,010,x\n"
        "lark,1,2026-01-02,007,x\n"
        "\n"
        " wren ,NA,2026-02-30,011,x\n"
        "owl,-4e1,,012\n",
        encoding="utf-8",
    )
    (table,) = profiles(path)
    found = columns(table)
    assert (table["rows"], table["header_row"], table["equal_rows"]) == (5, 1, 1)
    assert list(found) == ["name", "amount", "when", "code", "name (2)"]
    amount = found["amount"]
    assert (amount["type"], amount["missing"], amount["distinct"]) == ("number", 1, 3)
    assert (amount["min"], amount["max"], amount["mean"]) == (-40, 2.5, -8.875)
    assert (found["code"]["type"], found["when"]["type"]) == ("text", "mixed")
    assert (found["name"]["most_frequent"], found["name"]["most_frequent_count"]) == ("lark", 2)
    notes = "\n".join(table["notes"])
    for note in (
        "other number of cells than the first row (5): 1 rows, the first is row 7",
        "equal rows: 1 have an equal row above; first row 4",
        "when: mixed types: date 3, text 1; row 6: '2026-02-30'",
        "code: leading zeros: 5 cells",
        "name: spaces around text: 1 cells",
    ):
        assert note in notes


def test_very_many_distinct_values_are_not_counted(tmp_path: Path) -> None:
    numbers = [*range(10_001), 1, 1]
    (tmp_path / "a.csv").write_text("n\n" + "".join(f"{each}\n" for each in numbers))
    (table,) = profiles(tmp_path / "a.csv")
    column = columns(table)["n"]
    assert (column["distinct"], column["distinct_is_minimum"]) == (10_000, True)
    assert (column["most_frequent"], table["equal_rows"]) == ("", 2)
    assert "| over 10,000 | 0 | 10000 |" in run(PROFILE, tmp_path / "a.csv").stdout


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_encodings_and_delimiters_are_recognised(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text('"名称, 中文";数量\n云雀;3\n', encoding=encoding)
    (table,) = profiles(path)
    assert columns(table)["数量"]["mean"] == 3
    assert "名称, 中文" in columns(table)
    assert ("not UTF-8" in "\n".join(table["notes"])) == (encoding == "gb18030")


def test_cells_stay_in_their_place_in_the_output(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        '"a|b\n# c\x1b[31m\u202e",n\n"| x |\n\n- y",1\n"| x |\n\n- y",e5\n', encoding="utf-8"
    )
    done = run(PROFILE, path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "| a\\|b # c [31m  | text | 0 | 1 |" in done.stdout
    assert "\\| x \\| - y (2) |" in done.stdout
    assert all(
        line.startswith(("|", "#", "-", "2 rows")) or not line for line in done.stdout.splitlines()
    )


def test_an_xlsx_file_is_profiled(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = "Orders & more"
    rows: list[list[Any]] = [
        ["id", "day", "price", "paid", "note"],
        [1, "=DATE(2026,1,2)", 9.5, True, "a"],
        [2, None, "10", False, "#N/A"],
        [3, None, 11, True, None],
    ]
    for row in rows:
        first.append(row)
    first["B3"].value = 46_000
    first["B3"].number_format = "yyyy\\-mm\\-dd"
    first["B4"].value = 46_001.5
    first["B4"].number_format = '[$-409]d" of "mmmm'
    first["C4"].number_format = '0.00" days"'
    first.merge_cells("A6:B6")
    hidden = book.create_sheet("Secret")
    hidden.sheet_state = "hidden"
    hidden.append(["x"])
    hidden.append(["<i>"])
    book.save(tmp_path / "a.xlsx")
    table, other = profiles(tmp_path / "a.xlsx")
    found = columns(table)
    assert (table["table"], table["rows"]) == ("Orders & more", 3)
    assert (found["id"]["type"], found["id"]["mean"]) == ("integer", 2)
    assert (found["day"]["type"], found["day"]["missing"]) == ("date", 1)
    assert (found["day"]["min"], found["day"]["max"]) == ("2025-12-09", "2025-12-10 12:00:00")
    assert (found["price"]["type"], found["paid"]["type"]) == ("mixed", "boolean")
    notes = "\n".join(table["notes"])
    for note in ("merged cells: 1", "formulas without a value: 1", "price: numbers as text: 1"):
        assert note in notes
    assert (other["table"], other["notes"][0]) == ("Secret", "hidden sheet")
    (only,) = profiles(tmp_path / "a.xlsx", "--sheet", "Secret")
    assert only == other
    said = refused(PROFILE, tmp_path / "a.xlsx", "--sheet", "None")
    assert "there is no such sheet; there are: Orders & more, Secret." in said


PARTS = {
    "xl/workbook.xml": '<x xmlns:r="urn:r"><sheets><sheet name="S" r:id="a"/></sheets></x>',
    "xl/_rels/workbook.xml.rels": '<R><Relationship Id="a" Target="worksheets/sheet1.xml"/></R>',
    "xl/worksheets/sheet1.xml": "<worksheet><sheetData/></worksheet>",
}


def hostile(path: Path, **changes: str) -> Path:
    """Write an XLSX file with other parts; `sheet` is the content of its sheet."""
    parts = {**PARTS, **{name: text for name, text in changes.items() if "/" in name}}
    if "sheet" in changes:
        parts["xl/worksheets/sheet1.xml"] = changes["sheet"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def test_entities_are_refused(tmp_path: Path) -> None:
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
    secret = f'<!DOCTYPE x [<!ENTITY a SYSTEM "file://{tmp_path}/secret">]>'
    (tmp_path / "secret").write_text("canary")
    for start in (laughs, secret):
        sheet = f'{start}<x><row><c t="str"><v>&a;</v></c></row></x>'
        said = refused(PROFILE, hostile(tmp_path / "a.xlsx", sheet=sheet))
        assert "has a document type" in said
        strings = {"xl/sharedStrings.xml": f"{start}<sst><si><t>&a;</t></si></sst>"}
        assert "has a document type" in refused(PROFILE, hostile(tmp_path / "a.xlsx", **strings))


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels"):
            archive.writestr(name, PARTS[name])
        with archive.open("xl/worksheets/sheet1.xml", "w") as file:
            file.write(b"<x>")
            for _ in range(201):
                file.write(b" " * 1_000_000)
    assert path.stat().st_size < 2_000_000
    assert "unpacks to more than 200,000,000 bytes" in refused(PROFILE, path)


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        ('<x><row><c r="ZZZ1"><v>1</v></c></row></x>', "more than 1,000 columns"),
        ("<x><row>", "damaged or encrypted: no element found"),
        ("", "damaged or encrypted: no element found"),
    ],
)
def test_damaged_sheets_are_refused(tmp_path: Path, sheet: str, message: str) -> None:
    assert message in refused(PROFILE, hostile(tmp_path / "a.xlsx", sheet=sheet))


def test_strange_cells_are_read(tmp_path: Path) -> None:
    cells = (
        '<c t="s"><v>99</v></c><c t="s"><v>-1</v></c><c t="e"><v>#REF!</v></c><c><v>1e999</v></c>'
        '<c s="7"><v>1e15</v></c><c t="inlineStr"><is><r><t>a</t></r><rPh><t>x</t></rPh></is></c>'
    )
    names = "".join(f'<c t="str"><v>n{number}</v></c>' for number in range(6))
    sheet = f'<x><row>{names}</row><row r="-5">{cells}</row></x>'
    (table,) = profiles(hostile(tmp_path / "a.xlsx", sheet=sheet))
    assert [each["type"] for each in table["columns"]] == [
        *("empty", "empty", "error", "error", "number", "text"),
    ]
    assert table["columns"][5]["most_frequent"] == "a"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "it is empty"),
        ("a.csv", b"a" * 100_001, "field larger than"),
        ("a.csv", b"," * 1_000 + b"x\n", "more than 1,000 cells"),
        ("a.xlsx", b"", "it is no XLSX file"),
        ("a.xlsx", b"PK\x03\x04" + b"x" * 100, "it is no XLSX file"),
        ("a.xls", b"x", "save it as .xlsx or .csv"),
    ],
)
def test_files_that_are_no_tables_are_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert message in refused(PROFILE, tmp_path / name)
    assert "no such file" in refused(PROFILE, tmp_path / "missing.csv")
