"""Reading `SKILL.md` files in the shapes that public skills have."""

import re

import pytest

from internal.skills.errors import SkillUnreadable
from internal.skills.skill_file import SkillFile, find_file_name, parse_skill_file

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
        ("", "line 1: the skill has no description"),
        ("---\nname: reports\n---\n", "has no description"),
        ("---\ndescription:\n---\n---\n", "has no description"),
        ("---\n---\n", "has no description"),
        ("---\n- a\n---\n", "not a list of keys"),
        (f"---\ndescription: d\n---\n{'d' * 1_000_000}", "larger than"),
        (b"---\ndescription: \xff\n---\n", "line 2: this is not UTF-8"),
    ],
)
def test_a_problem_names_the_file_and_the_line(text: str | bytes, problem: str) -> None:
    with pytest.raises(SkillUnreadable, match=problem):
        read(text)


@pytest.mark.parametrize(
    ("name", "folder", "used"),
    [
        ("team:deploy", "team-deploy", "team-deploy"),
        ("R&D notes/short", "rd-notes", "rd-notes"),
        ("../../evil", "reports", "reports"),
        ("a\u202eb", "reports", "reports"),
        ("x" * 65, "reports", "reports"),
        ("docs/pdf", "docs & pdf", "docs-pdf"),
        ("[one, two]", "reports", "reports"),
    ],
)
def test_the_name_of_the_folder_replaces_one_that_cannot_be_used(
    name: str, folder: str, used: str
) -> None:
    found = read(f"---\nname: {name}\ndescription: d\n---\n", folder)
    assert found.name == used
    assert "\u202e" not in "".join(found.warnings)


def test_a_folder_whose_name_has_no_letter_needs_a_name() -> None:
    with pytest.raises(SkillUnreadable, match="nor can that of its folder"):
        read("---\nname: ':'\ndescription: d\n---\n", "&&")


@pytest.mark.parametrize(
    ("text", "description", "warning"),
    [
        ("# Check a release\n\nChecks it\nfirst.\n\nThen.", "Checks it first.", "no header"),
        ("# Only a heading", "Only a heading", "no description"),
        ("---\nname: reports\n---\n# A\n***\n\nSorts mail.\n", "Sorts mail.", "no description"),
        ("---\nname: reports\ndescription: d\n\n# Body\n", "d", "header has no end"),
        ("\n---\ndescription: d\nallowed-tools: *\n---\n", "d", "read line by line"),
        ("---\ndescription: d\nb: [1\n---\n", "d", "line [34]: the YAML cannot be read"),
        ("---\ndescription:\t*all* of it\n---\n", "*all* of it", "read line by line"),
        (
            "---\nname: reports\n\tx: y\ndescription: >\n\tof two\n\tlines\n---\n",
            "of two lines",
            "by line",
        ),
        ("---\ndescription: 'it's\n  here'\n---\n", "it's here", "read line by line"),
        ("---\n---\nDoes it.", "Does it.", "header is empty"),
    ],
)
def test_what_describes_a_skill_is_found_with_a_warning(
    text: str, description: str, warning: str
) -> None:
    found = read(text)
    assert found.description == description
    assert re.search(warning, "\n".join(found.warnings))
    assert found.name == "reports"


def test_a_file_of_windows_in_utf_16_is_read() -> None:
    assert read("\ufeff---\ndescription: d\n---\nBody".encode("utf-16-le")).body == "Body"


def test_every_spelling_of_the_file_name_is_found() -> None:
    assert find_file_name(["a", "skill.md", "SKILL.md"]) == "SKILL.md"
    assert find_file_name(["Skill.MD"]) == "Skill.MD"
    assert find_file_name(["SKILL.txt"]) is None
    (warning,) = parse_skill_file(b"---\ndescription: d\n---\n", "a/skill.md", "a").warnings
    assert "other agents expect the name SKILL.md" in warning
