"""Limits of the child process that reads a file: memory, time, files, network.

On Linux (x86-64 and ARM64) the child can only read its descriptors, use memory and write its
answer: every other system call fails, such as opening a file, a socket or a process. Elsewhere the
resource limits and the sandbox that it runs in remain.
"""

import ctypes
import os
import resource
import sys

_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2

# classic BPF (linux/filter.h, linux/seccomp.h)
_LOAD_WORD = 0x20
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_FAIL = 0x00050000
_KILL = 0x80000000
_EPERM = 1
_ENOSYS = 38
_CLONE_THREAD = 0x10000
_OFFSET_OF_NUMBER = 0
_OFFSET_OF_ARCHITECTURE = 4
_OFFSET_OF_FIRST_ARGUMENT = 16

_ALLOWED_X86_64 = {
    "read": 0,
    "write": 1,
    "close": 3,
    "fstat": 5,
    "lseek": 8,
    "mmap": 9,
    "mprotect": 10,
    "munmap": 11,
    "brk": 12,
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "pread64": 17,
    "readv": 19,
    "writev": 20,
    "sched_yield": 24,
    "mremap": 25,
    "madvise": 28,
    "getpid": 39,
    "exit": 60,
    "getcwd": 79,
    "gettimeofday": 96,
    "getrlimit": 97,
    "sysinfo": 99,
    "sigaltstack": 131,
    "gettid": 186,
    "futex": 202,
    "sched_getaffinity": 204,
    "clock_gettime": 228,
    "clock_nanosleep": 230,
    "exit_group": 231,
    "newfstatat": 262,
    "getrandom": 318,
}
_ALLOWED_ARM64 = {
    "getcwd": 17,
    "close": 57,
    "lseek": 62,
    "read": 63,
    "write": 64,
    "readv": 65,
    "writev": 66,
    "pread64": 67,
    "newfstatat": 79,
    "fstat": 80,
    "exit": 93,
    "exit_group": 94,
    "futex": 98,
    "clock_gettime": 113,
    "clock_nanosleep": 115,
    "sched_getaffinity": 123,
    "sched_yield": 124,
    "sigaltstack": 132,
    "rt_sigaction": 134,
    "rt_sigprocmask": 135,
    "rt_sigreturn": 139,
    "getrlimit": 163,
    "gettimeofday": 169,
    "getpid": 172,
    "gettid": 178,
    "sysinfo": 179,
    "brk": 214,
    "munmap": 215,
    "mremap": 216,
    "mmap": 222,
    "mprotect": 226,
    "madvise": 233,
    "getrandom": 278,
}
_THREADS_X86_64 = {"clone": 56, "set_robust_list": 273, "rseq": 334, "clone3": 435}
_THREADS_ARM64 = {"set_robust_list": 99, "clone": 220, "rseq": 293, "clone3": 435}
_ARCHITECTURES = {
    "x86_64": (0xC000003E, _ALLOWED_X86_64, _THREADS_X86_64),
    "aarch64": (0xC00000B7, _ALLOWED_ARM64, _THREADS_ARM64),
}


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def limit_resources(memory_bytes: int, cpu_seconds: int, *, may_start_threads: bool) -> None:
    """Limit this process. Called before anything is read."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    if not may_start_threads:  # they count like processes
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))  # not for root
    if sys.platform == "linux":
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def deny_system_calls(*, may_start_threads: bool = False) -> bool:
    """Deny all system calls that reading needs no more. Return False where no filter is known.

    Threads are started by decoders that cannot work without; processes never are.

    Called when every module is imported: from here on no file can be opened or written.

    Raises:
        OSError: the kernel refuses the filter.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # not earlier: Python stores byte code
    known = _ARCHITECTURES.get(os.uname().machine)
    if sys.platform != "linux" or known is None:
        return False
    architecture, allowed, of_threads = known
    if may_start_threads:
        allowed = allowed | {name: of_threads[name] for name in ("rseq", "set_robust_list")}
    numbers = sorted(allowed.values())
    rules = [
        (_LOAD_WORD, 0, 0, _OFFSET_OF_ARCHITECTURE),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD_WORD, 0, 0, _OFFSET_OF_NUMBER),
        *(_thread_rules(of_threads) if may_start_threads else ()),
        *(
            (_JUMP_IF_EQUAL, len(numbers) - place, 0, number)
            for place, number in enumerate(numbers)
        ),
        (_RETURN, 0, 0, _FAIL | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    instructions = (_Instruction * len(rules))(*(_Instruction(*rule) for rule in rules))
    program = _Program(len(rules), instructions)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program))
    return True


def _thread_rules(numbers: dict[str, int]) -> tuple[tuple[int, int, int, int], ...]:
    """Return the rules that allow `clone` for threads only.

    The flags of `clone3` are in memory, which a filter cannot see: without it, `clone` is used.
    """
    return (
        (_JUMP_IF_EQUAL, 0, 1, numbers["clone3"]),
        (_RETURN, 0, 0, _FAIL | _ENOSYS),
        (_JUMP_IF_EQUAL, 0, 4, numbers["clone"]),
        (_LOAD_WORD, 0, 0, _OFFSET_OF_FIRST_ARGUMENT),
        (_JUMP_IF_ANY_BIT, 0, 1, _CLONE_THREAD),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL | _EPERM),
    )


def _prctl(option: int, value: int, pointer: int = 0) -> None:
    function = ctypes.CDLL(None, use_errno=True).prctl
    function.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    if function(option, value, pointer, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
