"""Reason phrases of HTTP."""

import pytest

from internal.normal_forms.http_status import status_phrase


@pytest.mark.parametrize(
    ("status", "phrase"),
    [
        (200, "OK"),
        (404, "Not Found"),
        (413, "Content Too Large"),
        (414, "URI Too Long"),
        (416, "Range Not Satisfiable"),
        (422, "Unprocessable Content"),
    ],
)
def test_the_phrase_is_that_of_rfc_9110(status: int, phrase: str) -> None:
    assert status_phrase(status) == phrase


def test_an_unregistered_code_has_none() -> None:
    with pytest.raises(ValueError, match="299"):
        status_phrase(299)
