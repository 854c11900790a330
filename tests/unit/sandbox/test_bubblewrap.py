"""The sandbox of bubblewrap with real processes: nothing gets out, and none of them is left."""

import asyncio
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from internal.agent.domain.errors import SandboxUnavailable, ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.network import EVERY_HOST, NetworkAccess
from internal.agent.domain.permissions.rules import HostPattern
from internal.agent.ports.sandbox import FileAccess, SandboxCommand, SandboxResult
from internal.sandbox import bubblewrap
from internal.sandbox.bubblewrap import PROGRAM, BubblewrapSandbox
from internal.sandbox.environment import DEFAULT_PATH, CommandEnvironment
from internal.sandbox.landlock import LandlockSandbox
from internal.sandbox.limits.control_groups import ControlGroups
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.selection import open_sandbox, require_isolation
from tests.support.bubblewrap_places import (
    MEGABYTE,
    SESSION,
    Place,
    descriptors,
    package_index,
    until_closed,
)
from tests.support.native_sandbox import TREES
from tests.support.sandboxes import sandbox_params
from tests.support.tools import native_sandbox

pytestmark = pytest.mark.needs("namespaces")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_output_exit_and_standard_input(place: Place) -> None:
    assert await place.run("echo out; echo err >&2; echo again; exit 3") == SandboxResult(3)
    assert place.output == b"out\nerr\nagain\n"
    assert await place.run("kill -SEGV $$") == SandboxResult(128 + signal.SIGSEGV)
    command = SandboxCommand(
        ("wc", "-c"),
        str(place.workspace),
        9.0,
        SESSION,
        b"x" * 300_000,
        access=FileAccess(writable=(str(place.workspace),)),
    )
    place.output = b""
    await place.sandbox().run(command, place.take)
    assert place.output.strip() == b"300000"


HIDDEN: dict[str, str] = {
    "a folder outside": "cat {outside}/secret",
    "the home of Larkspur in the workspace": "cat {home}/secret",
    "the settings of Larkspur in the workspace": "cat {workspace}/larkspur.yaml",
    "through a link": "ln -s {outside}/secret link && cat link",
    "through the folder of a process": "cat /proc/1/root{outside}/secret",
    "the homes of other sessions": "ls {root}/homes/session-2",
}


@pytest.mark.parametrize("script", HIDDEN.values(), ids=HIDDEN)
async def test_what_is_hidden_cannot_be_read(place: Place, tmp_path: Path, script: str) -> None:
    (tmp_path / "homes" / "session-2").mkdir(parents=True)
    folders = {
        "outside": place.outside,
        "home": place.home,
        "workspace": place.workspace,
        "root": tmp_path,
    }
    assert (await place.run(script.format(**folders))).exit_code != 0 or not place.output
    assert place.token.encode() not in place.output


async def test_a_command_writes_to_its_workspace_its_home_and_tmp(place: Place) -> None:
    done = await place.run("set -e; echo a > made; echo b > ~/kept; echo c > /tmp/gone")
    assert done == SandboxResult(0), place.output
    assert (place.workspace / "made").read_text() == "a\n"
    assert (Path(place.homes.create(SESSION)) / "kept").read_text() == "b\n"
    await place.run("cat ~/kept; ls /tmp/gone")
    assert place.output.startswith(b"b\n")
    assert b"No such file" in place.output


READ_ONLY = ("/", "/dev", "/etc", "/usr", "/proc/sys/kernel", "/home", "/opt", "/var")


async def test_nothing_else_is_writable(place: Place) -> None:
    for folder in READ_ONLY:
        assert (await place.run(f"touch {folder}/probe")).exit_code != 0, folder
    await place.run("find / -xdev -writable -not -type l -not -path '/proc/*' 2>/dev/null")
    found = set(place.output.decode().split())
    assert found <= {"/", "/etc", "/dev", str(place.workspace)} | set(
        map(str, place.workspace.parents)
    )


async def test_read_only_parts_of_the_workspace(place: Place) -> None:
    (place.workspace / ".git").mkdir()
    config = place.workspace / ".git" / "config"
    config.write_text("[core]\n")
    done = await place.run(
        "echo x >> .git/config; mv .git/config moved; rm -f .git/config; echo y > .git/other",
        read_only=(str(config), str(place.workspace / "absent")),
    )
    assert done == SandboxResult(0)
    assert config.read_text() == "[core]\n"
    assert (place.workspace / ".git" / "other").exists()
    assert not (place.workspace / "absent").exists()


