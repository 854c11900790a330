"""Names of servers."""

import pytest

from internal.mcp.server_names import is_usable, usable_name


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("my-server", "my-server"),
        ("My Server (beta)", "my-server-beta"),
        ("io.github.user/weather", "io-github-user-weather"),
        ("a__b_", "a_b"),
        ("Café", "cafe"),
        ("天气", "server-a6d3f4"),
        ("", "server-e3b0c4"),
        ("x" * 50, "x" * 40),
    ],
)
def test_a_name_becomes_one_that_a_server_can_have(written: str, name: str) -> None:
    assert is_usable(usable_name(written))
    assert usable_name(written) == name or name.startswith("server-")
    assert (usable_name(written) == written) == is_usable(written)
