"""The search program that replaces ripgrep."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from internal.tools import search_fallback

GLOBS = {
    "*.py": (["a.py", "b/a.py", "b/.py"], ["a.pyc", "a.py/b"]),
    "src/*.py": (["src/a.py"], ["a.py", "x/src/a.py", "src/b/a.py"]),
    "/a": (["a"], ["b/a"]),
    "src/**/x": (["src/x", "src/a/b/x"], ["x", "src/ax"]),
    "**/x": (["x", "a/b/x"], ["ax"]),
    "a/**": (["a/b", "a/b/c"], ["a", "b/a"]),
    "?.[ch]": (["a.c", "b/a.h"], ["ab.c", "a.x"]),
    "[!a].c": (["b.c"], ["a.c"]),
    "{a,b*}.c,": (["a.c,", "bx.c,"], ["c.c,", "a.c"]),
    r"\[a\].c": (["[a].c"], ["a.c"]),
    "a+(b).c": (["a+(b).c"], ["aa(b).c"]),
}


@pytest.mark.parametrize("glob", GLOBS)
def test_a_glob_matches_as_in_ripgrep(glob: str) -> None:
    matching, other = GLOBS[glob]
    wanted = re.compile(search_fallback.glob_to_regex(glob))
    assert [path for path in matching + other if wanted.fullmatch(path)] == matching


@pytest.mark.parametrize(
    ("pattern", "code", "printed"),
    [("needle =|x =", 0, "b/c.py\0001:1:x = needle\n"), ("zzz", 1, ""), ("(", 2, "missing )")],
)
def test_the_fallback_runs_as_a_program(
    tmp_path: Path, environ: dict[str, str], pattern: str, code: int, printed: str
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/c.py").write_text("x = needle\n", encoding="utf-8")
    options = {"pattern": pattern, "literal": False, "ignore_case": False, "globs": [], "file": ""}
    ran = subprocess.run(
        [sys.executable, "-m", "internal.tools.search_fallback"],
        input=json.dumps(options).encode(),
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (code, b"")
    assert ran.stdout.decode().startswith(printed)
