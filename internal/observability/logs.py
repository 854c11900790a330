"""Logs: one line an event on stderr, with its fields, and without any secret."""

import logging
import sys
from collections.abc import Iterable
from typing import TextIO

_KNOWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
HIDDEN = "•••"


class Lines(logging.Formatter):
    """`2026-01-31T08:00:00Z INFO run finished run_id=run-… stop=final_answer`, then a traceback.

    Control characters of a value are escaped: a message cannot forge a line or drive a terminal.
    Whatever is in `secrets` is replaced, wherever it stands.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z")
        self._secrets = [secret for secret in secrets if secret]

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = " ".join(
            f"{key}={_plain(value)}" for key, value in record.__dict__.items() if key not in _KNOWN
        )
        line, newline, traceback = super().format(record).partition("\n")
        text = f"{_escaped(line)} {fields}".rstrip() + newline + traceback
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


def log_to(stream: TextIO = sys.stderr, secrets: Iterable[str] = ()) -> None:
    """Send the log of the whole process to a stream; nothing else writes there.

    Libraries are heard from WARNING on, Larkspur from INFO on.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines(secrets))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("internal").setLevel(logging.INFO)
    logging.getLogger("larkspur").setLevel(logging.INFO)


def _plain(value: object) -> str:
    text = _escaped(str(value))
    return repr(text) if " " in text or not text else text


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)
