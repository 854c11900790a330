"""Search: the same results from ripgrep and from the fallback scanner."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.tools import search_fallback
from tests.support.tools import tool_box

Call = Callable[..., Any]

STAND_IN = f"""#!{sys.executable} -I
import argparse, json, pathlib, subprocess, sys
parser = argparse.ArgumentParser(exit_on_error=True)
for flag in ("no-config", "no-messages", "no-heading", "null", "no-ignore", "hidden", "no-follow"):
    parser.add_argument("--" + flag, action="store_true", required=True)
for flag in ("with-filename", "line-number", "column", "files-with-matches", "invert-match",
             "line-regexp"):
    parser.add_argument("--" + flag, action="store_true")
for flag, value in (("color", "never"), ("sort", "path"), ("max-filesize", "10485760")):
    parser.add_argument("--" + flag, choices=[value], required=True)
parser.add_argument("--glob", action="append", default=[])
parser.add_argument("--regexp", required=True)
parser.add_argument("--fixed-strings", action="store_true")
case = parser.add_mutually_exclusive_group()
case.add_argument("--ignore-case", action="store_true")
case.add_argument("--case-sensitive", action="store_true")
parser.add_argument("where")
options = parser.parse_args()
assert options.where.startswith("./") and "!**/.git/**" in options.glob
query = {{"pattern": options.regexp, "literal": options.fixed_strings,
           "ignore_case": options.ignore_case, "file": options.where[2:],
           "globs": [each for each in options.glob if each[0] != "!"]}}
if options.files_with_matches:
    assert options.invert_match and options.line_regexp and options.regexp == ".*"
    for path in pathlib.Path().rglob("*.txt"):
        try:
            path.read_text("utf-8")
        except UnicodeDecodeError:
            sys.stdout.write(f"./{{path}}\\0")
    sys.exit(0)
program = [sys.executable, "-I", "-m", "internal.tools.search_fallback"]
sys.exit(subprocess.run(program, input=json.dumps(query).encode()).returncode)
"""
"""Speaks ripgrep's command line as far as it is used, and refuses every other flag."""

ENGINES = [
    "scan",
    "stand-in",
    pytest.param("ripgrep", marks=pytest.mark.needs("ripgrep")),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    files = {
        "a.py": "import os\nNeedle = 1\n",
        "b/c.py": "x = needle\n",
        "b/d.txt": "a needle (here)\r\nnothing\n",
        "b/needle/e.txt": "empty of it\n",
        "node_modules/m/index.js": "needle\n",
        ".git/config": "needle\n",
        ".hidden/f": "a hidden needle\n",
        "c": "z needle\n",
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    (root / "binary").write_bytes(b"needle\0\n")
    (root / "large").write_bytes(b"needle\n" + b"x" * (search_fallback.MAX_FILE_BYTES + 1))
    (tmp_path / "outside").write_text("needle outside\n")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "folder-link").symlink_to("b")
    return root


@pytest.fixture(params=ENGINES)
def call(request: pytest.FixtureRequest, root: Path, tmp_path: Path) -> Call:
    stand_in = tmp_path / "rg"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    program = {"scan": None, "stand-in": str(stand_in), "ripgrep": shutil.which("rg")}[
        request.param
    ]
    box = tool_box(root, ripgrep=program)
    if program is None:
        box._ripgrep = None  # even where the machine has one
    context = CallContext(SessionId("s"), RunId("r"), "c", str(root), lambda _: None)

    async def run(**arguments: object) -> ToolOutcome:
        return await box.run(context, "search_files", arguments)

    return run


SEARCHES: dict[str, tuple[dict[str, object], list[str]]] = {
    "regular expression": (
        {"pattern": r"nee.le"},
        [
            ".hidden/f:1: a hidden needle",
            "b/c.py:1: x = needle",
            "b/d.txt:1: a needle (here)",
            "c:1: z needle",
        ],
    ),
    "any case": (
        {"pattern": "^NEEDLE|x = n", "ignore_case": True},
        ["a.py:2: Needle = 1", "b/c.py:1: x = needle"],
    ),
    "literal": ({"pattern": "(here)", "literal": True}, ["b/d.txt:1: a needle (here)"]),
    "a name": ({"pattern": "needle", "glob": "*.py"}, ["b/c.py:1: x = needle"]),
    "a path": ({"pattern": "needle", "glob": "b/*.txt"}, ["b/d.txt:1: a needle (here)"]),
    "names": (
        {"pattern": "needle", "glob": "**/*.{py,txt}"},
        ["b/c.py:1: x = needle", "b/d.txt:1: a needle (here)"],
    ),
    "a folder": (
        {"pattern": "needle", "path": "b"},
        ["b/c.py:1: x = needle", "b/d.txt:1: a needle (here)"],
    ),
    "a file": ({"pattern": "needle", "path": "b/c.py"}, ["b/c.py:1: x = needle"]),
    "a link inside": (
        {"pattern": "x =", "path": "folder-link"},
        ["b/c.py:1: x = needle"],
    ),
    "a folder that is left out, named": (
        {"pattern": "needle", "path": "node_modules/m"},
        ["node_modules/m/index.js:1: needle"],
    ),
    "like an option": ({"pattern": "--help"}, ["[nothing was found]"]),
    "nothing": ({"pattern": "no such text"}, ["[nothing was found]"]),
}


@pytest.mark.parametrize(("arguments", "lines"), SEARCHES.values(), ids=SEARCHES)
async def test_matching_lines_are_listed(
    call: Call, arguments: dict[str, object], lines: list[str]
) -> None:
    assert (await call(**arguments)).text.split("\n") == lines


async def test_matches_are_counted_and_capped(call: Call, root: Path) -> None:
    (root / "many").write_text("spot\n" * 500)
    outcome = await call(pattern="spot")
    lines = outcome.text.split("\n")
    assert lines[199:] == [
        "many:200: spot",
        "[200 of 500 lines are shown: narrow the search]",
    ]
    assert outcome.metadata == {"matches": 500, "files": 1}


async def test_long_lines_are_cut(call: Call, root: Path) -> None:
    for number in range(150):
        (root / f"w{number:03}").write_text("wide" * 50_000)
    text = (await call(pattern="wide")).text
    assert text.startswith("w000:1: " + "wide" * 100 + "…\nw001:1: ")
    assert len(text) < 31_000
    assert re.search(r"\[\d+ of 150 lines are shown: narrow the search\]$", text)


async def test_control_characters_in_names_are_escaped(call: Call, root: Path) -> None:
    (root / "o\x1b[0m").write_text("oddity\n")
    assert (await call(pattern="oddity")).text == r"o\x1b[0m:1: oddity"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"pattern": "("}, "the search failed: "),
        ({"pattern": "a\nb"}, "a pattern is one line"),
        ({"pattern": "a", "glob": "\0"}, "a pattern is one line"),
        ({"pattern": "a", "glob": "{a"}, "the search failed: "),
        ({"pattern": "a", "glob": "!*.py"}, "not which to leave out"),
        ({"pattern": "a", "path": "link"}, "leads outside"),
        ({"pattern": "a", "path": "gone"}, "does not exist"),
        ({"pattern": "a", "glob": "~/*.py"}, "does not stand for the home folder"),
    ],
)
async def test_invalid_search_arguments_are_rejected(
    call: Call, arguments: dict[str, object], says: str
) -> None:
    with pytest.raises(ToolError, match=says):
        await call(**arguments)


