"""Runs commands in a real shell and records the programs that ran and the files that changed.

PATH holds nothing but tracers: scripts that append their name and arguments to a log. Those named
like a wrapper then run their operands, the others print `victim`, so that output that is executed
is recorded too. Every command has a folder of its own and no input. As root, commands run as
`nobody`.
"""

import os
import select
import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TRACERS = ("tracer", "victim", "git")
WRAPPERS = ("env", "nice", "nohup", "timeout", "time", "sudo", "xargs")
SHELLS = ("bash", "dash", "sh")
BATCH_SIZE = 400
MAX_BATCH_SECONDS = 90.0

_NOBODY = 65534
_OLD_FILES = {"old": b"old\n", "out/old": b"old\n"}
_TRACER = r"""#!{dash}
printf '%s\0' "$LARKSPUR_CASE" "$#" "${{0##*/}}" "$@" >>{log}
case ${{0##*/}} in tracer | git | victim)
  echo victim
  exit
esac
while :; do
  case ${{1-}} in
    -n) shift 2 ;;
    -* | *=* | [0-9]*) shift ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || exit 0
[ "${{0##*/}}" != xargs ] || read -r words
exec "$@" $words
"""


class Execution(NamedTuple):
    """Effects of a command: the name and arguments of every program, and the changed files."""

    ran: frozenset[tuple[str, ...]]
    changed: frozenset[str]


class TracedShell:
    """Runs commands in a folder that is removed by the caller."""

    def __init__(self, folder: Path, shells: dict[str, str]) -> None:
        folder.chmod(0o755)
        self._folder = folder
        self._log = folder / "log"
        self._bin = folder / "bin"
        self._bin.mkdir()
        script = folder / "tracer"
        script.write_text(_TRACER.format(dash=shells["dash"], log=self._log))
        script.chmod(0o755)
        for name in (*TRACERS, *WRAPPERS):
            (self._bin / name).symlink_to(script)
        for name in SHELLS:
            (self._bin / name).symlink_to(shells[name])
        self._dash = shells["dash"]
        for number in range(BATCH_SIZE):
            self._prepare(number)

    def run(self, shell: Sequence[str], commands: Sequence[str]) -> list[Execution]:
        """Run at most `BATCH_SIZE` commands, each as the last argument of `shell`.

        Raises:
            TimeoutError: a command or one of its processes does not end.
        """
        self._log.write_bytes(b"")
        self._log.chmod(0o666)
        script = self._folder / "batch"
        lines = ["ulimit -t 10", *(self._line(shell, *case) for case in enumerate(commands))]
        script.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
        self._run_batch(script)
        ran = self._read_log(len(commands))
        return [
            Execution(frozenset(ran[number]), frozenset(self._changed(number)))
            for number in range(len(commands))
        ]

    def _line(self, shell: Sequence[str], number: int, command: str) -> str:
        where = self._folder / str(number)
        argv = shlex.join((*shell, command))
        return f"cd {where} && HOME={where} LARKSPUR_CASE={number} {argv}"

    def _run_batch(self, script: Path) -> None:
        """Run the script and wait until the last process has closed its inherited pipe."""
        reader, writer = os.pipe()
        user = _NOBODY if os.getuid() == 0 else None
        with os.fdopen(reader, "rb") as ended:
            process = subprocess.Popen(
                [self._dash, script],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": str(self._bin), "LANG": "C.UTF-8", "TERM": "dumb"},
                pass_fds=(writer,),
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=None if user is None else (),
            )
            os.close(writer)
            ready, _, _ = select.select([ended], [], [], MAX_BATCH_SECONDS)
            if not ready:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not ready:
            raise TimeoutError(f"a command in {script} does not end")

    def _read_log(self, count: int) -> list[list[tuple[str, ...]]]:
        ran: list[list[tuple[str, ...]]] = [[] for _ in range(count)]
        fields = iter(self._log.read_bytes().decode("utf-8", "surrogateescape").split("\0"))
        for case in fields:
            if not case:
                break  # after the last record
            size = int(next(fields))
            ran[int(case)].append(tuple(next(fields) for _ in range(size + 1)))
        return ran

    def _prepare(self, number: int) -> None:
        folder = self._folder / str(number)
        for each in (folder, folder / "out"):
            each.mkdir(exist_ok=True)
            each.chmod(0o777)
        for name, content in _OLD_FILES.items():
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o666)

    def _changed(self, number: int) -> list[str]:
        """Return the files that were created or changed, and restore the folder."""
        folder = self._folder / str(number)
        sizes = {
            entry.path[len(str(folder)) + 1 :]: entry.stat(follow_symlinks=False).st_size
            for where in (folder, folder / "out")
            for entry in os.scandir(where)
            if entry.name != "out"
        }
        old = {name: len(content) for name, content in _OLD_FILES.items()}
        changed = [name for name, size in sizes.items() if old.get(name) != size]
        for name in changed:
            (folder / name).unlink()
        if changed:
            self._prepare(number)
        return changed
