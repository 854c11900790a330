"""YAML headers of `SKILL.md` files, and their errors."""

import pytest

from internal.skills.errors import SkillUnreadable
from internal.skills.skill_header import read_header


def test_every_scalar_is_text() -> None:
    header = read_header("a: 1\nb: yes\nc: [2026-01-01, null]\n", "SKILL.md")
    assert header == ({"a": "1", "b": "yes", "c": ["2026-01-01", "null"]}, [])


def test_what_is_no_yaml_is_read_line_by_line() -> None:
    text = 'a: *\nb: >-\n  one\n  two\nc: "x: y\nd:\n  - 1\n'
    header, (warning,) = read_header(text, "SKILL.md")
    assert header == {"a": "*", "b": "one two", "c": '"x: y', "d": "- 1"}
    assert "SKILL.md, line 2: the YAML cannot be read" in warning


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a", "not a list of keys"),
        ("[1", "SKILL.md, line [23]: the YAML cannot be read"),
        ("a: &x [1]\ndescription: d\nb: *x", "line 4: YAML aliases"),
        ("description: d\na: !!python/object/apply:os.system [x]", "line 3: the YAML"),
        (f"description: d\na: {'[' * 50}{']' * 50}", "line 3: the header is nested"),
        (f"description: {'d' * 70_000}", "more than 64,000"),
    ],
)
def test_a_problem_names_the_file_and_the_line(text: str, problem: str) -> None:
    with pytest.raises(SkillUnreadable, match=problem):
        read_header(text, "SKILL.md")
