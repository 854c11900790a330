"""Logins: one-time codes that become cookies, and the cookies that are good.

A cookie is 256 random bits. Kept of it is a hash keyed with the local token: neither the file nor a
new token lets an old cookie in, a restart logs nobody out, and a logout ends one login alone.
"""

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

CODE_SECONDS = 300.0
MOST_TRIES = 10
TRY_SECONDS = 6.0
"""So long a wrong code takes to be forgiven; after `MOST_TRIES` of them none is looked at."""
LOGIN_SECONDS = 30 * 86_400
MOST_CODES = 16
MOST_LOGINS = 200
_PRIVATE = 0o600


class OneTimeCodes:
    """Codes that each let one browser in, once, for five minutes."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[str, float] = {}
        self._wrong = 0.0
        self._since = monotonic()

    def issue(self) -> str:
        """Make a code; of too many unused ones the oldest stop being good."""
        code = secrets.token_urlsafe(16)
        self._until[code] = self._monotonic() + CODE_SECONDS
        for old in list(self._until)[:-MOST_CODES]:
            del self._until[old]
        return code

    def wait(self) -> float:
        """Return how many seconds no code is looked at, because too many were wrong."""
        now = self._monotonic()
        self._wrong = max(0.0, self._wrong - (now - self._since) / TRY_SECONDS)
        self._since = now
        return max(0.0, self._wrong + 1 - MOST_TRIES) * TRY_SECONDS

    def take(self, code: str) -> bool:
        """Use a code up; False for one that was never made, was used, or is too old."""
        good = self._until.pop(code, 0.0) > self._monotonic()
        self._wrong += not good
        return good


class Logins:
    """The logins that are good, in a file of ours or, without a path, in memory."""

    def __init__(
        self, token: str, path: Path | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.codes = OneTimeCodes()
        self._key = token.encode()
        self._path = path
        self._now = now
        self._until = self._read()

    def begin(self) -> str:
        """Make a cookie's value for the owner of the local token, good for 30 days.

        Raises:
            OSError: the login cannot be stored.
        """
        value = secrets.token_urlsafe(32)
        now = self._now()
        good = {name: until for name, until in self._until.items() if until > now}
        for old in sorted(good, key=good.__getitem__)[: max(0, len(good) - MOST_LOGINS + 1)]:
            del good[old]
        self._keep({**good, self.name(value): now + LOGIN_SECONDS})
        return value

    def name(self, value: str) -> str:
        """Return the name under which a cookie's value is kept."""
        return hmac.new(self._key, value.encode(), hashlib.sha256).hexdigest()

    def good(self, name: str) -> bool:
        """Say whether a login has begun and neither ended nor grown too old."""
        return self._until.get(name, 0.0) > self._now()

    def end(self, name: str) -> None:
        """End a login.

        Raises:
            OSError: the end cannot be stored; until the next start it holds all the same.
        """
        if self._until.pop(name, None) is not None:
            self._keep(self._until)

    def _keep(self, until: dict[str, float]) -> None:
        if self._path is not None:
            draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _PRIVATE)
            with os.fdopen(opened, "w", encoding="ascii") as file:
                json.dump(until, file)
            draft.replace(self._path)
        self._until = until

    def _read(self) -> dict[str, float]:
        """Read what is kept; a file that is no such list lets nobody in."""
        if self._path is None:
            return {}
        try:
            kept = json.loads(self._path.read_text(encoding="ascii"))
        except (OSError, ValueError, RecursionError):
            return {}
        pairs = kept.items() if isinstance(kept, dict) else ()
        return {name: float(until) for name, until in pairs if isinstance(until, int | float)}
