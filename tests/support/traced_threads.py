"""Threads that set their trace functions one after the other, on a Python that needs it.

Until Python 3.12, a thread that sets a trace function while another one does so fails. Where an
audit hook is written in Python (filelock's and that of folder_swap.py are), the interpreter may
change threads in between. Under coverage, each new thread sets several trace functions.
"""

import sys
import threading
from types import FrameType
from typing import Any


def trace_in_turn() -> None:
    """Let each thread of this process wait while another one sets its trace function."""
    if sys.version_info >= (3, 12):
        return
    setting, set_trace = threading.RLock(), sys.settrace
    first_trace = threading.gettrace()

    def set_in_turn(function: Any) -> None:
        with setting:
            set_trace(function)

    def begin_in_turn(frame: FrameType, event: Any, argument: object) -> Any:
        assert first_trace is not None
        with setting:
            return first_trace(frame, event, argument)

    sys.settrace = set_in_turn
    if first_trace is not None:  # coverage sets the trace function of a thread at its first call
        threading.settrace(begin_in_turn)