async def test_folders_of_a_session_in_a_hidden_folder_are_seen_without_their_neighbours(
    place: Place,
) -> None:
    folders = {name: place.home / "files" / name for name in ("own", "other")}
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        (folder / "name").write_text(name)
    access = FileAccess(
        (str(place.workspace), str(folders["own"])), (str(folders["own"] / "name"),)
    )
    script = f"cat {place.home}/files/*/name; ls {place.home}; mv {place.home} moved; rm -rf sub"
    command = structs.replace(place.command(script), access=access)
    await place.sandbox().run(command, place.take)
    assert place.output.splitlines()[0] == b"ownfiles"
    assert (place.home / "secret").exists()


async def test_the_system_may_be_named_among_the_readable_folders(place: Place) -> None:
    done = await place.run("ls /usr/bin/env", read_only=("/usr", "/usr/lib"))
    assert done == SandboxResult(0)


@pytest.mark.parametrize("kind", [BubblewrapSandbox, LandlockSandbox])
async def test_a_program_is_found_where_the_sandbox_shows_one(
    place: Place, kind: type[BubblewrapSandbox | LandlockSandbox]
) -> None:
    shutil.copy("/usr/bin/env", place.outside / "wc")  # such as a Python of uv
    environment = CommandEnvironment(f"{place.outside}:{DEFAULT_PATH}")
    command = structs.replace(place.command(""), argv=("wc", "-c"), stdin=b"four")
    sandbox = kind(place.homes, environment=environment)
    assert await sandbox.run(command, place.take) == SandboxResult(0)
    assert place.output == b"4\n"


LINKED: dict[str, str] = {
    "an absent file by a link to /etc": "ln -s {up}/etc .larkspur",
    "an absent file by a link to a file of the sandbox": "ln -s {up}/etc/passwd AGENTS.md",
    "a folder of output by a link to /usr": "rm -rf output && ln -s {up}/usr/local/bin output",
}


@pytest.mark.parametrize("script", LINKED.values(), ids=LINKED)
async def test_a_link_in_the_place_of_a_mounted_file_shows_nothing(
    place: Place, script: str
) -> None:
    workspace = place.workspace
    read_only = tuple(f"{workspace}/{name}" for name in (".larkspur", "AGENTS.md"))
    access = FileAccess((str(workspace), f"{workspace}/output"), read_only)
    up = "/".join(".." for _ in workspace.parts[1:])
    prepare = place.command(f"mkdir -p output; {script.format(up=up)}")
    assert await place.sandbox().run(prepare, place.take) == SandboxResult(0)
    place.output = b""
    look = "ls /etc/shadow; wc -l </etc/passwd; touch /usr/local/bin/probe && echo written"
    await place.sandbox().run(structs.replace(place.command(look), access=access), place.take)
    lines = place.output.decode().splitlines()
    assert "/etc/shadow" not in lines
    assert "written" not in lines
    assert lines.count("3") == 1  # the users of the sandbox, not of the machine


async def test_what_configures_git_cannot_be_replaced_with_its_folder(place: Place) -> None:
    (place.workspace / ".git" / "hooks").mkdir(parents=True)
    config, hooks = place.workspace / ".git" / "config", place.workspace / ".git" / "hooks"
    config.write_text("[core]\n")
    await place.run(
        "mv .git moved; mkdir -p .git/hooks; echo evil >.git/config; echo evil >.git/hooks/pre",
        read_only=(str(config), str(hooks)),
    )
    assert config.read_text() == "[core]\n"
    assert list(hooks.iterdir()) == []


async def test_a_protected_link_protects_its_target(place: Place) -> None:
    (place.workspace / "docs").mkdir()
    target = place.workspace / "docs" / "rules.md"
    target.write_text("rules")
    link = place.workspace / "AGENTS.md"
    link.symlink_to("docs/rules.md")
    await place.run("echo evil >AGENTS.md; echo evil >docs/rules.md", read_only=(str(link),))
    assert target.read_text() == "rules"


