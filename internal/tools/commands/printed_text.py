"""What a command printed, as text for people, and the address that a server among it names."""

import re

from internal.agent.domain.secrets import mask_secrets

_CONTROLS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_REWRITTEN = re.compile(r"[^\n]*\r(?!\n)")
_ADDRESS = re.compile(
    r"https?://(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\])(?::\d{1,5})?[\w/?=&%#.~+-]*"
)


def printed_text(output: bytes) -> str:
    """Return output without control sequences, rewritten lines and secrets."""
    text = _CONTROLS.sub("", output.decode("utf-8", "replace"))
    return mask_secrets(_REWRITTEN.sub("", text).replace("\r\n", "\n"))


def find_address(output: bytes | bytearray) -> str:
    """Return the first address on the own machine that was printed, "" for none."""
    found = _ADDRESS.search(_CONTROLS.sub("", output.decode("utf-8", "replace")))
    return found[0].rstrip(".") if found else ""
