"""The file tools, called as a model calls them."""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.tools.filesystem import escape_name
from tests.support.tools import tool_box

Call = Callable[..., Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def call(root: Path) -> Call:
    box = tool_box(root)
    context = CallContext(SessionId("s"), RunId("r"), "c", str(root), lambda _: None)

    async def run(name: str, **arguments: object) -> ToolOutcome:
        return await box.run(context, name, arguments)

    return run


async def test_a_file_is_read(call: Call, root: Path) -> None:
    (root / "a").write_text("one\ntwo\n")
    assert (await call("read_file", path="a")).text == "one\ntwo"


async def test_offset_and_limit_select_lines_and_the_rest_is_counted(
    call: Call, root: Path
) -> None:
    (root / "a").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    outcome = await call("read_file", path="a", offset=3, limit=2)
    assert outcome.text == "line 3\nline 4\n[6 of 10 lines follow: offset=5 reads on]"
    assert outcome.metadata == {"lines": 2, "total_lines": 10}
    assert (await call("read_file", path="a", offset=10)).text == "line 10"
    with pytest.raises(ToolError, match="a has 10 lines: there is no line 11"):
        await call("read_file", path="a", offset=11)


async def test_reading_in_parts_returns_the_whole_file(call: Call, root: Path) -> None:
    lines = [f"{number}:" + "x" * (number * 37 % 400) for number in range(1_000)]
    (root / "a").write_text("\n".join(lines))
    got: list[str] = []
    while len(got) < len(lines):
        outcome = await call("read_file", path="a", offset=len(got) + 1)
        assert len(outcome.text) < 31_000
        got += outcome.text.split("\n")[: outcome.metadata["lines"]]
    assert got == lines


async def test_a_very_long_line_is_truncated(call: Call, root: Path) -> None:
    (root / "a").write_text("x" * 100_000 + "\nlast")
    text = (await call("read_file", path="a")).text
    assert text.startswith(
        "x" * 30_000 + "[… 70,000 more characters in this line: offset=30002 reads on in it]"
    )
    assert text.endswith("[1 of 2 lines follow: offset=2 reads on]")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "[the file is empty]"),
        (b"\xef\xbb\xbfbom", "bom"),
        (b"a\r\nb\r\n", "a\nb"),
        ("服务启动".encode()[:-1], "服务启\ufffd"),
        ("你好\u2028x".encode(), "你好\u2028x"),
        (b"a\x0cb\x1b[0m", "a\x0cb\x1b[0m"),
    ],
)
async def test_unusual_encodings_are_decoded(
    call: Call, root: Path, content: bytes, text: str
) -> None:
    (root / "a").write_bytes(content)
    assert (await call("read_file", path="a")).text == text


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-8-sig"])
async def test_text_in_other_encodings_is_read_by_lines(
    call: Call, root: Path, encoding: str
) -> None:
    (root / "a.csv").write_bytes("城市,数\n上海,1\n".encode(encoding))
    outcome = await call("read_file", path="a.csv", offset=2)
    assert outcome.text.rpartition("]\n")[2] == "上海,1"
    assert ("Encoding" in outcome.text) == (encoding != "utf-8-sig")


async def test_a_guessed_encoding_is_named_above_the_text(call: Call, root: Path) -> None:
    (root / "kunden.csv").write_bytes("Name;Größe\nMüller;groß\n".encode("cp1252"))
    outcome = await call("read_file", path="kunden.csv")
    first, _, text = outcome.text.partition("\n")
    assert first == "[Encoding: Windows-1252, which is a guess: names and signs may be wrong]"
    assert text == "Name;Größe\nMüller;groß"


CUSTOMERS = "Name;Straße\r\nMüller;Königsallee 5\r\nRené;Große Bleichen\r\n"


@pytest.mark.parametrize("codec", ["cp1252", "utf-16", "utf-8-sig"])
async def test_an_edit_keeps_encoding_and_line_ends(call: Call, root: Path, codec: str) -> None:
    (root / "a.csv").write_bytes(CUSTOMERS.encode(codec))
    await call("edit_file", path="a.csv", old_string="René;", new_string="Zoë;1\nÅsa;")
    changed = CUSTOMERS.replace("René;", "Zoë;1\r\nÅsa;")
    assert (root / "a.csv").read_bytes() == changed.encode(codec)


