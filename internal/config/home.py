"""The home folder of Larkspur: the local token and the address of the running gateway.

Standard library only, as its one import is: `--version`, `--help` and a one-shot command through a
running gateway import little else. For the same reason this module may read the environment.
"""

import json
import os
import pwd
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from internal.config.process_start import find_start

SETTINGS_FILE = "settings.json"
PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Valid names of profiles; the file in `profiles/` has this name and the ending .yaml."""
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_TOKEN_BYTES = 32  # 256 random bits, written as 64 hexadecimal digits
_MIN_TOKEN_CHARACTERS = 32  # the minimum, also for a token that was written by hand
_MAX_FILE_BYTES = 65_536
_WORD = re.compile(r"[!-~]+")
_OURS = {"config.yaml", "settings.json", "token", "gateway.json", "larkspur.db"}
_ELSEWHERE = "set LARKSPUR_HOME to a dedicated folder"


class HomeError(Exception):
    """The home folder or a file in it cannot be used. The text is a sentence for people."""


class GatewayAddress(NamedTuple):
    """The address of a running gateway, and the model it runs.

    `started` is the time at which it became ready. `host` is an address that can be connected to,
    never a wildcard.
    """

    host: str
    port: int
    pid: int
    started: str
    provider: str
    model: str
    version: str

    @property
    def url(self) -> str:
        """The address as a URL without a trailing slash, such as `http://127.0.0.1:8420`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def locate(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the absolute path of the home folder: `LARKSPUR_HOME`, else `~/.larkspur`.

    Programs that start others with few variables may leave out `HOME`, or leave it blank: then `~`
    is the folder of the user in the password database. The home folder is not touched.

    Raises:
        HomeError: `LARKSPUR_HOME` is blank or names an unknown user, or the user has no folder.
    """
    named = environ.get("LARKSPUR_HOME")
    if named is None:
        return _user_folder() / ".larkspur"
    if not named.strip():
        raise HomeError("LARKSPUR_HOME is blank; set it to a folder or unset it.")
    try:
        return Path(named).expanduser().absolute()
    except RuntimeError:
        raise HomeError(f"LARKSPUR_HOME is {named}, but there is no such user.") from None


def _user_folder() -> Path:
    given = os.environ.get("HOME", "")
    if given.startswith("/"):
        return Path(given)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir).absolute()
    except KeyError:
        raise HomeError(
            f"The user {os.getuid()} has no folder; set LARKSPUR_HOME to one."
        ) from None


def origin(environ: Mapping[str, str] = os.environ) -> str:
    """Return the source of the home folder's path: a variable, or the user."""
    if "LARKSPUR_HOME" in environ:
        return "LARKSPUR_HOME"
    return "HOME" if os.environ.get("HOME", "").startswith("/") else "the folder of the user"


def find_home_in(folder: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the home folder of Larkspur, or else of the user, if a folder is or contains it.

    Folders are compared by device and inode. None if it contains neither.

    Raises:
        HomeError: as for `locate`.
    """
    wanted = Path(folder)
    for home in (locate(environ), Path(os.path.expanduser("~"))):  # noqa: PTH111 - never raises
        resolved = home.resolve()
        if any(each.exists() and each.samefile(wanted) for each in (resolved, *resolved.parents)):
            return home
    return None


def provider_named(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the model provider that the environment names, or None."""
    return environ.get("LARKSPUR_LLM__PROVIDER")


def prepare(home: Path) -> Path:
    """Create the home folder if necessary, with mode 700, and return it.

    Raises:
        HomeError: it cannot be created, is not a folder, belongs to another user, is not
            writable, or is open to other users and contains other files (such as `/tmp`).
    """
    try:
        home.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        _close_to_others(home)
    except (FileExistsError, NotADirectoryError):
        raise HomeError(
            f"The home folder {home} cannot be created: a file with this name exists."
        ) from None
    except OSError as error:
        raise HomeError(f"The home folder {home} cannot be used: {_reason(error)}.") from None
    if not os.access(home, os.W_OK | os.X_OK, effective_ids=True):
        raise HomeError(f"The home folder {home} cannot be written; {_ELSEWHERE}.")
    return home


def _close_to_others(home: Path) -> None:
    found = home.stat()
    if found.st_uid != os.geteuid():
        raise HomeError(f"The home folder {home} belongs to another user; {_ELSEWHERE}.")
    if found.st_mode & _OTHERS:
        names = {entry.name for entry in home.iterdir()}
        if names and not names & _OURS:
            raise HomeError(
                f"The home folder {home} contains other files and is accessible to other users;"
                f" {_ELSEWHERE}."
            )
        home.chmod(PRIVATE_FOLDER)


def ensure_token(home: Path) -> str:
    """Return the local token; create it if there is none. Concurrent processes get the same one.

    Raises:
        HomeError: the token cannot be created, or is rejected (see `read_token`).
    """
    path = home / "token"
    if not os.path.lexists(path):
        try:
            _claim(path, os.urandom(_TOKEN_BYTES).hex() + "\n")
        except FileExistsError:
            pass  # another process created it first
        except OSError as error:
            raise HomeError(
                f"The local token {path} cannot be created: {_reason(error)}."
            ) from None
    return read_token(home)


def read_token(home: Path) -> str:
    """Return the local token of a home folder.

    Raises:
        HomeError: it is missing, blank, too short, not a regular file of this user, or readable by
            others. A token that others could read may be known to them, so it is not repaired.
    """
    path = home / "token"
    text = _read_private(path)
    if text is None:
        raise HomeError(f"There is no local token in {home}; `larkspur serve` creates one.")
    token = text.strip()
    if len(token) < _MIN_TOKEN_CHARACTERS or not _WORD.fullmatch(token):
        raise HomeError(
            f"The local token {path} is blank or malformed; delete it to have a new one created."
        )
    return token


class LocalToken:
    """The local token of a home folder, also after its file was replaced.

    `on_change` is called with each new token before it is returned for the first time.
    """

    def __init__(self, home: Path, on_change: Callable[[str], None] = lambda _token: None) -> None:
        self._home = home
        self._on_change = on_change
        self._token = ""
        self._version: tuple[int, ...] = ()

    def read(self) -> str:
        """Return the token that the file contains now; it is opened only after it has changed.

        Raises:
            HomeError: see `read_token`. A token that was read before is not used anymore.
        """
        version = _version_of(self._home / "token")
        if version == () or version != self._version:
            self._version = ()
            self._token = read_token(self._home)
            self._on_change(self._token)
            self._version = version
        return self._token


def write_address(home: Path, address: GatewayAddress) -> None:
    """Store the address of this gateway atomically.

    Raises:
        HomeError: the file cannot be written.
    """
    stored = {**address._asdict(), "birth": find_start(address.pid) or ""}
    replace_private(home / "gateway.json", json.dumps(stored) + "\n")


def read_stored_settings(home: Path) -> dict[str, Any]:
    """Return the settings that were made on the page or at the first start, nested by section.

    Raises:
        HomeError: the file is not one that `write_stored_settings` wrote, or is not private.
    """
    text = _read_private(home / SETTINGS_FILE)
    try:
        stored = json.loads(text or "{}")
    except (ValueError, RecursionError):
        stored = None
    if not isinstance(stored, dict):
        raise HomeError(f"{home / SETTINGS_FILE} is not a JSON object; correct it or delete it.")
    return stored


def write_stored_settings(home: Path, settings: Mapping[str, Any]) -> Path:
    """Replace the stored settings atomically, with mode 600, and return the path of the file.

    Raises:
        HomeError: the file cannot be written.
    """
    path = prepare(home) / SETTINGS_FILE
    replace_private(path, json.dumps(settings, ensure_ascii=False, indent=2) + "\n")
    return path


def replace_private(path: Path, text: str) -> None:
    """Replace a file atomically by one that only this user may read.

    Raises:
        HomeError: it cannot be written.
    """
    draft = _draft_of(path)
    try:
        _write_new(draft, text)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise HomeError(f"{path} cannot be written: {_reason(error)}.") from None


def is_unused(home: Path) -> bool:
    """Return True if the folder has neither settings nor a database, or does not exist."""
    names = ("config.yaml", SETTINGS_FILE, "larkspur.db")
    return not any(os.path.lexists(home / name) for name in names)


def remove_address(home: Path, pid: int) -> None:
    """Remove the address that gateway `pid` stored. An address of another process is kept.

    Raises:
        HomeError: the file is accessible to other users or belongs to another user.
    """
    address = _parse_address(_read_private(home / "gateway.json") or "")
    if address is not None and address[0].pid == pid:
        (home / "gateway.json").unlink(missing_ok=True)


def find_gateway(home: Path) -> GatewayAddress | None:
    """Return the address of the gateway that runs in a home folder, or None.

    The process must be the one that wrote the address: a process that reuses its pid after a crash
    does not count, so the token is never sent to another program that took the port. Ask `/health`
    next.

    Raises:
        HomeError: the file is accessible to other users or belongs to another user.
    """
    parsed = _parse_address(_read_private(home / "gateway.json") or "")
    if parsed is None:
        return None
    address, birth = parsed
    return address if find_start(address.pid) == birth != "" else None


def _parse_address(text: str) -> tuple[GatewayAddress, str] | None:
    """Return an address and the start time of its process, None if the content is invalid."""
    try:
        stored = json.loads(text)
        birth = stored.pop("birth")
        address = GatewayAddress(**stored)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
    sound = all(
        type(found) is kind
        for found, kind in zip(address, GatewayAddress.__annotations__.values(), strict=True)
    )
    return (address, birth) if sound and isinstance(birth, str) and address.pid > 0 else None


def _version_of(path: Path) -> tuple[int, ...]:
    """Return numbers that change with a file or its permissions; none if they are unknown."""
    try:
        found = path.lstat()
    except OSError:
        return ()
    return (
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_uid,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _read_private(path: Path) -> str | None:
    """Return the content of a small file that only this user may read, or None if it is missing."""
    try:
        # must not block on a pipe or follow a symbolic link
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HomeError(f"{path} cannot be read: {_reason(error)}.") from None
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise HomeError(
                f"{path} is not a regular file owned by you; delete it and start again."
            )
        if found.st_mode & _OTHERS:
            mode = stat.S_IMODE(found.st_mode)
            raise HomeError(
                f"{path} is accessible to other users (mode {mode:o});"
                " delete it to have a new one created."
            )
        return os.read(opened, _MAX_FILE_BYTES).decode("utf-8", errors="replace")
    finally:
        os.close(opened)


def _claim(path: Path, text: str) -> None:
    """Create a file atomically, or raise FileExistsError."""
    draft = _draft_of(path)
    try:
        _write_new(draft, text)
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")


def _write_new(path: Path, text: str) -> None:
    opened = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE
    )
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(opened)


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
