"""The home folder of Larkspur: its token, and the address of the gateway that runs there.

Standard library only: `--version`, `--help` and a one shot through a running gateway import this
and next to nothing else. For the same reason it may look at the environment, as otherwise only
`load.py` does.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_TOKEN_BYTES = 32  # 256 random bits, written as 64 hexadecimal digits
_SHORTEST_TOKEN = 32  # a token put there by hand is not shorter than this
_LARGEST_FILE = 65_536
_WORD = re.compile(r"[!-~]+")
_OURS = {"config.yaml", "token", "gateway.json", "larkspur.db"}
_ELSEWHERE = "set LARKSPUR_HOME to a folder of its own"


class HomeError(Exception):
    """The home folder or a file in it cannot be used. Its text is the sentence for a person."""


class GatewayAddress(NamedTuple):
    """Where a running gateway answers, and which model it runs.

    `started` is the time it became ready, in the words of whoever wrote it. `host` is an address
    that can be connected to, never a wildcard.
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
        """The address as a URL without a closing slash, such as `http://127.0.0.1:8420`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def locate(environ: Mapping[str, str] = os.environ) -> Path:
    """Say where the home folder is, without touching it: `LARKSPUR_HOME`, else `~/.larkspur`.

    The path is absolute.

    Raises:
        HomeError: `LARKSPUR_HOME` is set but blank, or names a person who is not known.
    """
    named = environ.get("LARKSPUR_HOME")
    if named is None:
        return Path("~/.larkspur").expanduser().absolute()
    if not named.strip():
        raise HomeError("LARKSPUR_HOME is set but blank; name a folder or unset it.")
    try:
        return Path(named).expanduser().absolute()
    except RuntimeError:
        raise HomeError(f"LARKSPUR_HOME is {named}, and no such person is known here.") from None


def provider_named(environ: Mapping[str, str] = os.environ) -> str | None:
    """Say which provider the environment names: a one shot asks whether the gateway's will do."""
    return environ.get("LARKSPUR_LLM__PROVIDER")


def prepare(home: Path) -> Path:
    """Make the home folder ready to be written: there, ours, mode 700. Returns it.

    Raises:
        HomeError: it cannot be made, is not a folder, belongs to someone else, cannot be written,
            or is open to others and holds other things than ours (`/tmp`, say: it is not closed).
    """
    try:
        home.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        _close_to_others(home)
    except (FileExistsError, NotADirectoryError):
        raise HomeError(f"The home folder {home} cannot be made: a file is in its place.") from None
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
                f"The home folder {home} holds other things and is open to others; {_ELSEWHERE}."
            )
        home.chmod(PRIVATE_FOLDER)


def ensure_token(home: Path) -> str:
    """Read the local token, making one first where there is none; racing processes get the same.

    Raises:
        HomeError: the token cannot be made, or the one there is refused (see `read_token`).
    """
    path = home / "token"
    if not os.path.lexists(path):
        try:
            _claim(path, os.urandom(_TOKEN_BYTES).hex() + "\n")
        except FileExistsError:
            pass  # another process was first; its token is ours too
        except OSError as error:
            raise HomeError(f"The local token {path} cannot be made: {_reason(error)}.") from None
    return read_token(home)


def read_token(home: Path) -> str:
    """Read the local token of a home folder.

    Raises:
        HomeError: it is missing, blank, too short, not a plain file of ours, or open to others. A
            token that others could read is refused, not repaired: they may know it already.
    """
    path = home / "token"
    text = _read_private(path)
    if text is None:
        raise HomeError(f"There is no local token in {home}; `larkspur serve` makes one.")
    token = text.strip()
    if len(token) < _SHORTEST_TOKEN or not _WORD.fullmatch(token):
        raise HomeError(
            f"The local token {path} is blank or not a token; delete it and a new one is made."
        )
    return token


def write_address(home: Path, address: GatewayAddress) -> None:
    """Store where this gateway answers. A reader sees the whole of it or none.

    Raises:
        HomeError: it cannot be written.
    """
    path = home / "gateway.json"
    draft = _draft_of(path)
    try:
        _write_new(draft, json.dumps({**address._asdict(), "birth": _birth(address.pid)}) + "\n")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise HomeError(
            f"The gateway's address {path} cannot be written: {_reason(error)}."
        ) from None


def remove_address(home: Path, pid: int) -> None:
    """Forget the address that gateway `pid` stored. An address of another process stays.

    Raises:
        HomeError: the stored address is open to other people or not ours.
    """
    address = _parse_address(_read_private(home / "gateway.json") or "")
    if address is not None and address[0].pid == pid:
        (home / "gateway.json").unlink(missing_ok=True)


def find_gateway(home: Path) -> GatewayAddress | None:
    """Find the gateway running in a home folder; None when there is none.

    The process must be alive and the very one that wrote the address: a process that was given the
    same number after a crash does not count, so the token is never handed to a stranger who took
    over the port. Ask `/health` next.

    Raises:
        HomeError: the stored address is open to other people or not ours.
    """
    parsed = _parse_address(_read_private(home / "gateway.json") or "")
    if parsed is None:
        return None
    address, birth = parsed
    return address if _alive(address.pid) and _birth(address.pid) == birth else None


def _parse_address(text: str) -> tuple[GatewayAddress, str] | None:
    """Read an address and its process's birth; None for what `write_address` did not write."""
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


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError, OverflowError):
        return False  # PermissionError: a process of someone else is not our gateway
    return True


def _birth(pid: int) -> str:
    """Say when a live process began, in the kernel's ticks.

    Empty where the kernel does not tell (no /proc) and for a process that ended but was not
    collected by its parent. Fields as in proc(5), counted behind the name, which may hold anything.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _read_private(path: Path) -> str | None:
    """Read a small file that only we may read; None when there is none."""
    try:
        # without blocking on a pipe, and without following a link that someone laid
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HomeError(f"{path} cannot be read: {_reason(error)}.") from None
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise HomeError(f"{path} is not a plain file of yours; delete it and start again.")
        if found.st_mode & _OTHERS:
            mode = stat.S_IMODE(found.st_mode)
            raise HomeError(
                f"{path} is open to other users (mode {mode:o}); delete it and a new one is made."
            )
        return os.read(opened, _LARGEST_FILE).decode("utf-8", errors="replace")
    finally:
        os.close(opened)


def _claim(path: Path, text: str) -> None:
    """Create a file whole, or raise FileExistsError: no reader ever sees it half written."""
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
