"""The properties of streamed replies, with many examples."""

import pytest
from hypothesis import given, settings

from tests.support.reply_streams import (
    CHANGING_WIDTHS,
    PARTS,
    RESTARTS,
    SIZES,
    WIDTHS,
    check_restart,
    check_rows_of_one_render,
    check_width_changes,
)


@pytest.mark.chaos
@settings(max_examples=600, deadline=None)
@given(PARTS, SIZES, WIDTHS)
def test_printed_rows_are_those_of_one_render(
    parts: list[str], sizes: list[int], width: int
) -> None:
    check_rows_of_one_render(parts, sizes, width)


@pytest.mark.chaos
@settings(max_examples=400, deadline=None)
@given(SIZES, CHANGING_WIDTHS)
def test_all_text_is_printed_once_while_the_width_changes(
    sizes: list[int], widths: list[int]
) -> None:
    check_width_changes(sizes, widths)


@pytest.mark.chaos
@settings(max_examples=400, deadline=None)
@given(RESTARTS, SIZES, WIDTHS)
def test_a_reply_that_restarts_with_the_same_text_is_printed_once(
    at: int, sizes: list[int], width: int
) -> None:
    check_restart(at, sizes, width)