async def test_an_edit_that_the_encoding_cannot_hold_changes_nothing(
    call: Call, root: Path
) -> None:
    (root / "a.csv").write_bytes(CUSTOMERS.encode("cp1252"))
    with pytest.raises(ToolError, match=r"a\.csv cannot hold the text: Windows-1252 has no '你'"):
        await call("edit_file", path="a.csv", old_string="René", new_string="你好")
    assert (root / "a.csv").read_bytes() == CUSTOMERS.encode("cp1252")


async def test_an_edit_of_a_text_that_looks_the_same_keeps_the_encoding(
    call: Call, root: Path
) -> None:
    (root / "a.csv").write_bytes("Name;„Größe“\r\nIt\u2019s\u00a0groß\r\n".encode("cp1252"))
    outcome = await call(
        "edit_file", path="a.csv", old_string="It's groß\n", new_string="It's größer\n"
    )
    assert (root / "a.csv").read_bytes().splitlines()[1] == "It\u2019s\u00a0größer".encode("cp1252")
    assert "this looks the same and was replaced" in outcome.text


async def test_a_replaced_file_keeps_its_encoding_if_that_can_hold_the_text(
    call: Call, root: Path
) -> None:
    (root / "a.csv").write_bytes(CUSTOMERS.encode("cp1252"))
    outcome = await call("write_file", path="a.csv", content="Jürgen;groß\n")
    assert outcome.text.endswith(", in Windows-1252 as it was")
    assert (root / "a.csv").read_bytes() == "Jürgen;groß\n".encode("cp1252")

    outcome = await call("write_file", path="a.csv", content="Jürgen;你好\n")
    assert "in UTF-8 now: Windows-1252 has no '你', which it was in" in outcome.text
    assert (root / "a.csv").read_text() == "Jürgen;你好\n"


async def test_a_replaced_file_keeps_its_mark_unless_the_text_declares_an_encoding(
    call: Call, root: Path
) -> None:
    (root / "a.csv").write_bytes("Größe\n".encode("utf-8-sig"))
    await call("write_file", path="a.csv", content="Länge\n")
    assert (root / "a.csv").read_bytes() == "Länge\n".encode("utf-8-sig")

    page = '<meta charset="utf-8"><p>Größe, Müller, Straße'
    (root / "a.html").write_bytes("<p>Größe, Müller, Straße".encode("cp1252"))
    await call("write_file", path="a.html", content=page)
    assert (root / "a.html").read_text() == page


async def test_html_is_read_as_text_or_as_its_source(call: Call, root: Path) -> None:
    (root / "a.html").write_text("<p>one\n<script>x</script>")
    assert (await call("read_file", path="a.html")).text.endswith("]\none")
    outcome = await call("read_file", path="a.html", source=True)
    assert outcome.text == "<p>one\n<script>x</script>"


async def test_a_binary_file_is_refused(call: Call, root: Path) -> None:
    (root / "a").write_bytes(b"\x7fELF\0\0")
    with pytest.raises(ToolError, match="binary file of 6 bytes"):
        await call("read_file", path="a")


async def test_a_file_is_written(call: Call, root: Path) -> None:
    created = await call("write_file", path="new/a.txt", content="héllo\nworld")
    assert created.text == "new/a.txt created: 12 bytes, 2 lines"
    assert created.metadata == {"path": "new/a.txt", "created": True, "size": 12}
    assert (await call("write_file", path="new/a.txt", content="")).text == (
        "new/a.txt overwritten: 0 bytes, 0 lines"
    )
    assert (root / "new" / "a.txt").read_bytes() == b""


async def test_invalid_or_too_large_content_is_rejected(call: Call, root: Path) -> None:
    with pytest.raises(ToolError, match="half a character at position 1"):
        await call("write_file", path="a", content="x\ud83d")
    with pytest.raises(ToolError, match=r"the content has 16\.0 MB, more than 16\.0 MB"):
        await call("write_file", path="a", content="x" * (16 * 1024 * 1024 + 1))
    assert (await call("list_dir")).text == "[the folder is empty]"


async def test_an_edit_returns_its_diff(call: Call, root: Path) -> None:
    (root / "a").write_text("".join(f"{number}\n" for number in range(1, 21)))
    outcome = await call("edit_file", path="a", old_string="10\n", new_string="ten\nTEN\n")
    diff = "--- a/a\n+++ b/a\n@@ -7,7 +7,8 @@\n 7\n 8\n 9\n-10\n+ten\n+TEN\n 11\n 12\n 13"
    assert outcome.text == f"a changed in 1 place:\n{diff}"
    assert outcome.metadata == {"path": "a", "diff": diff, "replacements": 1}
    assert (root / "a").read_text().split("\n")[8:12] == ["9", "ten", "TEN", "11"]


