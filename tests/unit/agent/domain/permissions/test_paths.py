"""Paths and globs."""

import pytest

from internal.agent.domain.permissions.paths import (
    MAX_PATH_CHARS,
    allows_path,
    denies_path,
    is_protected,
    suggest_path_rule,
)


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
