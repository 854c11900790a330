"""Bounds of each command: memory, files, processes, time."""

import math
import os

import msgspec

_PROGRAM = "/usr/bin/prlimit"


class ResourceLimits(msgspec.Struct, frozen=True):
    """Limits of a command. Sizes are in bytes.

    With control groups, memory and the number of processes apply to all processes of the command
    together. Otherwise memory applies to each process, and the number of processes has no effect if
    Larkspur runs as root, which Linux exempts.
    """

    memory_bytes: int = 4_294_967_296
    file_bytes: int = 2_147_483_648
    temporary_bytes: int = 536_870_912
    output_bytes: int = 104_857_600
    processes: int = 512

    def arguments(self, timeout_seconds: float, *, writes: bool = True) -> list[str]:
        """Return the prefix of a command line that sets its limits.

        Without `writes` no file can grow: SIGXFSZ ends a program that tries. Only writable memory
        counts, not reserved addresses: Node reserves much.
        """
        cpu_seconds = math.ceil(timeout_seconds * (os.cpu_count() or 1)) + 1
        return [
            _PROGRAM,
            f"--data={self.memory_bytes}",
            f"--fsize={self.file_bytes if writes else 0}",
            f"--nproc={self.processes}",
            f"--cpu={cpu_seconds}",
            "--core=0",
            "--",
        ]