async def test_every_occurrence_can_be_replaced(call: Call, root: Path) -> None:
    (root / "a").write_text("".join(f"x {number}\n" for number in range(30)))
    with pytest.raises(ToolError, match=r"occurs 30 times in a, at lines 1, 2, .*, 10 …: add"):
        await call("edit_file", path="a", old_string="x", new_string="y")
    outcome = await call("edit_file", path="a", old_string="x", new_string="y", replace_all=True)
    assert outcome.metadata["replacements"] == 30
    assert "x" not in (root / "a").read_text()


async def test_distant_edits_have_separate_hunks_with_correct_line_numbers(
    call: Call, root: Path
) -> None:
    (root / "a").write_text("".join(f"{n} {'old' if n in {20, 60} else ''}\n" for n in range(80)))
    outcome = await call("edit_file", path="a", old_string="old", new_string="n", replace_all=True)
    hunks = [line for line in outcome.metadata["diff"].split("\n") if line.startswith("@@")]
    assert hunks == ["@@ -18,7 +18,7 @@", "@@ -58,7 +58,7 @@"]


async def test_a_huge_edit_is_counted_instead_of_diffed(call: Call, root: Path) -> None:
    (root / "a").write_text("x\n" * 3_000)
    outcome = await call("edit_file", path="a", old_string="x", new_string="y", replace_all=True)
    assert outcome.metadata["diff"] == "[3,000 lines became 3,000 lines]"


EDIT_ERRORS: dict[str, tuple[str, str, str]] = {
    "nowhere": ("zzz", "y", "not in a: read the file again"),
    "blanks": ("def f( ):\n  return 1", "y", "not in a: read the file again"),
    "indented": ("def f():\n  return 1", "y", "line 2 differs from it in blanks only"),
    "only its first line": ("def f():\n    return 2", "y", "only its first line is, at line 2"),
    "blank": ("\n\n\n\n", "y", "old_string is not in a$"),
    "same": ("return 1", "return 1", "are the same"),
    "half a character": ("return 1", "\ud83d", "half a character"),
}


@pytest.mark.parametrize(("old", "new", "says"), EDIT_ERRORS.values(), ids=EDIT_ERRORS)
async def test_a_failed_edit_explains_the_reason(
    call: Call, root: Path, old: str, new: str, says: str
) -> None:
    (root / "a").write_text("import x\ndef f():\n    return 1\n")
    with pytest.raises(ToolError, match=says):
        await call("edit_file", path="a", old_string=old, new_string=new)
    assert (root / "a").read_text() == "import x\ndef f():\n    return 1\n"


