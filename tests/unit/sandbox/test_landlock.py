"""The sandbox of Landlock with real, hostile processes: nothing outside is touched."""

import asyncio
import contextlib
import glob
import os
import socket
from pathlib import Path

import pytest
from msgspec import structs

from internal.agent.domain.errors import ToolError
from internal.agent.domain.permissions.network import EVERY_HOST, NetworkAccess
from internal.agent.ports.sandbox import FileAccess, SandboxResult
from internal.landlock.rules import READ, LandlockRule, create_ruleset, supported_version
from internal.sandbox.landlock import LandlockSandbox
from internal.sandbox.limits.control_groups import ControlGroups
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.selection import inspect_sandbox, open_sandbox
from tests.support.bubblewrap_places import MEGABYTE, Place, descriptors, until_closed

pytestmark = pytest.mark.needs("landlock")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def sandbox(place: Place, limits: ResourceLimits | None = None) -> LandlockSandbox:
    return LandlockSandbox(place.homes, private=PrivatePlaces((place.outside,)), limits=limits)


async def run(place: Place, script: str, seconds: float = 60.0) -> SandboxResult:
    place.output = b""
    with contextlib.closing(sandbox(place)) as opened:
        return await opened.run(place.command(script, seconds), place.take)


async def test_output_exit_home_and_temporary_files(place: Place) -> None:
    assert await run(place, "echo out; echo err >&2; exit 3") == SandboxResult(3)
    assert place.output == b"out\nerr\n"
    script = "set -e; echo a >made; echo b >~/kept; echo c >$TMPDIR/gone; cat <<<here; cat made"
    assert await run(place, script) == SandboxResult(0), place.output
    assert place.output == b"here\na\n"
    await run(place, "ls -A ~ /tmp")
    assert place.output.splitlines()[-1] == b"kept"
    with pytest.raises(ToolError, match="there is no program 'no-such-program'"):
        await sandbox(place).run(
            structs.replace(place.command(""), argv=("no-such-program",)), print
        )


ATTEMPTS: dict[str, str] = {
    "read": "cat {outside}/secret",
    "list": "ls {outside}",
    "read through a link": "ln -s {outside}/secret link; cat link",
    "read through a process": "cat /proc/self/root{outside}/secret /proc/1/root{outside}/secret",
    "write": "echo x >>{outside}/secret",
    "create": "touch {outside}/new",
    "remove": "rm -f {outside}/secret",
    "rename away": "mv {outside}/secret .",
    "link": "ln {outside}/secret linked",
    "truncate": "truncate -s 0 {outside}/secret",
    "change the mode": "chmod 777 {outside}/secret {outside}",
    "change the owner": "chown 65534 {outside}/secret",
    "change the times": "touch -d @1 {outside}/secret {outside}; touch -hd @1 {outside}/secret",
    "temporary folder of the machine": "touch /tmp/larkspur-written",
    "shared memory": "touch /dev/shm/larkspur-written",
    "environment of a process": "cat /proc/{pid}/environ /proc/1/environ",
    "arguments of a process": "cat /proc/{pid}/cmdline",
    "signal": "kill -USR1 {pid}",
    "limits of a process": "prlimit --pid {pid} --nofile=9",
    "priority of a process": "renice -n 5 -p {pid}",
    "processors of a process": "taskset -p 1 {pid}",
    "mount": "mount -t tmpfs none {outside}",
}


WATCH = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
calls = (("inotify_init1", 0), ("inotify_add_watch", 3, b"/", 0x100), ("fanotify_init", 0x200, 0),
         ("fanotify_mark", 3, 1, 0x100, -100, b"/"))
for name, *arguments in calls:
    print(getattr(libc, name)(*arguments), errno.errorcode[ctypes.get_errno()])
open("mine", "w").close()
try: os.utime("mine")
except OSError as error: print(-1, errno.errorcode[error.errno])
os.utime("mine", (1, 1))
print(os.stat("mine").st_mtime > 1)
with open("mine") as file:
    os.utime(file.fileno(), (1, 1))
