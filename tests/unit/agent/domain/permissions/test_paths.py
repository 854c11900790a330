"""Paths and globs."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from internal.agent.domain.permissions.paths import (
    MAX_PATH_CHARS,
    allows_path,
    denies_path,
    is_configuration,
    is_protected,
    normalize_path,
    suggest_path_rule,
)
from internal.normal_forms.names import fold_name


@pytest.mark.parametrize("path", [".git", ".GIT/x", "a/./.git/x", "a\\.git\\x", ".g\u200bit/x"])
def test_every_spelling_of_a_protected_folder_is_protected(path: str) -> None:
    assert is_protected(path)


@pytest.mark.parametrize("path", [".", "", ".gitignore", "x.git/a", ".git/../a"])
def test_other_paths_are_not_protected(path: str) -> None:
    assert not is_protected(path)


def test_a_path_that_is_too_long_cannot_be_matched_against_a_deny_glob() -> None:
    assert denies_path("a/**", "a/" * MAX_PATH_CHARS) is None
    assert denies_path("a/**", "a/b") is True


def test_a_suggested_rule_allows_the_path() -> None:
    assert suggest_path_rule("copy", "./notes//a.md") == "copy(notes/a.md)"
    assert allows_path("notes/a.md", "./notes//a.md")
    assert suggest_path_rule("copy", "a*") == ""


def test_every_spelling_of_a_relative_path_is_in_the_workspace() -> None:
    for glob in ("output/**", "./output/**", "**"):
        assert allows_path(glob, "output/a.md")
        assert allows_path(glob, "./output/a.md")
    assert suggest_path_rule("write_file", "./output/a.md") == "write_file(output/a.md)"


LOOKS = {
    " ": " \u00a0\u202f\u3000",
    "'": "'\u2018\u2019\uff07",
    '"': '"\u201c\u201d',
    "-": "-\u2010\u2011\uff0d",
    "a": "a\uff41",
    "(": "(\uff08",
    "\u00e9": ["\u00e9", "e\u0301", "e\u200b\u0301"],
}


@st.composite
def look_alikes(draw: st.DrawFn) -> tuple[str, str]:
    """Return two names that look the same."""
    signs = draw(st.lists(st.sampled_from([*LOOKS, "b", "/"]), min_size=1, max_size=9))
    one, other = (
        "".join(draw(st.sampled_from([*LOOKS.get(sign, sign)])) for sign in signs) for _ in range(2)
    )
    return one, other


@given(look_alikes(), st.booleans())
def test_a_deny_rule_covers_every_name_under_which_a_tool_opens_the_file(
    names: tuple[str, str], recursive: bool
) -> None:
    denied, asked = names
    assert fold_name(denied) == fold_name(asked)
    assume(normalize_path(denied) not in {".", "/", "//"})
    assert denies_path(denied, asked, recursive=recursive)
    assert denies_path("x/**", f"x/{asked}")
    assert denies_path(f"{denied}/**", f"{asked}/x")


@pytest.mark.parametrize(
    "path",
    [
        ".pre\u2011commit\uff0dconfig.yaml",
        "\uff21\uff27\uff25\uff2e\uff34\uff33.md",
        "\uff0egithub/workflows/x",
    ],
)
def test_a_look_alike_of_a_configuration_is_one(path: str) -> None:
    assert is_configuration(path)
