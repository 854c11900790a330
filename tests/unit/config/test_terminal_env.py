"""The environment of the terminal."""

import pytest

from internal.config.terminal_env import has_desktop


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, False),
        ({"DISPLAY": ""}, False),
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"BROWSER": "w3m"}, True),
    ],
)
def test_a_desktop_is_known_by_its_display(environ: dict[str, str], expected: bool) -> None:
    assert has_desktop(environ) is expected
