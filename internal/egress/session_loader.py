"""Connections for clients that are made before the HTTP stack is imported."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from internal.egress.policy import EgressPolicy

if TYPE_CHECKING:
    from internal.egress.session import HttpSession


def load_sessions(make_policy: Callable[[], EgressPolicy]) -> "Callable[..., HttpSession]":
    """Return `HttpSession` with a policy. Imports aiohttp and reads files: for a thread."""
    from internal.egress.session import HttpSession  # noqa: PLC0415 - imports aiohttp

    return partial(HttpSession, make_policy())
