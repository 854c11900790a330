"""Ids as people write them: whole, or as much of their beginning as tells them apart."""

from collections.abc import Sequence

from internal.channels.cli.client import GatewayError
from internal.channels.cli.render.text import truncate_line

_SHOWN = 60
_WHOLE_ID = 27
"""Characters of an id behind its prefix."""
PREFIXES = ("session-", "task-", "run-")


def find_id(written: str, known: Sequence[str]) -> str:
    """Return the one id that begins so, with its prefix (`session-`) or without.

    Raises:
        HostError: none does, or several do.
    """
    found = [
        one for one in known if one.startswith(written) or without_prefix(one).startswith(written)
    ]
    if len(found) == 1:
        return found[0]
    shown = truncate_line(written, _SHOWN)
    if not found:
        raise GatewayError(f"Nothing here begins with {shown}.")
    raise GatewayError(f"{shown} is not enough: {len(found)} begin with it.")


def is_complete(written: str) -> bool:
    """Say whether an id is written whole: it need not be looked for."""
    return written.startswith(PREFIXES) and len(without_prefix(written)) == _WHOLE_ID


def without_prefix(name: str) -> str:
    """Return an id without its prefix."""
    return name.partition("-")[2]