SWAP = """
import os
os.symlink(os.path.relpath("/etc", os.getcwd()), "link")
os.mkdir("folder")
print("ready", flush=True)
while True:
    for one in ("link", "folder"):
        try: os.rename(one, ".larkspur"); os.rename(".larkspur", one)
        except OSError: pass
"""


async def test_a_running_command_cannot_swap_what_is_mounted(place: Place) -> None:
    protected = f"{place.workspace}/.larkspur"
    (place.workspace / "swap.py").write_text(SWAP)
    ready = asyncio.Event()
    command = place.command("exec /usr/bin/python3 swap.py")
    swapping = asyncio.create_task(place.sandbox().run(command, lambda _: ready.set()))
    seen = set()
    try:
        await ready.wait()
        for _ in range(60):
            try:
                await place.run("ls /etc/shadow", read_only=(protected,))
            except ToolError as error:
                place.output = str(error).encode()
            seen.add(place.output.partition(b":")[0])
    finally:
        swapping.cancel()
    assert b"/etc/shadow\n" not in seen
    assert len(seen) > 0


NETWORK = """
import socket, sys
def reached(work):
    try: work(); return True
    except OSError: return False
def tcp(): socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2)
def udp():
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect(("192.0.2.1", 53)); out.send(b"x")
def six(): socket.create_connection(("::1", int(sys.argv[1])), 2)
def abstract(): socket.socket(socket.AF_UNIX).connect("\\0" + sys.argv[2])
def path(): socket.socket(socket.AF_UNIX).connect(sys.argv[3])
def names(): socket.getaddrinfo("example.com", 443)
print([work.__name__ for work in (tcp, udp, six, abstract, path, names) if reached(work)])
"""


async def test_no_socket_reaches_anything(place: Place) -> None:
    abstract = f"larkspur-{secrets.token_hex(4)}"
    with (
        socket.create_server(("127.0.0.1", 0)) as service,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as bound,
    ):
        named.bind(f"\0{abstract}")
        bound.bind(str(place.outside / "socket"))
        for each in (named, bound):
            each.listen()
        (place.workspace / "net.py").write_text(NETWORK)
        arguments = f"{service.getsockname()[1]} {abstract} {place.outside}/socket"
        await place.run(f"/usr/bin/python3 net.py {arguments}")
        assert place.output == b"[]\n"


async def test_no_variable_and_no_descriptor_of_larkspur_is_inherited(place: Place) -> None:
    with (place.outside / "secret").open("rb") as held:
        os.set_inheritable(held.fileno(), True)
        await place.run("ls /proc/self/fd | wc -l; cat /proc/1/environ | tr '\\0' '\\n'")
    count, *variables = place.output.decode().splitlines()
    assert count == "4"  # three streams, and the folder that ls reads
    names = {line.partition("=")[0] for line in variables}
    assert "HOME" in names
    assert {name for name in names if "PYTEST" in name} == set()  # pytest sets one


async def test_calls_outside_of_namespaces_are_denied(place: Place) -> None:
    script = (
        "import ctypes, errno, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "numbers = {'x86_64': (250, 321, 425, 272), 'aarch64': (219, 280, 425, 97)}\n"
        "for number in numbers[os.uname().machine]:\n"
        "    assert libc.syscall(number, 0, 0, 0, 0, 0) == -1\n"
        "    print(errno.errorcode[ctypes.get_errno()])\n"
        "for number in ({'x86_64': 56, 'aarch64': 220}[os.uname().machine], 435):\n"
        "    assert libc.syscall(number, 0x10000011, 0, 0, 0, 0) == -1\n"
        "    print(errno.errorcode[ctypes.get_errno()])\n"
    )
    (place.workspace / "calls.py").write_text(script)
    await place.run("/usr/bin/python3 calls.py; grep -E '^(CapEff|CapBnd)' /proc/self/status")
    assert place.output.split()[:6] == [b"EPERM"] * 5 + [b"ENOSYS"]
    assert place.output.count(b"0000000000000000") == 2


