"""The file with the logins: who has signed in to which server, and the encrypted tokens."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.system_errors import describe_system_error
from internal.mcp.private_files import locked, read_json, write_json

TOKENS_FILE = "mcp-tokens.json"
_MAX_FILE_BYTES = 40_000_000


class LoginsUnreadable(LarkspurError):
    """The file with the logins, or its key, cannot be used. The message is a sentence."""


class LoginKey(msgspec.Struct, frozen=True):
    """Key of a login: a server with a definition, and a principal; "" for all people."""

    server: str
    definition: str
    principal: str


class SealedLogin(msgspec.Struct, frozen=True):
    """A stored login. `sealed` is base64."""

    key: LoginKey
    sealed: str


class TokenFile:
    """The logins in the home folder. Other processes may change them at any time.

    Args:
        home: the home folder.
        token_key: the key of the settings, 32 bytes as base64; "" for one in a file.
    """

    def __init__(self, home: Path, token_key: str = "") -> None:
        self.path = home / TOKENS_FILE
        self.token_key = token_key

    def read(self) -> list[SealedLogin]:
        """Return all logins.

        Raises:
            LoginsUnreadable: the file cannot be read, or is damaged.
        """
        try:
            document = read_json(self.path, _MAX_FILE_BYTES)
            return msgspec.convert(document, dict[str, list[SealedLogin]])["logins"]
        except FileNotFoundError:
            return []
        except OSError as error:
            reason = describe_system_error(error)
            raise LoginsUnreadable(f"{self.path} cannot be read: {reason}") from error
        except (ValueError, LookupError) as error:
            raise LoginsUnreadable(
                f"{self.path} is damaged; restore it, or delete it and sign in again."
            ) from error

    def find(self, key: LoginKey) -> SealedLogin | None:
        """Return a login; None if there is none.

        Raises:
            LoginsUnreadable: as for `read`.
        """
        return next((each for each in self.read() if each.key == key), None)

    def replace(self, login: SealedLogin) -> None:
        """Store a login; another one of this principal at this server is removed.

        Raises:
            LoginsUnreadable: the file cannot be read or written; it is not changed.
        """
        self._change(login.key.server, login.key.principal, [login])

    def remove(self, server: str, principal: str | None = None) -> bool:
        """Remove a login, or all of a server. Return False if there was none.

        Raises:
            LoginsUnreadable: as for `replace`.
        """
        return self._change(server, principal, [])

    def _change(self, server: str, principal: str | None, added: list[SealedLogin]) -> bool:
        try:
            with locked(self.path):
                found = self.read()
                kept = [
                    each
                    for each in found
                    if each.key.server != server or principal not in {None, each.key.principal}
                ]
                if len(kept) == len(found) and not added:
                    return False
                write_json(self.path, msgspec.to_builtins({"logins": [*kept, *added]}))
        except OSError as error:
            reason = describe_system_error(error)
            raise LoginsUnreadable(f"{self.path} cannot be written: {reason}") from error
        return True


class ServerLogin(NamedTuple):
    """The principal that signs in to a server ("" for all people), and the file with the login."""

    file: TokenFile
    principal: str
