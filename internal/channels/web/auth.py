"""Browser logins: one-time codes, and the secrets that they are exchanged for.

A login has a cookie, which is a random value of 256 bits, and a login key. Browsers send the cookie
to every port of the host, so that another server can learn it; the key is known to the pages of one
origin only, and both are required. The key is the HMAC of origin and cookie, and only another HMAC
of the cookie is stored. Both are keyed with the local token: the file contains nothing that logs
in, and a new local token ends all logins.
"""

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

CODE_TTL_SECONDS = 300.0
MAX_CODES = 16
MAX_FAILED_ATTEMPTS = 10
ATTEMPT_RECOVERY_SECONDS = 6.0
"""A failed attempt is forgiven after this time; above `MAX_FAILED_ATTEMPTS` codes fail."""
LOGIN_TTL_SECONDS = 30 * 86_400
MAX_LOGINS = 200
_FILE_MODE = 0o600


class OneTimeCodes:
    """Codes that each log in one browser, once, within five minutes."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._expiry: dict[str, float] = {}
        self._failed = 0.0
        self._failed_at = monotonic()

    def issue(self) -> str:
        """Return a new code. Beyond `MAX_CODES` unused codes the oldest are revoked."""
        code = secrets.token_urlsafe(16)
        self._expiry[code] = self._monotonic() + CODE_TTL_SECONDS
        for old in list(self._expiry)[:-MAX_CODES]:
            del self._expiry[old]
        return code

    def retry_after(self) -> float:
        """Return for how many seconds codes are rejected after too many failed attempts."""
        now = self._monotonic()
        recovered = (now - self._failed_at) / ATTEMPT_RECOVERY_SECONDS
        self._failed = max(0.0, self._failed - recovered)
        self._failed_at = now
        return max(0.0, self._failed + 1 - MAX_FAILED_ATTEMPTS) * ATTEMPT_RECOVERY_SECONDS

    def redeem(self, code: str) -> bool:
        """Use up a code. Return False if it is unknown, used or expired."""
        is_valid = self._expiry.pop(code, 0.0) > self._monotonic()
        self._failed += not is_valid
        return is_valid


def token_id(token: str) -> str:
    """Return a value that identifies a local token and does not reveal it."""
    return _hmac(token, "token")


def _login_id(token: str, cookie: str) -> str:
    return _hmac(token, f"login {cookie}")


def _login_key(token: str, cookie: str, origin: str) -> str:
    return _hmac(token, f"key {origin} {cookie}")


def _hmac(token: str, text: str) -> str:
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


class LoginSecrets(NamedTuple):
    """The secrets of a login: `cookie` for the browser, `key` for the pages of one origin."""

    cookie: str
    key: str


class Logins:
    """The valid logins, stored in a file or, without a path, in memory."""

    def __init__(self, path: Path | None = None, now: Callable[[], float] = time.time) -> None:
        self.codes = OneTimeCodes()
        self._path = path
        self._now = now
        self._expiry = self._read()

    def create(self, token: str, origin: str) -> LoginSecrets:
        """Log in the local owner, who has this token, for 30 days on the pages of an origin.

        Raises:
            OSError: The login cannot be stored.
        """
        cookie = secrets.token_urlsafe(32)
        now = self._now()
        valid = {login_id: expiry for login_id, expiry in self._expiry.items() if expiry > now}
        for old in sorted(valid, key=valid.__getitem__)[: max(0, len(valid) - MAX_LOGINS + 1)]:
            del valid[old]
        self._store({**valid, _login_id(token, cookie): now + LOGIN_TTL_SECONDS})
        return LoginSecrets(cookie, _login_key(token, cookie, origin))

    def find(self, sent: LoginSecrets, token: str, origin: str) -> str | None:
        """Return the ID of the login with these secrets, None unless both are valid."""
        login_id, key = _login_id(token, sent.cookie), _login_key(token, sent.cookie, origin)
        has_key = hmac.compare_digest(key.encode(), sent.key.encode())
        return login_id if has_key and self.is_valid(login_id) else None

    def is_valid(self, login_id: str) -> bool:
        """Return True if the login exists and has not expired."""
        return self._expiry.get(login_id, 0.0) > self._now()

    def revoke(self, login_id: str) -> None:
        """End a login.

        Raises:
            OSError: The change cannot be stored; it lasts until the next start only.
        """
        if self._expiry.pop(login_id, None) is not None:
            self._store(self._expiry)

    def _store(self, expiry: dict[str, float]) -> None:
        if self._path is not None:
            draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            descriptor = os.open(draft, flags, _FILE_MODE)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                json.dump(expiry, file)
            draft.replace(self._path)
        self._expiry = expiry

    def _read(self) -> dict[str, float]:
        """Return the stored logins; an unreadable file means none."""
        if self._path is None:
            return {}
        try:
            stored = json.loads(self._path.read_text(encoding="ascii"))
        except (OSError, ValueError, RecursionError):
            return {}
        pairs = stored.items() if isinstance(stored, dict) else ()
        return {
            login_id: float(expiry) for login_id, expiry in pairs if isinstance(expiry, int | float)
        }
