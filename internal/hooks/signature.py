"""Signatures of https://www.standardwebhooks.com: HMAC-SHA256 over id, time and body.

The libraries of the standard decode the secret as Base64, after `whsec_` or without it. A secret
that does not begin with `whsec_` is signed for twice, which the standard allows: as it is, for
receivers that compare the signature themselves, and with the key that the libraries make of it.
"""

import base64
import binascii
import hashlib
import hmac
import secrets

_PREFIX = "whsec_"
_SECRET_BYTES = 32  # the standard asks for 24 to 64


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature header: one signature for each key, separated by spaces."""
    content = f"{message_id}.{timestamp}.".encode() + body
    digests = [hmac.digest(key, content, hashlib.sha256) for key in _keys(secret)]
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def make_secret() -> str:
    """Return a new secret that all libraries of the standard take."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def suits_libraries(secret: str) -> bool:
    """Return True if all libraries of the standard take the secret as it is.

    The libraries of Python and a few other languages are lenient; most refuse invalid Base64.
    """
    try:
        return bool(base64.b64decode(secret.removeprefix(_PREFIX), validate=True))
    except binascii.Error:
        return False


def _keys(secret: str) -> list[bytes]:
    raw, decoded = secret.encode(), _decode(secret.removeprefix(_PREFIX))
    if not decoded:
        return [raw]
    return [decoded] if secret.startswith(_PREFIX) else [raw, decoded]


def _decode(text: str) -> bytes:
    """Return the key that lenient libraries make of a text, b"" if they make none."""
    try:
        return base64.b64decode(f"{text}==")
    except binascii.Error:
        return b""
