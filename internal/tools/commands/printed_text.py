"""Output of a command as text for people, and the address of a server in it."""

import re

from internal.agent.domain.secrets import mask_secrets
from internal.terminal_screen.screen import screen_text
from internal.text_encodings.conversion import decode

_ADDRESS = re.compile(
    r"https?://(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\])(?::\d{1,5})?[\w/?=&%#.~+-]*"
)


def printed_text(output: bytes) -> str:
    """Return output as a terminal shows it in the end, without secrets."""
    return mask_secrets(screen_text(decode(output)[0]))


def find_address(output: bytes | bytearray) -> str:
    """Return the first address on the own machine in an output, "" if there is none."""
    found = _ADDRESS.search(screen_text(output.decode("utf-8", "replace")))
    return found[0].rstrip(".") if found else ""