async def test_windows_line_endings_and_bom_are_kept(call: Call, root: Path) -> None:
    (root / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    await call("edit_file", path="a", old_string="one\ntwo\n", new_string="1\n2\r\n")
    assert (root / "a").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nthree\r\n"


@pytest.mark.parametrize(("content", "says"), [(b"a\0b", "binary"), (b"\x7fELF\0", "binary")])
async def test_a_file_that_is_not_text_is_not_edited(
    call: Call, root: Path, content: bytes, says: str
) -> None:
    (root / "a").write_bytes(content)
    with pytest.raises(ToolError, match=says):
        await call("edit_file", path="a", old_string="a", new_string="b")
    assert (root / "a").read_bytes() == content


async def test_an_edit_above_the_size_limit_is_rejected(call: Call, root: Path) -> None:
    (root / "a").write_text("x" * 5_000_000)
    with pytest.raises(ToolError, match="would grow beyond"):
        await call("edit_file", path="a", old_string="x", new_string="xxxx", replace_all=True)


async def test_concurrent_edits_are_all_applied(call: Call, root: Path) -> None:
    (root / "a").write_text("".join(f"<{number}>\n" for number in range(24)))
    async with asyncio.TaskGroup() as tasks:
        for number in range(24):
            old, new = f"<{number}>", f"[{number}]"
            tasks.create_task(call("edit_file", path="a", old_string=old, new_string=new))
    assert (root / "a").read_text() == "".join(f"[{number}]\n" for number in range(24))


def odd_folder(root: Path) -> None:
    (root / "b").mkdir()
    (root / "a.txt").write_bytes(b"x" * 1536)
    (root / "c.bin").write_bytes(b"x" * 3 * 1024 * 1024)
    (root / "link").symlink_to("a.txt")
    os.mkfifo(root / "pipe")
    (root / "two\nlines\x1b[0m").write_bytes(b"")
    with contextlib.suppress(OSError):  # some file systems take UTF-8 only
        (root / os.fsdecode(b"\xff")).write_bytes(b"")


async def test_a_folder_is_listed(call: Call, root: Path) -> None:
    odd_folder(root)
    lines = (await call("list_dir")).text.split("\n")
    assert lines[:6] == [
        "a.txt  1.5 KB",
        "b/",
        "c.bin  3.0 MB",
        "link -> a.txt",
        "pipe (special)",
        r"two\nlines\x1b[0m  0 bytes",
    ]
    assert lines[6:] in ([], [r"\udcff  0 bytes"])


async def test_a_large_folder_is_capped(call: Call, root: Path) -> None:
    for number in range(520):
        (root / f"{number:04}").touch()
    outcome = await call("list_dir", path=".")
    lines = outcome.text.split("\n")
    assert lines[0].startswith("0000 ")
    assert lines[499:] == ["0499  0 bytes", "[20 more of 520 entries are not shown]"]
    assert outcome.metadata == {"entries": 520}


async def test_an_empty_folder_is_reported_and_a_file_is_rejected(call: Call, root: Path) -> None:
    assert (await call("list_dir")).text == "[the folder is empty]"
    (root / "a").touch()
    with pytest.raises(ToolError, match="a is not a folder"):
        await call("list_dir", path="a")


def test_names_are_escaped() -> None:
    assert escape_name("报告.md") == "报告.md"
    assert escape_name("a\u202eb") == r"a\u202eb"


async def test_edits_of_one_file_through_several_workspaces_lose_nothing(tmp_path: Path) -> None:
    inner, count = tmp_path / "inner", 12
    inner.mkdir()
    (tmp_path / "link").symlink_to("inner")
    (inner / "a.txt").write_text("".join(f"line {number};\n" for number in range(3 * count)))
    box = tool_box(tmp_path)

    async def edit(root: Path, path: str, number: int) -> None:
        context = CallContext(SessionId("s"), RunId("r"), "c", str(root), lambda _: None)
        change = {"old_string": f"line {number};", "new_string": f"new {number};"}
        await box.run(context, "edit_file", {"path": path, **change})

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            for place, (root, path) in enumerate(
                ((tmp_path, "inner/a.txt"), (inner, "a.txt"), (tmp_path, "link/a.txt"))
            ):
                tasks.create_task(edit(root, path, number * 3 + place))
    lines = (inner / "a.txt").read_text().splitlines()
    assert lines == [f"new {number};" for number in range(3 * count)]


async def test_the_rest_of_a_long_line_is_read_by_what_each_result_says(
    call: Call, root: Path
) -> None:
    lines = ["first", "é" + "".join(map(str, range(20_000))), "", "x" * 70_000, "last"]
    (root / "a").write_text("\n".join(lines) + "\n")
    parts, offset = [], 1
    for _ in range(20):
        text = (await call("read_file", path="a", offset=offset)).text
        assert len(text) < 30_400
        onward = re.search(r"offset=(\d+) reads on", text)
        text = re.sub(r"^\[line [\d,]+ of a, from character [\d,]+ on\]\n", "", text)
        parts.append(re.sub(r"\n?\[[^\[]*reads on[^\[]*\](\n\[.*\])?$", "", text))
        if onward is None:
            break
        offset = int(onward[1])
        parts.append("" if " in it]" in onward.string else "\n")
    assert "".join(parts) == "\n".join(lines)


async def test_an_offset_beyond_the_lines_is_a_place_in_a_long_line_only(
    call: Call, root: Path
) -> None:
    (root / "a").write_text("x" * 30_001 + "y" * 9)
    text = (await call("read_file", path="a", offset=30_001)).text
    assert text == "[line 1 of a, from character 30,001 on]\nx" + "y" * 9
    for offset in (30_012, 50_000):
        with pytest.raises(ToolError, match=f"has 1 lines: there is no line {offset:,}"):
            await call("read_file", path="a", offset=offset)
    (root / "short").write_text("one\ntwo\n")
    with pytest.raises(ToolError, match="has 2 lines: there is no line 3"):
        await call("read_file", path="short", offset=3)


SHOT = "Screenshot 2026-11-29 at 9.41.00\u202fAM.txt"


async def test_a_file_is_found_by_each_name_that_looks_the_same(call: Call, root: Path) -> None:
    (root / SHOT).write_text("one\n")
    name = SHOT.replace("\u202f", " ")
    assert (await call("read_file", path=name)).text == "one"
    assert (
        "changed in 1 place"
        in (await call("edit_file", path=name, old_string="one", new_string="two")).text
    )
    outcome = await call("write_file", path=name.replace(" ", "\u00a0"), content="three")
    assert (outcome.metadata["path"], outcome.metadata["created"]) == (SHOT, False)
    assert (await call("list_dir")).metadata == {"entries": 1}
    assert (root / SHOT).read_text() == "three"


async def test_names_that_look_the_same_are_spelled_out(call: Call, root: Path) -> None:
    for name in ("caf\u00e9", "cafe\u0301", "other é"):
        (root / name).write_text(name)
    assert (await call("list_dir")).text.split("\n") == [
        r"cafe\u0301  6 bytes",
        r"caf\xe9  5 bytes",
        "other é  8 bytes",
    ]
    assert (await call("read_file", path="cafe\u0301")).text == "cafe\u0301"
    (root / "cafe\u0301").rename(root / "cafe\u0301\u200b")
    (root / "caf\u00e9").rename(root / "caf\u00e9\u200b")
    for tool, more in (("read_file", {}), ("write_file", {"content": "x"})):
        with pytest.raises(ToolError) as raised:
            await call(tool, path="café", **more)
        assert r'2 names look the same: "cafe\u0301\u200b", "caf\xe9\u200b"' in str(raised.value)


@pytest.mark.parametrize(
    "path", ["~/a", "~", "~root/a", "$HOME/a", "${LARKSPUR_OUTPUT_DIR}/a", "file:///a"]
)
async def test_what_a_shell_replaces_is_not_made_a_folder(
    call: Call, root: Path, path: str
) -> None:
    for tool, more in (("write_file", {"content": "x"}), ("read_file", {}), ("list_dir", {})):
        with pytest.raises(ToolError, match=r"does not stand for .* here"):
            await call(tool, path=path, **more)
    assert (await call("list_dir")).metadata == {"entries": 0}


@pytest.mark.parametrize(
    "path", ["./~/a", "~$notes.docx", "~notes", "a~", "$slug.tsx", "[id]/*.py", "a\nb", "file:a"]
)
async def test_a_name_is_taken_literally(call: Call, root: Path, path: str) -> None:
    await call("write_file", path=path, content="x\n")
    assert (root / path).read_text() == "x\n"
    assert (await call("read_file", path=path)).text == "x"


async def test_a_text_that_looks_the_same_is_edited_and_shown(call: Call, root: Path) -> None:
    (root / "a").write_text("“It\u2019s\u00a0fine”, she said…\nIt is fine.\n")
    outcome = await call(
        "edit_file", path="a", old_string='"It\'s fine", she', new_string='"It\'s good", he'
    )
    assert (root / "a").read_text() == "“It\u2019s\u00a0good”, he said…\nIt is fine.\n"
    assert outcome.text.endswith(
        "[old_string was not there; this looks the same and was replaced:"
        ' "“It\u2019s\u00a0fine”, she"]'
    )
    (root / "a").write_text("\u2018x\u2019 \u2019x\u2018 'x'\n")
    await call("edit_file", path="a", old_string="'x'", new_string="'y'")
    assert (root / "a").read_text() == "\u2018x\u2019 \u2019x\u2018 'y'\n"
    with pytest.raises(
        ToolError, match="is not in a, and 2 texts look the same, at lines 1, 1: add"
    ):
        await call("edit_file", path="a", old_string="'x'", new_string="'y'")
    with pytest.raises(ToolError, match="look the same: nothing would change"):
        await call("edit_file", path="a", old_string="\u2018y'", new_string="'y'")


async def test_blanks_of_another_number_are_quoted(call: Call, root: Path) -> None:
    (root / "a").write_text("if x:\n\treturn  1\n")
    with pytest.raises(ToolError) as raised:
        await call("edit_file", path="a", old_string="if x:\n    return 1", new_string="y")
    assert str(raised.value).endswith(
        r'line 1 differs from it in blanks only; copy it exactly: "if x:\n\treturn  1"'
    )


async def test_writers_of_names_that_look_the_same_make_one_file(call: Call, root: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        for name in ("caf\u00e9", "cafe\u0301", "caf\u00e9\u200b"):
            tasks.create_task(call("write_file", path=name, content="x"))
    assert (await call("list_dir")).metadata == {"entries": 1}
