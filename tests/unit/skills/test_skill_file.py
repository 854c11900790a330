"""Reading `SKILL.md` files in the shapes that public skills have."""

import pytest

from internal.skills.errors import SkillUnreadable
from internal.skills.skill_file import SkillFile, parse_skill_file

LONG = "Read it " * 133 + "whole"


def read(text: str | bytes, folder: str = "reports") -> SkillFile:
    content = text if isinstance(text, bytes) else text.encode()
    return parse_skill_file(content, "reports/SKILL.md", folder)


@pytest.mark.parametrize(
    ("header", "description"),
    [
        ('description: "Quoted: text"', "Quoted: text"),
        ("description: plain text", "plain text"),
        ("description: >\n  folded\n  text", "folded text"),
        ("description: |-\n  literal\n  text", "literal\ntext"),
        (f"description: {LONG}", LONG),
        ("description: a --- b", "a --- b"),
        ("description: |\n  a\n  ---\n  b", "a\n---\nb"),
        ("description: Use when: a file is: open", "Use when: a file is: open"),
        ("description: It's for: files\n  on two lines", "It's for: files on two lines"),
        ("description: 2026-99-99", "2026-99-99"),
        ("description: true", "true"),
    ],
)
def test_a_description_is_read_whole(header: str, description: str) -> None:
    assert read(f"---\nname: reports\n{header}\n---\nBody").description == description
    assert len(LONG) == 1069


def test_a_byte_order_mark_and_windows_line_ends_are_accepted() -> None:
    found = read(b"\xef\xbb\xbf---\r\nname: reports\r\ndescription: d\r\n---\r\n# One\r\ntwo\r\n")
    assert (found.name, found.body, found.warnings) == ("reports", "# One\ntwo", ())


@pytest.mark.parametrize(
    ("given", "tools"),
    [
        ("Read, Grep", ("Read", "Grep")),
        ("Read Bash(git diff:*)", ("Read", "Bash(git diff:*)")),
        ("[Read, Write]", ("Read", "Write")),
        ("\n  - Read\n  - Write", ("Read", "Write")),
        ("", ()),
    ],
)
def test_allowed_tools_are_text_or_a_list(given: str, tools: tuple[str, ...]) -> None:
    assert read(f"---\ndescription: d\nallowed-tools: {given}\n---\n").allowed_tools == tools


def test_unknown_keys_are_kept() -> None:
    header = read("---\ndescription: d\nuser-invocable: yes\nmetadata:\n  a: b\n---\n").header
    assert header == {"description": "d", "user-invocable": "yes", "metadata": {"a": "b"}}


def test_an_unusual_name_is_a_warning() -> None:
    found = read("---\nname: My Reports\ndescription: d\n---\n")
    assert found.name == "My Reports"
    assert len(found.warnings) == 2
    assert read("---\ndescription: d\n---\n").name == "reports"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# No header", "SKILL.md, line 1: the header"),
        ("---\nname: reports\n---\n", "has no description"),
        ("---\ndescription:\n---\n", "has no description"),
        ("---\n---\n", "not a list of keys"),
        ("---\ndescription: d\nb: [1\n---\n", "SKILL.md, line [34]: the YAML cannot be read"),
        (f"---\ndescription: d\n---\n{'d' * 1_000_000}", "larger than"),
        (b"---\ndescription: \xff\n---\n", "line 2: this is not UTF-8"),
        ("---\nname: ../../evil\ndescription: d\n---\n", "cannot be the name"),
        ("---\nname: a\u202eb\ndescription: d\n---\n", "cannot be the name"),
    ],
)
def test_a_problem_names_the_file_and_the_line(text: str | bytes, problem: str) -> None:
    with pytest.raises(SkillUnreadable, match=problem):
        read(text)