print(os.stat("mine").st_mtime == 1)
"""


async def test_folders_are_not_watched_and_times_change_for_open_files(place: Place) -> None:
    (place.workspace / "watch.py").write_text(WATCH)
    await run(place, "/usr/bin/python3 watch.py")
    *refused, by_path, by_descriptor = place.output.decode().splitlines()
    assert refused == ["-1 EPERM"] * 5
    assert (by_path, by_descriptor) == ("True", str(os.geteuid() != 0))


@pytest.mark.parametrize("script", ATTEMPTS.values(), ids=ATTEMPTS)
async def test_nothing_outside_is_read_or_changed(place: Place, script: str) -> None:
    secret = place.outside / "secret"
    before = [(path.stat().st_mode, path.stat().st_mtime) for path in (secret, place.outside)]
    limits = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    await run(place, script.format(outside=place.outside, pid=os.getpid()))
    assert place.token.encode() not in place.output
    assert b"PATH=" not in place.output
    assert b"\0" not in place.output
    assert secret.read_text() == place.token
    assert [path.name for path in place.outside.iterdir()] == ["secret"]
    after = [(path.stat().st_mode, path.stat().st_mtime) for path in (secret, place.outside)]
    assert after == before
    assert secret.stat().st_uid == os.getuid()
    assert (os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)) == limits
    assert await asyncio.to_thread(glob.glob, "/tmp/larkspur-w*") == []  # noqa: S108  # of the machine
    assert await asyncio.to_thread(glob.glob, "/dev/shm/larkspur-w*") == []  # noqa: S108  # the same


SOCKETS = """
import ctypes, os, socket, sys
def reached(work):
    try: work(); return True
    except OSError: return False
def path(): socket.socket(socket.AF_UNIX).connect(sys.argv[1])
def pair(): socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].connect(sys.argv[1])
def netlink(): socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
def packet(): socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
def vsock(): socket.socket(socket.AF_VSOCK)
def listen(): socket.create_server(("127.0.0.1", 0))
def names(): socket.getaddrinfo("example.com", 443)
def shared():
    if ctypes.CDLL(None).shmget(1234, 4096, 0o1600) < 0: raise OSError
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
print([each.__name__ for each in (path, pair, netlink, packet, vsock, listen, names, shared)
       if reached(each)])
"""


async def test_there_are_no_sockets_but_pairs_of_connected_ones(place: Place) -> None:
    address = str(place.outside / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service:
        service.bind(address)
        (place.workspace / "net.py").write_text(SOCKETS)
        await run(place, f"/usr/bin/python3 net.py {address}")
    assert place.output == b"[]\n"


FAMILIES = """
import errno, socket
def failure(family, make=socket.socket):
    try: make(family, socket.SOCK_STREAM)
    except OSError as error: return errno.errorcode[error.errno]
others = set(range(64)) - {1, 2, 10, 16}
print({failure(each) for each in others}, {failure(each, socket.socketpair) for each in others})
print({failure(each) for each in (1, 2, 10, 16)}, failure(2, socket.socketpair))
"""


async def test_other_families_of_sockets_do_not_exist(place: Place) -> None:
    (place.workspace / "families.py").write_text(FAMILIES)
    await run(place, "/usr/bin/python3 families.py")
    others, own = place.output.decode().splitlines()
    assert others == "{'EAFNOSUPPORT'} {'EAFNOSUPPORT'}"
    assert own == "{'EPERM'} EPERM"


CLONE = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for number in ({"x86_64": 56, "aarch64": 220}[os.uname().machine], 435):
    if not (made := libc.syscall(number, 0x10000011, 0, 0, 0, 0)): os._exit(0)
    print(made, errno.errorcode.get(ctypes.get_errno()))
"""


async def test_a_process_cannot_be_made_in_a_new_user_namespace(place: Place) -> None:
    (place.workspace / "clone.py").write_text(CLONE)
    await run(place, "/usr/bin/python3 clone.py; unshare -Ur true || echo refused")
    assert place.output.splitlines()[:2] == [b"-1 EPERM", b"-1 ENOSYS"]
    assert place.output.endswith(b"refused\n")


async def test_rights_of_root_are_given_up(place: Place) -> None:
    script = "grep -E '^(Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp):' /proc/self/status; capsh --print"
    command = place.command(script)
    read = FileAccess(command.access.writable, ("/proc",))
    await sandbox(place).run(structs.replace(command, access=read), place.take)
    values = dict(line.split(b":\t") for line in place.output.splitlines() if b":\t" in line)
    assert values[b"NoNewPrivs"] == b"1"
    assert values[b"Seccomp"] == b"2"
    assert values[b"CapEff"] == b"0" * 16


