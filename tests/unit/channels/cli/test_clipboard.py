"""The picture in the clipboard, read with real programs on the PATH."""

from collections.abc import Callable

import pytest

from internal.channels.cli.clipboard import NoPicture, read_picture

PICTURE = "printf '\\211PNG\\r\\n\\032\\nrest'"
Install = Callable[..., None]


async def test_the_picture_is_read(clipboard: Install) -> None:
    clipboard(PICTURE)
    assert await read_picture() == b"\x89PNG\r\n\x1a\nrest"


async def test_the_next_program_is_asked_if_one_fails(clipboard: Install) -> None:
    clipboard("exit 1", "wl-paste")
    clipboard(PICTURE, "xclip")
    assert (await read_picture()).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 1", "no_picture"),
        ("echo text", "no_picture"),
        (f"{PICTURE}; exit 1", "no_picture"),
        ("head -c 20000001 /dev/zero", "picture_too_large"),
        ("cat /dev/zero", "picture_too_large"),
    ],
)
async def test_what_is_no_picture_is_named(clipboard: Install, script: str, reason: str) -> None:
    clipboard(script)
    with pytest.raises(NoPicture) as nothing:
        await read_picture()
    assert nothing.value.reason == reason


async def test_a_program_that_hangs_is_killed(clipboard: Install) -> None:
    clipboard("exec sleep 1000")
    with pytest.raises(NoPicture, match="clipboard_timeout"):
        await read_picture(0.2)


async def test_a_missing_program_is_named(clipboard: Install) -> None:
    with pytest.raises(NoPicture, match="no_clipboard_program"):
        await read_picture()
