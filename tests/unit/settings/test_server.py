"""Settings of the web server."""

import pytest
from pydantic import ValidationError

from internal.settings.server import ServerSettings


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (None, ""),
        ("https://example.org", ""),
        ("https://example.org/", ""),
        ("https://example.org/lark/spur/", "/lark/spur"),
    ],
)
def test_the_public_address_may_have_a_path(url: str | None, path: str) -> None:
    assert ServerSettings(public_url=url).path == path


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/api/larkspur", "must not have a path that begins with /api"),
        ("/sessions", "must not have a path that begins with /sessions"),
        ("/a//b", "must have a path of letters"),
        ("/a%20b", "must have a path of letters"),
        ("/../a", "must have a path of letters"),
    ],
)
def test_a_path_that_cannot_be_served_is_refused(path: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ServerSettings(public_url=f"https://example.org{path}")