FAMILIES = """
import contextlib, ctypes, errno, mmap, os, socket, struct
def failure(family, make=socket.socket):
    try: make(family, socket.SOCK_STREAM)
    except OSError as error: return errno.errorcode[error.errno]
others = set(range(64)) - {1, 2, 10, 16}
print({failure(each) for each in others}, {failure(each, socket.socketpair) for each in others})
print({failure(each) for each in (1, 2, 10)}, failure(1, socket.socketpair))
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
libc = ctypes.CDLL(None, use_errno=True)
if os.uname().machine == "x86_64":
    libc.syscall(0x40000000 + 41, 40, 1, 0)
    print("x32", errno.errorcode[ctypes.get_errno()])
    # the calls of 32-bit programs: socketcall(SYS_SOCKET, {AF_VSOCK, SOCK_STREAM, 0}) and socket
    libc.mmap.restype = ctypes.c_void_p
    page = libc.mmap(None, 4096, 7, 0x62, -1, 0)  # where 32 bits address it
    for number, one, two in ((102, 1, page + 64), (359, 40, 1)):
        code = struct.pack("<BBIBIBI", 0x53, 0xB8, number, 0xBB, one, 0xB9, two)
        code += bytes.fromhex("ba00000000 cd80 5b c3")  # the third is 0; int 0x80
        ctypes.memmove(page, code.ljust(64) + struct.pack("<III", 40, 1, 0), 76)
        if (child := os.fork()) == 0:
            os._exit(-ctypes.CFUNCTYPE(ctypes.c_int)(page)() & 0xFF)
        status = os.waitpid(child, 0)[1]  # a kernel without such calls ends the process
        print("32 bit", os.WIFSIGNALED(status) or errno.errorcode[os.WEXITSTATUS(status)])
"""


async def test_other_families_of_sockets_do_not_exist(place: Place) -> None:
    (place.workspace / "families.py").write_text(FAMILIES)
    await place.run("/usr/bin/python3 families.py")
    others, own, *calls = place.output.decode().splitlines()
    assert others == "{'EAFNOSUPPORT'} {'EAFNOSUPPORT'}"
    assert own == "{None} None"
    assert {each.rpartition(" ")[2] for each in calls} <= {"ENOSYS", "True"}, calls


@pytest.mark.parametrize("script", TREES.values(), ids=TREES)
@pytest.mark.first_rows(3)
async def test_cancel_leaves_no_process(place: Place, script: str) -> None:
    running = asyncio.create_task(place.run(script))
    async with asyncio.timeout(20):
        await place.ready.wait()
        assert place.survivors()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert place.survivors() == []


@pytest.mark.slow
async def test_a_timeout_asks_first_and_kills_then(place: Place) -> None:
    # bash may hear of the end of `sleep` first: its `wait` is over then, and the trap has not run
    polite = "trap 'echo bye; exit 3' TERM; echo ready; sleep 600 & while :; do wait; done"
    assert await place.run(polite, 3.0) == SandboxResult(3, timed_out=True)
    assert place.output == b"ready\nbye\n"
    stubborn = await place.run(TREES["a stubborn one"], 1.0)
    assert stubborn == SandboxResult(-signal.SIGKILL, timed_out=True)
    assert place.survivors() == []


async def test_background_processes_end_with_the_command(place: Place) -> None:
    script = "sleep 600 & (setsid sleep 600 &) ; sleep 0.1; exit 4"
    assert await place.run(script) == SandboxResult(4)
    assert place.survivors() == []


async def test_no_process_is_left_at_the_moment_a_command_returns(place: Place) -> None:
    for _ in range(20):  # without the output of the command to wait for
        await place.run("setsid sleep 600 >/dev/null 2>&1 &")
        assert place.survivors() == []


def test_commands_end_when_larkspur_is_killed(place: Place) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from internal.agent.ports.sandbox import FileAccess, SandboxCommand\n"
        "from internal.sandbox.bubblewrap import BubblewrapSandbox\n"
        "from internal.sandbox.workspaces import SessionFolders\n"
        "folder, token = sys.argv[1:]\n"
        "command = SandboxCommand(\n"
        "    ('bash', '-c', 'setsid sleep 600 & echo ready; wait'), folder, 99, 'session-1',\n"
        "    environment={'TOKEN': token}, access=FileAccess(writable=(folder,)))\n"
        "def show(chunk): sys.stdout.buffer.write(chunk); sys.stdout.flush()\n"
        "homes = SessionFolders(Path(folder + '-homes'))\n"
        "asyncio.run(BubblewrapSandbox(homes).run(command, show))\n"
    )
    argv = [sys.executable, "-c", script, str(place.workspace), place.token]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        ends = [os.pidfd_open(int(pid)) for pid in place.survivors() if int(pid) != program.pid]
        assert len(ends) >= 3
        program.kill()
    for end in ends:  # readable once its process is gone
        assert select.select([end], [], [], 10)[0] == [end]
        os.close(end)
    assert place.survivors() == []


