"""Bounds of each command: memory, files, processes, time."""

import math
import os

import msgspec

_PROGRAM = "/usr/bin/prlimit"


class ResourceLimits(msgspec.Struct, frozen=True):
    """What a command may use. Sizes are in bytes.

    Where there are control groups, memory and the number of processes hold for all processes of the
    command together. Elsewhere memory holds for each process, and the number of processes does not
    hold if Larkspur runs as root, which Linux exempts.
    """

    memory_bytes: int = 4_294_967_296
    file_bytes: int = 2_147_483_648
    temporary_bytes: int = 536_870_912
    output_bytes: int = 104_857_600
    processes: int = 512

    def arguments(self, timeout_seconds: float, *, writes: bool = True) -> list[str]:
        """Return the program and arguments in front of a command that set its limits.

        Without `writes` no file grows: a program that tries is ended by SIGXFSZ.
        Memory counts what a process can write, so reserved addresses are free: Node reserves much.
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
