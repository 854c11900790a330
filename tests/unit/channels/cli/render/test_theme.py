"""Themes define the same style classes, which prompt_toolkit accepts."""

import pytest
from prompt_toolkit.styles import Style

from internal.channels.cli.render.text import cell_width
from internal.channels.cli.render.theme import ASCII, THEMES, UNICODE, theme_styles


@pytest.mark.parametrize("theme", THEMES)
def test_every_theme_defines_the_same_classes(theme: str) -> None:
    assert theme_styles(theme).keys() == theme_styles("plain").keys()
    Style.from_dict(theme_styles(theme))


def test_markers_have_the_dim_colour_of_the_theme() -> None:
    for theme, colours in THEMES.items():
        assert theme_styles(theme)["marker"] == colours["faint"]


def test_the_ascii_glyphs_are_ascii_and_the_others_one_column_wide() -> None:
    assert all(glyph.isascii() for glyph in ASCII)
    assert {cell_width(glyph) for glyph in UNICODE} == {1}