@pytest.fixture
def groups() -> Generator[ControlGroups]:
    made = ControlGroups(200 * MEGABYTE, 40)
    yield made
    made.close()


async def test_more_than_the_bounds_ends_with_the_reason(
    place: Place, groups: ControlGroups
) -> None:
    limits = ResourceLimits(
        memory_bytes=200 * MEGABYTE,
        file_bytes=5 * MEGABYTE,
        temporary_bytes=3 * MEGABYTE,
        output_bytes=MEGABYTE,
    )
    sandbox = place.sandbox(limits, groups)

    async def result(script: str) -> SandboxResult:
        place.output = b""
        return await sandbox.run(place.command(script), place.take)

    assert (await result("yes")).exceeded == "output"
    assert len(place.output) == MEGABYTE
    await result("head -c 9000000 /dev/zero > big; head -c 9000000 /dev/zero > /tmp/full; true")
    assert b"File size limit exceeded" in place.output
    assert b"No space left on device" in place.output
    if "pids" in groups.resources:
        bomb = await result("dash -c 'for i in $(seq 200); do sleep 60 & done; wait'")
        assert bomb.exceeded == "processes"
    if "memory" in groups.resources:
        # each process keeps its 50 MB while the next one takes its own
        holder = '$x = "x" x 5e7; $n = shift; system "perl", "-e", $ENV{f}, $n - 1 if $n'
        chain = f"export f='{holder}'; perl -e \"$f\" 8; true"
        assert (await result(chain)).exceeded == "memory"
    assert await result("true") == SandboxResult(0)


def test_all_commands_together_are_bounded_below_larkspur() -> None:
    bounded = ControlGroups(200 * MEGABYTE, 10)  # together 40 processes
    made = [bounded.create() for _ in range(6)]
    folders = [folder for group in made for folder in group.folders]
    script = "for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; echo all; wait"
    started: list[subprocess.Popen[bytes]] = []
    said: list[bytes] = []
    try:
        for group in made:
            argv = [*group.arguments(), "dash", "-c", script]
            program = subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
            )
            started.append(program)
            assert program.stdout is not None
            said.append(program.stdout.readline())
        if "pids" in bounded.resources:
            assert said == [b"all\n"] * 4 + [b"dash: 0: Cannot fork\n"] * 2
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        for name in ("memory.max", "memory.limit_in_bytes"):
            for file in {folder.parent / name for folder in folders}:
                assert not file.exists() or 0 < int(file.read_text()) <= 0.75 * machine
    finally:
        for program in started:
            # The group: a shell that could not fork leaves its children, which hold the pipe.
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
        for group in made:
            bounded.remove(group)
        bounded.close()


async def test_groups_are_removed(place: Place, groups: ControlGroups) -> None:
    group = groups.create()
    assert (len(group.folders) > 0) == bool(groups.resources)
    groups.remove(group)
    groups.close()
    assert [folder for folder in group.folders if folder.exists()] == []
    # the sandboxes of one process share the parents: one is left while a group of another is busy
    parents = [folder.parent for folder in group.folders if folder.parent.exists()]
    assert [parent for parent in parents if not any(parent.glob("[0-9]*"))] == []


REFUSED: dict[str, tuple[Callable[[Place], SandboxCommand], str]] = {
    "the root": (
        lambda place: SandboxCommand(
            ("true",), "/", 9.0, SESSION, access=FileAccess(writable=("/",))
        ),
        "choose a folder of your own files",
    ),
    "a folder that does not exist": (
        lambda place: SandboxCommand(("true",), str(place.outside / "gone"), 9.0, SESSION),
        "the sandbox cannot be started: .*gone",
    ),
    "a missing program": (
        lambda place: SandboxCommand(("no-such-program",), str(place.workspace), 9.0, SESSION),
        "there is no program 'no-such-program'",
    ),
    "an argument that is too long": (
        lambda place: place.command("x" * 3_000_000),
        "Argument list too long",
    ),
}


