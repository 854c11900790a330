"""Logging to a stream: one line per event with its fields, without secrets."""

import logging
import sys
import threading
from typing import TextIO

from internal.agent.domain.secrets import mask_secrets

_STANDARD_FIELDS = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
}


class LineFormatter(logging.Formatter):
    """Formats `2026-01-31T08:00:00Z INFO run finished run_id=run-… stop=final_answer`.

    A traceback follows on further lines. Control characters in messages and values are escaped, so
    that a value cannot forge a line or control a terminal. Every secret is masked.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and the traceback when there is one."""
        fields = " ".join(
            f"{key}={_format_value(value)}"
            for key, value in record.__dict__.items()
            if key not in _STANDARD_FIELDS
        )
        line, newline, traceback = super().format(record).partition("\n")
        return mask_secrets(f"{_escape(line)} {fields}".rstrip() + newline + traceback)


def configure_logging(stream: TextIO = sys.stderr) -> None:
    """Send the log of the process to a stream: Larkspur from INFO on, libraries from WARNING on.

    Replaces all handlers of the root logger. Exceptions that end a thread are logged.
    """
    threading.excepthook = _log_thread_exception
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("internal").setLevel(logging.INFO)
    logging.getLogger("larkspur").setLevel(logging.INFO)


def _log_thread_exception(failure: threading.ExceptHookArgs) -> None:
    error = failure.exc_value
    name = "" if failure.thread is None else failure.thread.name
    logging.getLogger(__name__).error("thread ended", exc_info=error, extra={"ended": name})


def _format_value(value: object) -> str:
    text = _escape(str(value))
    return repr(text) if " " in text or not text else text


def _escape(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
