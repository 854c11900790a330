"""The filter of system calls for commands in a sandbox: a program in classic BPF (seccomp(2)).

It denies calls that no program needs inside and that reach parts of the kernel which namespaces do
not separate: keyrings, tracing, modules, mounts, io_uring. Other calls are left to the namespaces.
"""

import functools
import os
import struct

_LOAD_WORD = 0x20
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_GREATER_OR_EQUAL = 0x35
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_FAIL_WITH_EPERM = 0x00050001
_FAIL_WITH_ENOSYS = 0x00050026
_OFFSET_OF_NUMBER = 0
_OFFSET_OF_ARCHITECTURE = 4
_X32_NUMBERS = 0x40000000

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


@functools.cache
def denied_system_calls() -> bytes:
    """Return the filter for this machine; b"" for a processor whose numbers are not known here.

    Calls of another architecture (32-bit programs, x32) fail with ENOSYS, because their numbers
    would not be checked.
    """
    known = _ARCHITECTURES.get(os.uname().machine)
    if known is None:
        return b""
    architecture, denied = known
    numbers = sorted(denied.values())
    rules = [
        (_LOAD_WORD, 0, 0, _OFFSET_OF_ARCHITECTURE),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _FAIL_WITH_ENOSYS),
        (_LOAD_WORD, 0, 0, _OFFSET_OF_NUMBER),
        (_JUMP_IF_GREATER_OR_EQUAL, 0, 1, _X32_NUMBERS),
        (_RETURN, 0, 0, _FAIL_WITH_ENOSYS),
        *(
            (_JUMP_IF_EQUAL, len(numbers) - place, 0, number)
            for place, number in enumerate(numbers)
        ),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL_WITH_EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *rule) for rule in rules)