@pytest.mark.parametrize(("command", "says"), REFUSED.values(), ids=REFUSED)
async def test_a_command_that_cannot_start(
    place: Place, command: Callable[[Place], SandboxCommand], says: str
) -> None:
    with pytest.raises(ToolError, match=says):
        await place.sandbox().run(command(place), place.take)


def test_an_unprivileged_user_is_isolated_as_well() -> None:
    user = os.getuid() or 65534
    switched: dict[str, Any] = {"user": user, "group": user, "extra_groups": ()}
    with tempfile.TemporaryDirectory() as root:
        place = Place(Path(root))
        home = place.homes.create(SESSION)
        for folder in (root, place.workspace, place.homes.root, home):
            os.chown(folder, user, -1)
        script = f"id -u; echo a > made; cat {place.outside}/secret; touch /usr/x; unshare -Ur true"
        command = place.command(script)
        # the sources may be in a folder of root, which others do not read
        etc = Path(bubblewrap.__file__).with_name("etc")
        copy = shutil.copytree(etc, place.workspace / "etc")
        given = (*place.sandbox().arguments(command, home), *command.argv)
        argv = [PROGRAM, *(each.replace(str(etc), str(copy)) for each in given)]
        environment = {"PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            argv,
            **(switched if user != os.getuid() else {}),
            env=environment,
            capture_output=True,
            check=False,
        )
        assert done.stdout == b"1000\n", done.stderr
        assert done.returncode != 0
        assert (place.workspace / "made").exists()


async def test_the_sandbox_of_the_settings_is_opened_or_refused(
    place: Place, tmp_path: Path
) -> None:
    async with open_sandbox("bubblewrap", place.homes, PrivatePlaces()) as sandbox:
        assert (sandbox.provider, sandbox.capabilities.isolated) == ("bubblewrap", True)
    async with open_sandbox("native", place.homes, PrivatePlaces()) as sandbox:
        assert not sandbox.capabilities.isolated
    async with open_sandbox("auto", place.homes, PrivatePlaces()) as sandbox:
        assert sandbox.provider == "bubblewrap"
    with pytest.raises(SandboxUnavailable, match="cannot be isolated"):
        await require_isolation(native_sandbox(tmp_path), place.homes)
    assert list(place.homes.root.glob("probe*")) == []


