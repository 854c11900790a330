"""The content of the logins, encrypted with AES-GCM.

The key is the one of the settings, else one in a file of the home folder, which is created with the
first login. Importing this module takes half a second.
"""

import base64
import binascii
import os
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from internal.agent.domain.secrets import register_secret
from internal.agent.domain.system_errors import describe_system_error
from internal.mcp.definitions import ServerDefinition
from internal.mcp.login.token_file import LoginKey, LoginsUnreadable, SealedLogin, TokenFile
from internal.mcp.private_files import locked, read_json, write_json

KEY_FILE = "mcp-token-key.json"
KEY_SETTING = "mcp.token_key"
KEY_BYTES = 32
_NONCE_BYTES = 12
_MAX_KEY_FILE_BYTES = 1_000


class StoredLogin(msgspec.Struct, frozen=True):
    """A login: tokens, client, and the metadata of the authorization server, as JSON of the SDK.

    `expires_at` is the end of the access token in seconds since 1970, None if it is not known.
    """

    tokens: dict[str, Any]
    client: dict[str, Any]
    metadata: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None
    expires_at: float | None = None

    @property
    def access_token(self) -> str:
        """The access token."""
        return str(self.tokens["access_token"])

    def mask(self, key: LoginKey) -> None:
        """Mask the secrets of this login in everything that is stored, sent or logged."""
        for name, value in (*self.tokens.items(), *self.client.items()):
            if name in {"access_token", "refresh_token", "client_secret"} and value:
                register_secret(value, renewed=f"mcp {key.server} {key.principal} {name}")


class TokenStore:
    """The logins of one server and principal.

    Args:
        file: the file with all logins.
        definition: the server.
        principal: who signs in; "" for all people.
    """

    def __init__(self, file: TokenFile, definition: ServerDefinition, principal: str) -> None:
        self._file = file
        self._key_path = file.path.with_name(KEY_FILE)
        self.key = LoginKey(definition.name, definition.sha256, principal)

    def get(self) -> StoredLogin | None:
        """Return the login, whose secrets are masked from now on; None if there is none. Blocks.

        Raises:
            LoginsUnreadable: it cannot be read, or is encrypted with another key.
        """
        sealed = self._file.find(self.key)
        if sealed is None:
            return None
        found = self._open(sealed, self._read_key())
        found.mask(self.key)
        return found

    def put(self, login: StoredLogin) -> None:
        """Store the login, whose secrets are masked from now on. Blocks.

        Raises:
            LoginsUnreadable: it cannot be stored, or the others are encrypted with another key.
        """
        login.mask(self.key)
        secret = self.check()
        nonce = os.urandom(_NONCE_BYTES)
        content = AESGCM(secret).encrypt(nonce, msgspec.json.encode(login), _encode(self.key))
        sealed = base64.b64encode(nonce + content).decode()
        self._file.replace(SealedLogin(self.key, sealed))

    def check(self) -> bytes:
        """Return the key, after a check that it is the one of all logins. Blocks.

        Raises:
            LoginsUnreadable: it is not, or there is none.
        """
        found = self._file.read()
        secret = self._read_key(create=not found)
        for each in found:
            self._open(each, secret)
        return secret

    def _open(self, login: SealedLogin, secret: bytes) -> StoredLogin:
        try:
            content = base64.b64decode(login.sealed, validate=True)
            nonce, content = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
            opened = AESGCM(secret).decrypt(nonce, content, _encode(login.key))
            return msgspec.json.decode(opened, type=StoredLogin)
        except InvalidTag as error:
            where = f"the setting {KEY_SETTING}" if self._file.token_key else str(self._key_path)
            raise LoginsUnreadable(
                f"{self._file.path} is encrypted with another key than that of {where}; restore the"
                " key, or delete the file and sign in again."
            ) from error
        except ValueError as error:
            raise LoginsUnreadable(
                f"{self._file.path} is damaged; restore it, or delete it and sign in again."
            ) from error

    def _read_key(self, *, create: bool = False) -> bytes:
        """Return the key.

        Raises:
            LoginsUnreadable: there is none, or it is not usable.
        """
        if self._file.token_key:
            return _decode_key(self._file.token_key, f"The setting {KEY_SETTING}")
        try:
            with locked(self._key_path):
                if create and not self._key_path.exists():
                    text = base64.b64encode(os.urandom(KEY_BYTES)).decode()
                    write_json(self._key_path, {"key": text})
            return _decode_key(_read_text(self._key_path), str(self._key_path))
        except FileNotFoundError as error:
            raise LoginsUnreadable(
                f"{self._key_path} is missing, the key of {self._file.path}; restore it, or delete"
                " both files and sign in again."
            ) from error
        except OSError as error:
            reason = describe_system_error(error)
            raise LoginsUnreadable(f"{self._key_path} cannot be used: {reason}") from error


def _encode(key: LoginKey) -> bytes:
    """Return the associated data of a login, which binds it to this key."""
    return msgspec.json.encode(key)


def _read_text(path: Path) -> str:
    try:
        document = read_json(path, _MAX_KEY_FILE_BYTES)
    except ValueError:
        return ""
    return str(document.get("key", "")) if isinstance(document, dict) else ""


def _decode_key(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise LoginsUnreadable(
            f"{where} is not a key of {KEY_BYTES} bytes in base64; `openssl rand -base64"
            f" {KEY_BYTES}` makes one."
        )
    return key
