"""Browser logins: one-time codes, and the secrets that they are exchanged for.

A login has a cookie, which is a random value of 256 bits, and a login key. Browsers send the cookie
to every port of the host, so that another server can learn it; the key is known to the pages of one
origin only, and both are required. The key is the HMAC of origin and cookie, and only another HMAC
of the cookie is stored. Both are keyed with the local token: the file contains nothing that logs
in, and a new local token ends all logins.

Gateways with the same home folder share codes and logins: behind a proxy, a browser may open the
link of one gateway at another.
"""

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

CODE_TTL_SECONDS = 300.0
MAX_CODES = 16
LOGIN_TTL_SECONDS = 30 * 86_400
MAX_LOGINS = 200
COOKIE_CHARACTERS = 43
"""The length of a login cookie: 32 bytes in base64."""
_FILE_MODE = 0o600


class ExpiringNames:
    """Names that are valid for some time: in a file for several processes, or in memory.

    Args:
        path: the file, replaced with each change; None: in memory.
        now: seconds since 1970.
        limit: beyond it, the names that expire first are removed.
    """

    def __init__(self, path: Path | None, now: Callable[[], float], limit: int) -> None:
        self._path = path
        self._now = now
        self._limit = limit
        self._expiry: dict[str, float] = {}
        self._version: tuple[int, ...] = ()

    def __contains__(self, name: str) -> bool:
        """Return True if the name is valid."""
        return self._read().get(name, 0.0) > self._now()

    def add(self, name: str, seconds: float) -> None:
        """Make a name valid for some time.

        Raises:
            OSError: It cannot be stored and is not valid.
        """
        with self._lock():
            now = self._now()
            valid = {each: expiry for each, expiry in self._read().items() if expiry > now}
            for old in sorted(valid, key=valid.__getitem__)[: max(0, len(valid) - self._limit + 1)]:
                del valid[old]
            self._expiry = self._stored({**valid, name: now + seconds})

    def remove(self, name: str) -> bool:
        """Remove a name. Return True if it was valid, for one caller only.

        Raises:
            OSError: The change cannot be stored; it lasts until the next one or the next start.
        """
        with self._lock():
            rest = dict(self._read())
            expiry = rest.pop(name, None)
            if expiry is None:
                return False
            self._expiry = rest
            self._stored(rest)
            return expiry > self._now()

    @contextlib.contextmanager
    def _lock(self) -> Generator[None]:
        """Keep other processes from changing the file; they wait for one write at most."""
        if self._path is None:
            yield
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path.with_name(f".{self._path.name}.lock"), flags, _FILE_MODE)
        try:
            with contextlib.suppress(OSError):  # a file system without locks: the last change wins
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _stored(self, expiry: dict[str, float]) -> dict[str, float]:
        if self._path is not None:
            draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            descriptor = os.open(draft, flags, _FILE_MODE)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                json.dump(expiry, file)
            draft.replace(self._path)
            self._version = _version_of(self._path)
        return expiry

    def _read(self) -> dict[str, float]:
        """Return the stored names. An unreadable file has none; a changed one is read again."""
        if self._path is None or (version := _version_of(self._path)) == self._version:
            return self._expiry
        self._version = version
        try:
            stored = json.loads(self._path.read_text(encoding="ascii"))
        except (OSError, ValueError, RecursionError):
            stored = None
        pairs = stored.items() if isinstance(stored, dict) else ()
        self._expiry = {
            name: float(expiry) for name, expiry in pairs if isinstance(expiry, int | float)
        }
        return self._expiry


def _version_of(path: Path) -> tuple[int, ...]:
    """Return numbers that change when a file is replaced; none if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size


class OneTimeCodes:
    """Codes that each log in one browser, once, within five minutes. Only hashes are stored.

    A code has 128 bits: attempts to guess one need no limit, which would lock out everybody.
    """

    def __init__(self, path: Path | None = None, now: Callable[[], float] = time.time) -> None:
        self._codes = ExpiringNames(path, now, MAX_CODES)

    def issue(self) -> str:
        """Return a new code. Beyond `MAX_CODES` unused codes the oldest are revoked.

        Raises:
            OSError: It cannot be stored.
        """
        code = secrets.token_urlsafe(16)
        self._codes.add(_hash_of(code), CODE_TTL_SECONDS)
        return code

    def redeem(self, code: str) -> bool:
        """Use up a code. Return False if it is unknown, used or expired.

        Raises:
            OSError: It cannot be used up.
        """
        return self._codes.remove(_hash_of(code))


def _hash_of(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


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
    """The valid logins and codes: in two files of the home folder or, without one, in memory.

    Attributes:
        codes: The codes that log in.
    """

    def __init__(self, folder: Path | None = None, now: Callable[[], float] = time.time) -> None:
        self.codes = OneTimeCodes(folder and folder / "login-codes.json", now)
        self._logins = ExpiringNames(folder and folder / "logins.json", now, MAX_LOGINS)

    def create(self, token: str, origin: str) -> LoginSecrets:
        """Log in the local owner, who has this token, for 30 days on the pages of an origin.

        Raises:
            OSError: The login cannot be stored.
        """
        cookie = secrets.token_urlsafe(32)
        self._logins.add(_login_id(token, cookie), LOGIN_TTL_SECONDS)
        return LoginSecrets(cookie, _login_key(token, cookie, origin))

    def find(self, sent: LoginSecrets, token: str, origin: str) -> str | None:
        """Return the ID of the login with these secrets, None unless both are valid."""
        login_id, key = _login_id(token, sent.cookie), _login_key(token, sent.cookie, origin)
        has_key = hmac.compare_digest(key.encode(), sent.key.encode())
        return login_id if has_key and self.is_valid(login_id) else None

    def is_valid(self, login_id: str) -> bool:
        """Return True if the login exists and has not expired."""
        return login_id in self._logins

    def revoke(self, login_id: str) -> None:
        """End a login.

        Raises:
            OSError: The change cannot be stored; it lasts until the next start only.
        """
        self._logins.remove(login_id)