async def test_the_match_in_a_long_line_is_shown(call: Call, root: Path) -> None:
    (root / "long").write_text("é" * 90_000 + "spot" + "x" * 90_000 + "\nspot\n")
    line, second = (await call(pattern="spot")).text.split("\n")
    assert line == (
        "long:1: …"
        + "é" * 100
        + "spot"
        + "x" * 296
        + "… [from character 89,901 of 180,004 in this line on]"
    )
    assert second == "long:2: spot"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("Müller", ["b/kunden.txt:2: Müller;Königsallee 5", "b/utf8.txt:1: Müller"]),
        ("Ort|K.nig", ["b/kunden.txt:1: Name;Straße;Ort", "b/kunden.txt:2: Müller;Königsallee 5"]),
        ("Name;", ["b/kunden.txt:1: Name;Straße;Ort"]),
    ],
)
async def test_files_in_other_encodings_are_searched_by_their_characters(
    call: Call, root: Path, pattern: str, found: list[str]
) -> None:
    (root / "b/kunden.txt").write_bytes("Name;Straße;Ort\nMüller;Königsallee 5\n".encode("cp1252"))
    (root / "b/utf8.txt").write_text("Müller\n")
    outcome = await call(pattern=pattern)
    assert sorted(outcome.text.splitlines()) == found
    assert outcome.metadata["matches"] == len(found)


async def test_the_match_in_a_long_line_of_another_encoding_is_shown(
    call: Call, root: Path
) -> None:
    line = "服务启动完成" * 200
    (root / "b/long.txt").write_bytes(f"{line}北京{line}\n北京\n".encode("gb18030"))
    shown, second = (await call(pattern="北京")).text.split("\n")
    assert shown.startswith("b/long.txt:1: …")
    assert "完成北京服务" in shown
    assert shown.endswith("… [from character 1,101 of 2,402 in this line on]")
    assert second == "b/long.txt:2: 北京"


async def test_any_number_of_files_in_another_encoding_is_searched(call: Call, root: Path) -> None:
    for number in range(300):
        (root / f"b/{number} {'x' * 200}.txt").write_bytes("姓名,北京\n".encode("gb18030"))
    outcome = await call(pattern="北京|上海", glob="29*")
    assert outcome.metadata == {"matches": 11, "files": 11}
    assert (await call(pattern="北京|上海")).metadata["matches"] == 300


GLOBS = {
    "app/[id]/*": ["app/[id]/page.tsx", "app/i/page.tsx"],
    "app/[[...slug]]/*": ["app/[[...slug]]/page.tsx"],
    r"app/\[id\]/*": ["app/[id]/page.tsx"],
    "{name}.txt": ["name.txt", "{name}.txt"],
    "caf\u00e9*": ["cafe\u0301 1.txt", "caf\u00e9 2.txt"],
    "Shot 9.41 AM.txt": ["Shot 9.41\u202fAM.txt"],
    "it's*": ["it\u2019s.txt"],
    "(a)*": ["\uff08a\uff09.txt"],
}


@pytest.mark.parametrize("glob", GLOBS)
async def test_a_glob_also_means_names_that_it_has_literally_or_that_look_the_same(
    call: Call, root: Path, glob: str
) -> None:
    for name in {each for names in GLOBS.values() for each in names}:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("spot\n")
    found = (await call(pattern="spot", glob=glob)).text
    shown = [line.removesuffix(":1: spot") for line in found.split("\n")]
    assert shown == sorted(each.replace("\u202f", r"\u202f") for each in GLOBS[glob])


async def test_a_name_with_a_line_end_is_one_name(call: Call, root: Path) -> None:
    (root / "one\ntwo").write_text("spot\n")
    assert (await call(pattern="spot")).text == r"one\ntwo:1: spot"
