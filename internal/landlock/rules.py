"""Rulesets of Landlock (landlock(7), https://docs.kernel.org/userspace-api/landlock.html).

This process creates a ruleset, which needs no privilege and restricts nothing. The command gets its
descriptor and restricts itself with it.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from typing import NamedTuple

from internal.open_files.paths import open_without_links

MIN_VERSION = 6
"""The first version (Linux 6.12) that keeps signals and abstract sockets inside as well."""

# The same on all processors but Alpha.
_CREATE_RULESET = 444
_ADD_RULE = 445
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_TRUNCATE = 1 << 14
_MAKE_CHAR = 1 << 6
_MAKE_BLOCK = 1 << 11
_IOCTL_DEV = 1 << 15
_ALL = (1 << 16) - 1
_ALL_TCP = 0b11
_ALL_SCOPES = 0b11

_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Number of rights for files in the versions before `_WITH_DEVICES`."""
_WITH_NETWORK, _WITH_DEVICES = 4, 5

LOOK = _READ_FILE | _READ_DIR
READ = _EXECUTE | LOOK
WRITE = _ALL & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE


def supported_version() -> int:
    """Return the version of Landlock that the kernel offers; 0 if it offers none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_CREATE_RULESET, None, 0, _VERSION_FLAG))


class LandlockRule(NamedTuple):
    """The rights on a file, or on everything below a folder: `READ`, `WRITE` or both.

    The path is absolute. If it is exact, it passes no symbolic link.
    """

    path: str
    rights: int
    is_exact: bool = False


def create_ruleset(rules: Iterable[LandlockRule], version: int = MIN_VERSION) -> int:
    """Return the descriptor of a new ruleset: everything is denied unless a rule allows it.

    Rules for paths that do not exist are ignored. Versions below `MIN_VERSION` restrict less:
    versions below 4 restrict only files.

    Raises:
        OSError: the kernel refuses it; ELOOP or ENOTDIR for an exact path with a symbolic link.
    """
    files = _ALL if version >= _WITH_DEVICES else (1 << _FILE_RIGHTS[version]) - 1
    fields = (files, _ALL_TCP, _ALL_SCOPES)[
        : 1 + (version >= _WITH_NETWORK) + (version >= MIN_VERSION)
    ]
    handled = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _call(_CREATE_RULESET, handled, len(handled), 0)
    if ruleset < 0:
        raise _error("landlock_create_ruleset")
    try:
        for rule in rules:
            _add_rule(ruleset, rule, files)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _add_rule(ruleset: int, rule: LandlockRule, handled: int) -> None:
    try:
        if rule.is_exact:
            file = open_without_links(rule.path, os.O_PATH)
        else:
            file = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        is_folder = stat.S_ISDIR(os.fstat(file).st_mode)
        allowed = rule.rights if is_folder else rule.rights & _OF_FILES
        beneath = struct.pack("=Qi", allowed & handled, file)
        if _call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, beneath, 0):
            raise _error("landlock_add_rule")
    finally:
        os.close(file)


def _call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call that `os` does not know."""
    typed = [
        ctypes.c_long(one) if isinstance(one, int) else ctypes.c_char_p(one) for one in arguments
    ]
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *typed))


def _error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")
