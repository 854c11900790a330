"""The filters of system calls for commands in a sandbox: programs in classic BPF (seccomp(2)).

All filters deny calls that no program needs inside and that reach parts of the kernel which
namespaces do not separate: keyrings, tracing, modules, mounts, io_uring; sockets of families that
bypass the network namespace, such as to the host of a virtual machine (AF_VSOCK); and new
namespaces, in which a command would have the rights of root. Without namespaces, a second filter
also replaces the separation of network, processes and users.
"""

import functools
import os
import struct
from collections.abc import Iterable, Mapping

_LOAD_WORD = 0x20
_AND = 0x54
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_GREATER_OR_EQUAL = 0x35
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_DO_NOTHING = 0x00050000
_FAIL_WITH_EPERM = 0x00050001
_FAIL_WITH_ENOSYS = 0x00050026
_FAIL_WITH_EAFNOSUPPORT = 0x00050061
_OFFSET_OF_NUMBER = 0
_OFFSET_OF_ARCHITECTURE = 4
_OFFSET_OF_ARGUMENTS = 16
_X32_NUMBERS = 0x40000000

_Rule = tuple[int, int, int, int]
_Argument = tuple[int, int, int]
"""Index of the argument, a mask, and the required value."""

_COMMON = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
}
_DENIED_X86_64 = _COMMON | {
    "syslog": 103,
    "pivot_root": 155,
    "acct": 163,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "lookup_dcookie": 212,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "open_by_handle_at": 304,
    "setns": 308,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
_DENIED_ARM64 = _COMMON | {
    "lookup_dcookie": 18,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "quotactl": 60,
    "acct": 89,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "syslog": 116,
    "reboot": 142,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "perf_event_open": 241,
    "open_by_handle_at": 265,
    "setns": 268,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}
_ARCHITECTURES = {
    "x86_64": (0xC000003E, _DENIED_X86_64),
    "aarch64": (0xC00000B7, _DENIED_ARM64),
}

# Sockets, memory and queues shared with others, tracing, extended attributes of any file, and what
# watches any file (inotify, fanotify).
_DENIED_WITHOUT_NAMESPACES = {
    "x86_64": (
        *(29, 30, 31, 41, 64, 65, 66, 68, 69, 70, 71, 101, 188, 189, 190, 197, 198, 199),
        *(220, 240, 241, 253, 254, 294, 300, 301, 310, 311, 463, 466, 468),
    ),
    "aarch64": (
        *(5, 6, 7, 14, 15, 16, 26, 27, 117, 180, 181, 186, 187, 188, 189, 190, 191, 192, 193, 194),
        *(195, 196, 198, 262, 263, 270, 271, 463, 466, 468),
    ),
}
_CHANGES_OF_STATUS = {  # mode, owner and times of a file by its path, of an open file
    "x86_64": ((90, 92, 94, 132, 235, 260, 261, 268, 452), (91, 93)),
    "aarch64": ((53, 54, 452), (52, 55)),
}
_UTIMENSAT: Mapping[str, int] = {"x86_64": 280, "aarch64": 88}
# clone makes processes and threads, but no namespace: CLONE_NEWNS, CLONE_NEWCGROUP … CLONE_NEWNET.
# The arguments of clone3 are in memory, where no filter sees them: libraries use clone without it.
_CLONE: Mapping[str, int] = {"x86_64": 56, "aarch64": 220}
_NO_NEW_NAMESPACE: tuple[_Argument, ...] = ((0, 0x7E020000, 0),)
_CLONE3 = 435

_SOCKETS: Mapping[str, tuple[int, int]] = {"x86_64": (41, 53), "aarch64": (198, 199)}
"""The numbers of socket and socketpair."""
FAMILIES = (1, 2, 10, 16)
"""The allowed families of sockets: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""
_STREAM: tuple[_Argument, ...] = ((0, 0xFFFFFFFF, 1), (1, 0xF, 1))
_OWN: tuple[_Argument, ...] = ((0, 0xFFFFFFFF, 0),)
_SECOND_OWN: tuple[_Argument, ...] = ((1, 0xFFFFFFFF, 0),)
# socketpair; prlimit64, sched_setaffinity, _setparam, _setscheduler, _setattr; ioprio_set;
# setpriority: of this process only.
_CHECKED_ARGUMENTS: Mapping[str, Mapping[int, tuple[_Argument, ...]]] = {
    "x86_64": {
        53: _STREAM,
        **dict.fromkeys((302, 203, 142, 144, 314), _OWN),
        251: _SECOND_OWN,
        141: _OWN + _SECOND_OWN,
    },
    "aarch64": {
        199: _STREAM,
        **dict.fromkeys((261, 122, 118, 119, 274), _OWN),
        30: _SECOND_OWN,
        140: _OWN + _SECOND_OWN,
    },
}


@functools.cache
def denied_system_calls() -> bytes:
    """Return the filter for this machine; b"" for a processor whose numbers are not known here.

    Calls of another architecture (32-bit programs, x32) fail with ENOSYS, because their numbers
    would not be checked.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return b""
    architecture, denied = _ARCHITECTURES[machine]
    checks = [_family_check(machine), *_namespace_checks(machine)]
    return _assemble(architecture, checks, denied.values(), ())


@functools.cache
def calls_denied_without_namespaces() -> bytes:
    """Return the filter for a command that shares the namespaces of this process.

    It has no sockets but pairs of connected ones, and reaches no other process. Changes of the
    mode, the owner and the times of a file do nothing, because they could be for any file of the
    user.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return b""
    architecture, denied = _ARCHITECTURES[machine]
    paths, descriptors = _CHANGES_OF_STATUS[machine]
    return _assemble(
        architecture,
        [
            _family_check(machine),
            *_namespace_checks(machine),
            *(_check(number, wanted) for number, wanted in _CHECKED_ARGUMENTS[machine].items()),
            _times_check(machine, _ALLOW if os.geteuid() else _DO_NOTHING),
        ],
        [*denied.values(), *_DENIED_WITHOUT_NAMESPACES[machine]],
        # root owns files that it can open but may not change
        paths if os.geteuid() else paths + descriptors,
    )


def _assemble(
    architecture: int, checks: Iterable[list[_Rule]], denied: Iterable[int], ignored: Iterable[int]
) -> bytes:
    """Return a filter that allows all calls that it does not name."""
    denied, ignored = sorted(denied), sorted(ignored)
    numbers = denied + ignored
    jumps = [
        (_JUMP_IF_EQUAL, len(numbers) - place + (number in ignored), 0, number)
        for place, number in enumerate(numbers)
    ]
    rules = [
        (_LOAD_WORD, 0, 0, _OFFSET_OF_ARCHITECTURE),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _FAIL_WITH_ENOSYS),
        (_LOAD_WORD, 0, 0, _OFFSET_OF_NUMBER),
        (_JUMP_IF_GREATER_OR_EQUAL, 0, 1, _X32_NUMBERS),
        (_RETURN, 0, 0, _FAIL_WITH_ENOSYS),
        *(rule for check in checks for rule in check),
        *jumps,
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL_WITH_EPERM),
        (_RETURN, 0, 0, _DO_NOTHING),
    ]
    return b"".join(struct.pack("=HBBI", *rule) for rule in rules)


def _namespace_checks(machine: str) -> list[list[_Rule]]:
    """Return the rules for the calls that make processes, and could make namespaces."""
    return [
        _check(_CLONE[machine], _NO_NEW_NAMESPACE),
        [(_JUMP_IF_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _FAIL_WITH_ENOSYS)],
    ]


def _family_check(machine: str) -> list[_Rule]:
    """Return the rules that deny sockets of other families; the others are judged further on."""
    one, other = _SOCKETS[machine]
    rules = [
        (_LOAD_WORD, 0, 0, _OFFSET_OF_ARGUMENTS),
        *((_JUMP_IF_EQUAL, len(FAMILIES) - n, 0, each) for n, each in enumerate(FAMILIES)),
        (_RETURN, 0, 0, _FAIL_WITH_EAFNOSUPPORT),
        (_LOAD_WORD, 0, 0, _OFFSET_OF_NUMBER),
    ]
    return [(_JUMP_IF_EQUAL, 1, 0, one), (_JUMP_IF_EQUAL, 0, len(rules), other), *rules]


def _times_check(machine: str, of_open_file: int) -> list[_Rule]:
    """Return the rules for the call that changes the times of a file.

    Without a path it is for an open file. With a path it does nothing, since a copy may go on
    without times; without times it fails, since touch(1) would seem to have made a file.
    """
    path, times = _OFFSET_OF_ARGUMENTS + 8, _OFFSET_OF_ARGUMENTS + 16
    rules = [
        (_LOAD_WORD, 0, 0, path),
        (_JUMP_IF_EQUAL, 0, 2, 0),
        (_LOAD_WORD, 0, 0, path + 4),
        (_JUMP_IF_EQUAL, 6, 0, 0),
        (_LOAD_WORD, 0, 0, times),
        (_JUMP_IF_EQUAL, 0, 2, 0),
        (_LOAD_WORD, 0, 0, times + 4),
        (_JUMP_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _DO_NOTHING),
        (_RETURN, 0, 0, _FAIL_WITH_EPERM),
        (_RETURN, 0, 0, of_open_file),
    ]
    return [(_JUMP_IF_EQUAL, 0, len(rules), _UTIMENSAT[machine]), *rules]


def _check(number: int, wanted: tuple[_Argument, ...]) -> list[_Rule]:
    """Return the rules for a call that is allowed with some arguments only."""
    rules: list[_Rule] = []
    for argument, mask, value in wanted:
        rules += [
            (_LOAD_WORD, 0, 0, _OFFSET_OF_ARGUMENTS + 8 * argument),
            (_AND, 0, 0, mask),
            (_JUMP_IF_EQUAL, 1, 0, value),
            (_RETURN, 0, 0, _FAIL_WITH_EPERM),
        ]
    rules.append((_RETURN, 0, 0, _ALLOW))
    return [(_JUMP_IF_EQUAL, 0, len(rules), number), *rules]
