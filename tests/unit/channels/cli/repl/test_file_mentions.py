"""Files that a message names."""

from pathlib import Path

import pytest

from internal.channels.cli.repl.file_mentions import as_mention, mention_start, mentioned_files

NAMES = ("报告.txt", "a.py", "my notes.txt", "report (1).txt", "b.txt")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@a.py", ["a.py"]),
        ("read @a.py, then @b.txt.", ["a.py", "b.txt"]),
        ("请总结@报告.txt里的数字", ["报告.txt"]),
        ("看一下（@报告.txt）、@b.txt，谢谢", ["报告.txt", "b.txt"]),  # noqa: RUF001 - so people write
        ("日本語で@a.pyを読んで", ["a.py"]),
        ('read @"my notes.txt" and @b.txt', ["my notes.txt", "b.txt"]),
        ("请看@“my notes.txt”", ["my notes.txt"]),
        ("read @my\\ notes.txt.", ["my notes.txt"]),
        ("read @'report (1).txt'", ["report (1).txt"]),
        ("(@a.py)", ["a.py"]),
        ("me@b.txt and @a.python and @none", []),
        ("@a.py @a.py", ["a.py"]),
        ("@", []),
        ('@"', []),
        ("@" + "x" * 10_000, []),
    ],
)
def test_files_are_found_in_sentences(tmp_path: Path, text: str, names: list[str]) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(name)
    assert [Path(each.path).name for each in mentioned_files(text, tmp_path)] == names


def test_a_name_that_looks_the_same_is_found(tmp_path: Path) -> None:
    (tmp_path / "cafe\u0301").mkdir()
    (tmp_path / "cafe\u0301/Shot 9.41\u202fAM.txt").write_text("x")
    (tmp_path / "cafe").write_text("a shorter name")
    found = mentioned_files('请看@"caf\u00e9/Shot 9.41 AM.txt"里的', tmp_path)
    assert [each.path for each in found] == [f"{tmp_path}/cafe\u0301/Shot 9.41\u202fAM.txt"]
    (tmp_path / "re\u0301sume\u0301.txt").write_text("x")
    found = mentioned_files("请看@r\u00e9sum\u00e9.txt里的", tmp_path)
    assert [each.name for each in found] == ["re\u0301sume\u0301.txt"]


@pytest.mark.parametrize(
    ("text", "start"),
    [("read @a", 6), ("请看@报", 3), ('@"my no', 1), ('@"my no" ', -1), ("@a ", -1), ("a@b", -1)],
)
def test_a_mention_that_is_being_written_is_found(text: str, start: int) -> None:
    assert mention_start(text) == start


def test_a_name_with_blanks_is_quoted() -> None:
    assert (as_mention("a.py"), as_mention("my notes.txt")) == ("@a.py", '@"my notes.txt"')
