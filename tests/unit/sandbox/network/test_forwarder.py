"""Permitted hosts for programs without proxy support, in the real sandbox."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.network import EVERY_HOST, MAX_FORWARDED, NetworkAccess
from internal.agent.domain.permissions.rules import parse_host_pattern
from internal.agent.ports.sandbox import FileAccess, SandboxCommand, SandboxResult
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.network.forwarder import forwarded_sites
from internal.sandbox.network.proxy import MAX_CONNECTIONS, Site
from internal.sandbox.workspaces import SessionFolders
from tests import ROOT
from tests.support.ports import free_port
from tests.support.processes import wait_for_end

needs_namespaces = pytest.mark.needs("namespaces")

DRIVER = """
import socket, sys
for word in sys.argv[1:]:
    host, _, port = word.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), 5) as database:
            database.sendall(b"query")
            print(word, database.recv(100).decode() or "closed")
    except OSError as error:
        print(word, type(error).__name__, flush=True)
"""
"""Connects to each HOST:PORT like the driver of a database: it reads no variable."""


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65_536):
        writer.write(chunk)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def service(
    handle: Handler = echo,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncGenerator[int]:
    """Serve on this machine and yield the port."""
    async with await asyncio.start_server(handle, host, port) as server:
        yield server.sockets[0].getsockname()[1]


def access(*allow: str, deny: tuple[str, ...] = (), private: bool = True) -> NetworkAccess:
    allowed, denied = (
        tuple(parse_host_pattern(text, text, "network") for text in texts)
        for texts in (allow, deny)
    )
    return NetworkAccess(allowed, denied, allowed if private else ())


class Place:
    """A workspace with the driver, and a sandbox for its commands."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspace"
        self.workspace.mkdir()
        (self.workspace / "driver.py").write_text(DRIVER)
        self.addresses: dict[str, list[str]] = {}
        self.resolved: list[str] = []
        self.sandbox = BubblewrapSandbox(SessionFolders(root / "homes"), resolver=self.resolve)
        self.output = b""
        self.ready, self.changed = asyncio.Event(), asyncio.Event()

    async def resolve(self, host: str, _: int) -> list[str]:
        """Return the addresses of a host in turn; the last one stays."""
        self.resolved.append(host)
        found = self.addresses.get(host, [host])
        return [found.pop(0) if len(found) > 1 else found[0]]

    def command(self, script: str, network: NetworkAccess) -> SandboxCommand:
        return SandboxCommand(
            ("bash", "-c", script),
            str(self.workspace),
            60.0,
            SessionId("session-1"),
            access=FileAccess((str(self.workspace),)),
            network=network,
        )

    def take(self, chunk: bytes) -> None:
        self.output += chunk
        self.changed.set()
        if b"ready" in self.output:
            self.ready.set()

    async def run(self, script: str, network: NetworkAccess) -> tuple[str, SandboxResult]:
        self.output = b""
        result = await self.sandbox.run(self.command(script, network), self.take)
        return self.output.decode(), result

    async def drive(self, network: NetworkAccess, *sites: str) -> list[str]:
        """Return the outcome of the driver for each site."""
        said, _ = await self.run(f"python3 driver.py {' '.join(sites)}", network)
        return [line.rpartition(" ")[2] for line in said.splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_single_hosts_are_forwarded_and_others_are_not() -> None:
    allowed = access(
        *("127.0.0.1:5432", "[::1]:5432", "localhost:6379", "10.1.2.3:22", "db.example:5432"),
        *("db.example:5433", "api.example", "*.example", "pypi.org", "169.254.169.254:80"),
        *("0.0.0.0:80", "2130706433:80", "denied.example:1"),
        deny=("denied.example",),
    )
    found = {str(one.site): one.addresses for one in forwarded_sites(allowed)}
    assert found == {
        "127.0.0.1:5432": ("127.0.0.1",),
        "[::1]:5432": ("::1",),
        "localhost:6379": ("127.0.0.1", "::1"),
        "10.1.2.3:22": ("10.1.2.3",),
        "db.example:5432": ("127.1.0.1",),
        "db.example:5433": ("127.1.0.1",),
        "api.example:80": ("127.1.0.2",),
        "api.example:443": ("127.1.0.2",),
    }
    assert not forwarded_sites(NetworkAccess((EVERY_HOST,)))
    many = access(*(f"host{number}.example" for number in range(200)), "127.0.0.1:5432")
    sites = forwarded_sites(many)
    assert len(sites) == MAX_FORWARDED
    assert sites[0].site == Site("127.0.0.1", 5432)  # a name may go through the proxy


@needs_namespaces
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.9", "10.77.1.2", "db.example"])
async def test_a_program_without_proxy_reaches_exactly_the_permitted_port(
    place: Place, host: str
) -> None:
    place.addresses = {one: ["127.0.0.1"] for one in ("10.77.1.2", "db.example", "localhost")}
    bound = host if host.startswith("127.") else "127.0.0.1"
    async with service(host=bound) as port, service(host=bound) as other:
        sites = (f"{host}:{port}", f"{host}:{other}", f"127.0.0.2:{port}", "10.77.1.3:80")
        got = await place.drive(access(f"{host}:{port}"), *sites)
        assert got[:2] == ["query", "ConnectionRefusedError"]
        assert got[2] == "ConnectionRefusedError"
        assert got[3] == "OSError"  # the network is unreachable


@needs_namespaces
@pytest.mark.slow
async def test_both_addresses_of_localhost_and_those_of_ipv6_are_forwarded(place: Place) -> None:
    place.addresses = {"fd00:77::5": ["::1"]}
    async with service(host="::1") as port:
        assert await place.drive(access(f"[::1]:{port}"), f"::1:{port}", f"127.0.0.1:{port}") == [
            *("query", "ConnectionRefusedError")
        ]
        assert await place.drive(access(f"[fd00:77::5]:{port}"), f"fd00:77::5:{port}") == ["query"]
        place.addresses = {"localhost": ["::1"]}
        got = await place.drive(access(f"localhost:{port}"), f"localhost:{port}", f"::1:{port}")
        assert got == ["query", "query"]
    async with service() as port:
        got = await place.drive(access(f"[::1]:{port}"), f"::1:{port}")
        assert got == ["ConnectionRefusedError"]


@needs_namespaces
@pytest.mark.slow
async def test_a_name_that_leads_to_a_private_address_later_is_refused(place: Place) -> None:
    async with service() as port:
        place.addresses = {"db.example": ["1.1.1.1", "127.0.0.1"]}
        network = access(f"db.example:{port}", private=False)
        await place.resolve("db.example", port)  # it was a public one at first
        said, result = await place.run(f"python3 driver.py db.example:{port}", network)
        assert "ConnectionResetError" in said
        assert result.refused_addresses == (f"db.example:{port}",)
        # not even a name that may have private addresses leads to metadata
        place.addresses = {"db.example": ["169.254.169.254"]}
        _, result = await place.run(
            f"python3 driver.py db.example:{port}", access(f"db.example:{port}")
        )
        assert result.forbidden == (f"db.example:{port}",)


@needs_namespaces
@pytest.mark.slow
async def test_addresses_of_this_machine_need_a_grant_of_their_own(place: Place) -> None:
    async with service() as port:
        network = access(f"127.0.0.1:{port}", private=False)
        said, result = await place.run(f"python3 driver.py 127.0.0.1:{port}", network)
    assert "ConnectionResetError" in said
    assert result.refused_addresses == (f"127.0.0.1:{port}",)


@needs_namespaces
@pytest.mark.slow
async def test_http_clients_reach_an_address_of_this_machine_and_no_redirect(place: Place) -> None:
    async with service() as secret:

        async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            to = f"http://127.0.0.1:{secret}/"
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {to}\r\n\r\n".encode())
            writer.close()

        async with service(redirect) as port:
            url = f"http://127.0.0.1:{port}/"
            script = f"curl -sS -o /dev/null -w '%{{http_code}}\\n' {url}; curl -sSL {url}"
            said, result = await place.run(script, access(f"127.0.0.1:{port}"))
    assert said.startswith("302\n")
    assert result.exit_code == 7  # could not connect
    assert f"127.0.0.1 port {secret}" in said


@needs_namespaces
@pytest.mark.slow
async def test_the_port_of_the_proxy_may_be_permitted_itself(place: Place) -> None:
    place.addresses = {"db.example": ["127.0.0.1"]}
    async with service(port=3128) as port, service() as other:
        network = access(f"127.0.0.1:{port}", f"db.example:{other}")
        connect = 'exec 3<>/dev/tcp/127.0.0.1/"${HTTP_PROXY##*:}"; echo $HTTP_PROXY'
        said, _ = await place.run(f"python3 driver.py 127.0.0.1:{port}; {connect}", network)
    assert said == "127.0.0.1:3128 query\nhttp://127.0.0.1:3129\n"


@needs_namespaces
@pytest.mark.slow
async def test_a_closed_service_refuses_until_it_opens_and_after_it_has_closed(
    place: Place,
) -> None:
    port = free_port()
    script = (
        f"until [ -e stop ]; do python3 driver.py 127.0.0.1:{port}; done & "
        f"python3 driver.py 127.0.0.1:{port}; echo ready; wait"
    )
    command = place.command(script, access(f"127.0.0.1:{port}"))
    running = asyncio.create_task(place.sandbox.run(command, place.take))
    await place.ready.wait()
    assert b"Refused" in place.output
    assert b"query" not in place.output
    async with service(port=port):
        await until(place, b"query")
    await until(place, b"ConnectionRefusedError")
    (place.workspace / "stop").touch()
    await running
    assert b"TimeoutError" not in place.output


async def until(place: Place, words: bytes) -> None:
    """Return when a command writes something anew."""
    place.output = b""
    async with asyncio.timeout(30):
        while words not in place.output:
            place.changed.clear()
            await place.changed.wait()


@needs_namespaces
@pytest.mark.slow
async def test_a_slow_reader_that_has_ended_its_side_gets_every_byte(place: Place) -> None:
    size = 4_000_000

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b"query"  # up to the end of the client's side
        writer.write(bytes(size))
        await writer.drain()
        writer.close()

    async with service(send) as port:
        (place.workspace / "slow.py").write_text(
            "import socket, time\n"
            "opened = socket.socket()\n"
            "opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)\n"
            f"opened.connect(('127.0.0.1', {port}))\n"
            "opened.sendall(b'query')\n"
            "opened.shutdown(socket.SHUT_WR)\n"
            "total = 0\n"
            "while part := opened.recv(30_000):\n"
            "    total += len(part)\n"
            "    time.sleep(0.001)\n"
            "print(total)\n"
        )
        said, _ = await place.run("python3 slow.py", access(f"127.0.0.1:{port}"))
    assert said == f"{size}\n"


@needs_namespaces
@pytest.mark.slow
async def test_more_connections_than_the_bound_are_broken_and_named(place: Place) -> None:
    extra = 20
    (place.workspace / "many.py").write_text(
        "import socket, sys\n"
        "opened, broken = [], 0\n"
        f"for _ in range({MAX_CONNECTIONS + extra}):\n"
        "    one = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "    try:\n"
        "        one.sendall(b'x')\n"
        "        assert one.recv(1) == b'x'\n"
        "        opened.append(one)\n"
        "    except ConnectionError:\n"
        "        broken += 1\n"
        "print(len(opened), broken)\n"
    )
    async with service() as port:
        said, result = await place.run(f"python3 many.py {port}", access(f"127.0.0.1:{port}"))
    assert said == f"{MAX_CONNECTIONS} {extra}\n"
    assert result.exceeded == "connections"
    assert result.refused == ()


@needs_namespaces
@pytest.mark.slow
async def test_another_command_of_the_session_does_not_get_what_is_forwarded(place: Place) -> None:
    async with service() as port:
        served = structs.replace(
            place.command("python3 -m http.server -b 127.0.0.1 8000 & echo ready; wait",
                          access(f"127.0.0.1:{port}")),
            serves=True,
        )  # fmt: skip
        running = asyncio.create_task(place.sandbox.run(served, place.take))
        await place.ready.wait()
        while True:  # until the server of the first command listens
            said, _ = await place.run(
                f"curl -sSo /dev/null http://127.0.0.1:8000 && python3 driver.py 127.0.0.1:{port}",
                NetworkAccess(),
            )
            if "Error" in said:
                break
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert "ConnectionRefusedError" in said


@needs_namespaces
@pytest.mark.slow
async def test_nothing_is_left_when_larkspur_is_killed(place: Place) -> None:
    ended = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"held\n")
        await reader.read()
        writer.close()
        ended.set()

    async with service(hold) as port:
        owner = (
            "import asyncio, sys\n"
            "from pathlib import Path\n"
            "from tests.unit.sandbox.network.test_forwarder import Place, access\n"
            "place = Place(Path(sys.argv[1]))\n"
            "place.take = lambda chunk: print(chunk.decode(), flush=True)\n"
            f"script = 'exec 3<>/dev/tcp/127.0.0.1/{port}; read -u 3 line; echo $line; read -u 3'\n"
            f"network = access('127.0.0.1:{port}')\n"
            "asyncio.run(place.sandbox.run(place.command(script, network), place.take))\n"
        )
        root = place.workspace.parent / "killed"
        root.mkdir()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", owner, str(root)), cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"held\n"
        children = descendants(process.pid)
        process.kill()
        await process.wait()
        async with asyncio.timeout(10):
            await ended.wait()
        for pid in children:
            await wait_for_end(pid)
        assert children


def descendants(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for child in map(int, listed) for each in (child, *descendants(child))]
