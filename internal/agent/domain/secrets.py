"""The secrets of this process, and their removal from everything that it stores, sends or logs.

Every secret is registered where it is read or received: by the type of secret settings, by
`ApiKey`, with the local token and with each access token. It is masked where text becomes an error
(`LarkspurError`), an event (`encode_envelope`), a row (the database driver), a line of the log
(`LineFormatter`), the reply of a model or the result of a tool call.

A secret is found unchanged, URL-quoted, escaped for JSON or HTML, and within base64. Values that
are too short, or a word such as `not-needed`, are not masked: that would damage other text.
"""

import base64
import html
import json
import re
from collections import deque
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import TypeVar
from urllib.parse import quote

T = TypeVar("T")

MASK = "•••"
_ENCODED_MASK = MASK.encode()
MIN_SECRET_CHARACTERS = 8
MAX_ROTATED_SECRETS = 3
"""Number of masked values of a renewed secret: the newest ones."""

_WORD = re.compile("[a-z_-]*")
_FIRST_BASE64_CHARACTER = (0, 2, 3)  # the first that depends on the secret alone, by its position


class SecretRegistry:
    """A set of secrets and their encoded forms. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fixed: set[str] = set()
        self._rotated: dict[str, deque[str]] = {}
        self.forms: tuple[str, ...] = ()
        """All forms of all secrets, the longest first."""
        self._encoded: tuple[bytes, ...] = ()
        self._first_characters: frozenset[str] = frozenset()

    def register(self, secret: str, *, renewed: str = "") -> None:
        """Mask a secret from now on.

        Args:
            secret: its value; one that is too short or a word is ignored.
            renewed: the name of a secret that changes while the process runs. Only its newest
                `MAX_ROTATED_SECRETS` values are masked.
        """
        if len(secret) < MIN_SECRET_CHARACTERS or _WORD.fullmatch(secret):
            return
        with self._lock:
            if not renewed:
                self._fixed.add(secret)
            elif secret not in self._rotated.setdefault(renewed, deque(maxlen=MAX_ROTATED_SECRETS)):
                self._rotated[renewed].append(secret)
            values = self._fixed.union(*self._rotated.values())
            self._replace_forms({form for value in values for form in _forms(value)})

    def clear(self) -> None:
        """Forget all secrets."""
        with self._lock:
            self._fixed.clear()
            self._rotated.clear()
            self._replace_forms(set())

    def _replace_forms(self, forms: set[str]) -> None:
        self.forms = tuple(sorted(forms, key=len, reverse=True))
        self._encoded = tuple(form.encode() for form in self.forms)
        self._first_characters = frozenset(form[0] for form in forms)

    def mask(self, text: str) -> str:
        """Return the text with every secret replaced."""
        for form in self.forms:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def mask_values(self, values: Sequence[T]) -> Sequence[T | str]:
        """Return the values with every secret in a text replaced.

        The texts are searched together, which takes a fraction of the time.
        """
        text = "\0".join([value for value in values if isinstance(value, str)])
        for form in self.forms:
            if form in text:
                return [self.mask(value) if isinstance(value, str) else value for value in values]
        return values

    def unfinished_length(self, text: str) -> int:
        """Return how many characters at the end of a text may be the start of a secret."""
        if not self.forms:
            return 0
        for start in range(max(0, len(text) - len(self.forms[0]) + 1), len(text)):
            if text[start] in self._first_characters:
                tail = text[start:]
                if any(form.startswith(tail) for form in self.forms):
                    return len(tail)
        return 0

    def mask_bytes(self, data: bytes) -> bytes:
        """Return UTF-8 text with every secret replaced."""
        for form in self._encoded:
            if form in data:
                data = data.replace(form, _ENCODED_MASK)
        return data


_registry = SecretRegistry()
register_secret = _registry.register
clear_secrets = _registry.clear
mask_secrets = _registry.mask
mask_secrets_in_values = _registry.mask_values
mask_secrets_in_json = _registry.mask_bytes


class StreamMask:
    """Masks the secrets in text that arrives in pieces, also a secret that two pieces share."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Take a piece and return the text that is certain; the start of a secret is held back."""
        masked = _registry.mask(self._held + text)
        certain = len(masked) - _registry.unfinished_length(masked)
        self._held = masked[certain:]
        return masked[:certain]

    def flush(self) -> str:
        """Return the text that was held back: nothing follows it."""
        held, self._held = self._held, ""
        return held


def _forms(secret: str) -> Iterable[str]:
    escaped = json.dumps(secret)[1:-1]
    yield from (secret, quote(secret, safe=""), quote(secret), html.escape(secret))
    yield from (escaped, json.dumps(escaped)[1:-1], escaped.replace("/", "\\/"))
    for offset, first in enumerate(_FIRST_BASE64_CHARACTER):
        padded = b"\0" * offset + secret.encode()
        complete = len(padded) * 8 // 6  # the character after these depends on the following bytes
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(padded).decode()[first:complete]