async def test_processes_that_leave_the_group_end_with_the_command(place: Place) -> None:
    before = descriptors()
    await run(place, "setsid sleep 600 & (setsid setsid sleep 601 &) & echo ready")
    assert place.survivors() == []
    assert (await run(place, "sleep 600", seconds=0.2)).timed_out
    running = asyncio.create_task(run(place, "echo ready; sleep 600"))
    place.ready.clear()
    await place.ready.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert place.survivors() == []
    await until_closed(before)


def count_own_threads() -> int:
    """Return how many threads the user of this process has: the limit on processes counts them."""
    count = 0
    for thread in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            count += thread.stat().st_uid == os.getuid()
    return count


async def test_bounds(place: Place) -> None:
    limits = ResourceLimits(
        memory_bytes=100 * MEGABYTE,
        output_bytes=MEGABYTE,
        file_bytes=MEGABYTE,
        processes=40 if os.geteuid() == 0 else 200 + count_own_threads(),
    )
    groups = ControlGroups(limits.memory_bytes, limits.processes)
    bounded = LandlockSandbox(place.homes, limits=limits, groups=groups)

    async def end(script: str) -> SandboxResult:
        return await bounded.run(place.command(script), lambda _: None)

    try:
        assert (await end("yes")).exceeded == "output"
        assert (await end("head -c 2M /dev/zero >big")).exit_code != 0
        assert (place.workspace / "big").stat().st_size <= MEGABYTE
        eats = "/usr/bin/python3 -c 'b = bytearray(300_000_000); print(len(b))'"
        assert (await end(eats)).exit_code != 0
        if "pids" in groups.resources:
            bomb = "dash -c 'for i in $(seq 200); do sleep 60 & done; wait'"
            assert (await end(bomb)).exceeded == "processes"
    finally:
        groups.close()
    assert place.survivors() == []


async def test_what_it_cannot_do_is_refused(place: Place) -> None:
    command = structs.replace(place.command("true"), network=NetworkAccess((EVERY_HOST,)))
    with pytest.raises(ToolError, match="cannot reach hosts"):
        await sandbox(place).run(command, print)
    over = LandlockSandbox(place.homes, private=PrivatePlaces((place.home,)))
    with pytest.raises(ToolError, match=r"contains .* of Larkspur.*choose another folder"):
        await over.run(place.command("true"), print)


async def test_a_link_in_a_writable_folder_gives_no_right(place: Place) -> None:
    await run(place, f"ln -s {place.outside} output; ln -s {place.outside} input")
    writable = (str(place.workspace), f"{place.workspace}/output")
    access = FileAccess(writable, (f"{place.workspace}/input",))
    command = structs.replace(place.command("cat */secret; touch output/new"), access=access)
    place.output = b""
    await sandbox(place).run(command, place.take)
    assert place.token.encode() not in place.output.replace(b".larkspur-home", b"")
    assert not (place.outside / "new").exists()


async def test_it_is_opened_by_name_and_inspected(place: Place) -> None:
    async with open_sandbox("landlock", place.homes, PrivatePlaces()) as opened:
        assert (opened.provider, opened.capabilities.isolated) == ("landlock", True)
        assert not opened.capabilities.hosts
    (found,) = await inspect_sandbox("landlock", place.homes, PrivatePlaces())
    assert found.provider == "landlock"
    assert [wall for wall in found.walls if not wall.holds] == []


def test_rules_for_what_does_not_exist_are_ignored(tmp_path: Path) -> None:
    assert supported_version() >= 6
    rules = [LandlockRule(str(path), READ) for path in (tmp_path / "absent", tmp_path)]
    ruleset = create_ruleset(rules)
    assert not os.get_inheritable(ruleset)
    os.close(ruleset)


def test_git_works_in_it(place: Place) -> None:
    script = (
        "set -e; git init -q . && git config user.email a@b.c && git config user.name a\n"
        "echo a >a && git add a && git commit -qm one && git log --oneline | wc -l"
    )
    done = asyncio.run(run(place, script))
    assert done == SandboxResult(0), place.output
    assert place.output.strip() == b"1"
