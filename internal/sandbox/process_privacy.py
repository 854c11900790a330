"""Protection of this process from its children."""

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def deny_process_inspection() -> bool:
    """Deny other processes of the same user access to this process's memory and environment.

    Commands run without isolation could otherwise read API keys in /proc. Return whether the kernel
    supports it: Linux only. Root is never denied.
    """
    if sys.platform != "linux":
        return False
    failed: int = ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return not failed
