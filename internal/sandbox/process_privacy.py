"""Closing this process to its children: what it was started with is not theirs to read."""

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def close_to_children() -> bool:
    """Keep other processes of the same user out of our memory and our environment.

    Tools that run unisolated could read our keys in /proc otherwise. Says whether the kernel did
    so; only Linux can, and root may look anyway.
    """
    if sys.platform != "linux":
        return False
    failed: int = ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return not failed
