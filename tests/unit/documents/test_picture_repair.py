"""Checksums and ends of pictures."""

import pytest

from internal.documents.picture_repair import repaired
from tests.support import documents


@pytest.mark.parametrize(("form", "end"), [("PNG", 12), ("JPEG", 2), ("GIF", 1)])
def test_a_missing_end_is_added(form: str, end: int) -> None:
    whole = documents.picture(form)
    assert repaired(whole[:-end]) == whole


def test_bytes_after_the_end_of_a_png_and_wrong_checksums_are_gone() -> None:
    whole = documents.picture("PNG")
    assert repaired(whole[:-1] + b"x" + b"more") == whole


def test_other_content_is_returned_as_it_is() -> None:
    assert repaired(b"BM1234") == b"BM1234"