@pytest.mark.parametrize("provider", sandbox_params("auto", "bubblewrap"))
def test_where_namespaces_are_refused_only_auto_takes_another_sandbox(
    provider: str, tmp_path: Path
) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from internal.sandbox.roots import PrivatePlaces\n"
        "from internal.sandbox.selection import open_sandbox\n"
        "from internal.sandbox.workspaces import SessionFolders\n"
        "async def main():\n"
        "    homes = SessionFolders(Path(sys.argv[2]))\n"
        "    async with open_sandbox(sys.argv[1], homes, PrivatePlaces()) as sandbox:\n"
        "        print(sandbox.provider, sandbox.capabilities.isolated)\n"
        "asyncio.run(main())\n"
    )
    outer = (PROGRAM, "--dev-bind", "/", "/", "--unshare-user", "--disable-userns")
    done = subprocess.run(
        [*outer, sys.executable, "-c", script, provider, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if provider == "auto":
        assert (done.returncode, done.stdout) == (0, "landlock True\n"), done.stderr
    else:
        assert "SandboxUnavailable: Commands cannot be isolated on this machine" in done.stderr


# Debian's Python has no pip, but the wheel that environments get theirs from.
PIP = "PYTHONPATH=$(ls /usr/share/python-wheels/pip-*.whl 2>/dev/null | head -n 1) python3 -m pip"


@pytest.fixture
def index(tmp_path: Path) -> Generator[int]:
    with package_index(tmp_path) as port:
        yield port


async def test_a_command_reaches_the_permitted_host_and_no_other(place: Place, index: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.setblocking(False)
        port = other.getsockname()[1]
        pip = f"--index-url http://localhost:{index} --target lib --no-cache-dir"
        script = (
            "export no_proxy= NO_PROXY=\n"
            f"{PIP} install -q --disable-pip-version-check {pip} canary\n"
            "PYTHONPATH=lib python3 -c 'import canary'\n"
            f"curl -sS http://localhost:{port}/ http://example.com/ https://example.com/\n"
            f"curl --noproxy '*' -sS http://127.0.0.1:{index} http://127.0.0.1:{port}\n"
            "curl --noproxy '*' -sS --connect-timeout 2 http://1.1.1.1\n"
            "grep -c : /proc/net/dev; exit 7"
        )
        site = HostPattern("localhost", subdomains=False, port=index)
        command = structs.replace(place.command(script), network=NetworkAccess((site,)))
        result = await place.sandbox(private_networks=True).run(command, place.take)
        said = place.output.decode()
        with pytest.raises(BlockingIOError):
            other.accept()
    assert (result.exit_code, result.timed_out) == (7, False), said
    assert "sings" in said
    refused = (f"localhost:{port}", "example.com:80", "example.com:443")
    assert result.refused == refused
    assert said.count("Larkspur: this command may not reach") == 2
    assert "canary/" in said  # 127.0.0.1 is localhost, also without the proxy
    assert said.count("Couldn't connect") + said.count("Could not connect") == 2, said
    assert said.splitlines()[-1] == "1"  # lo, and no other interface


async def test_a_later_command_reaches_the_server_of_a_session(place: Place) -> None:
    served = structs.replace(
        place.command(
            "echo hello >page; python3 -u -c '\n"
            "import http.server as h\n"
            'server = h.ThreadingHTTPServer(("127.0.0.1", 8000), h.SimpleHTTPRequestHandler)\n'
            'print("ready", flush=True)\n'
            "server.serve_forever()'"
        ),
        serves=True,
    )
    sandbox = place.sandbox()
    running = asyncio.create_task(sandbox.run(served, place.take))
    await place.ready.wait()
    place.output = b""
    asks = place.command(
        "for _ in 1 2; do curl -sS http://localhost:8000/page; done; curl -sS localhost:8001"
    )
    result = await sandbox.run(asks, place.take)
    said = place.output.decode()
    foreign = structs.replace(
        place.command("curl -sS http://127.0.0.1:8000/page"), session_id=SessionId("session-2")
    )
    other = await sandbox.run(foreign, place.take)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert said.splitlines().count("hello") == 2, said
    assert (result.exit_code, other.exit_code) == (7, 7)  # could not connect
    after = await sandbox.run(place.command("curl -sS http://localhost:8000/page"), place.take)
    assert after.exit_code == 7


async def test_private_networks_are_closed_unless_the_settings_open_them(
    place: Place, index: int
) -> None:
    site = HostPattern("localhost", subdomains=False, port=index)
    script = f"curl -sS --noproxy '' http://localhost:{index}/"
    command = structs.replace(place.command(script), network=NetworkAccess((site,)))
    result = await place.sandbox().run(command, place.take)
    assert b"is not a public address" in place.output
    assert result.refused_addresses == (f"localhost:{index}",)


async def test_a_stopped_command_with_network_leaves_nothing(place: Place) -> None:
    before = descriptors()
    command = structs.replace(
        place.command("echo ready; exec 3<>/dev/tcp/127.0.0.1/3128; sleep 600"),
        network=NetworkAccess((EVERY_HOST,)),
    )
    running = asyncio.create_task(place.sandbox().run(command, place.take))
    await place.ready.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert place.survivors() == []
    await until_closed(before)


async def test_concurrent_commands_leave_no_file_descriptor(place: Place) -> None:
    await place.run("true")
    before = descriptors()
    async with asyncio.TaskGroup() as tasks:
        runs = [
            tasks.create_task(
                place.sandbox().run(
                    structs.replace(
                        place.command(f"exit {code}"),
                        network=NetworkAccess((EVERY_HOST,) if code % 2 else ()),
                    ),
                    place.take,
                )
            )
            for code in range(8)
        ]
    assert [run.result().exit_code for run in runs] == list(range(8))
    await until_closed(before)
