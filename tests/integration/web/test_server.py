"""The server in the program's own loop: where it listens, how it starts and how it ends."""

import asyncio
import dataclasses
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from internal.attachments.local import LocalAttachments
from internal.channels.web.auth import Logins
from internal.channels.web.channel import DoorRefused, WebDoor, WebSettings
from internal.channels.web.server import WebServer
from internal.observability.clock import SystemClock
from tests.support.web_app import TOKEN, WebHouse, defaults, healthy, open_web_house


def door_of(house: WebHouse, folder: Path, token: str = TOKEN, **settings: Any) -> WebDoor:
    return WebDoor(
        gateway=house.gateway,
        broadcaster=house.broadcaster,
        attachments=LocalAttachments(folder),
        defaults=defaults(),
        token=token,
        settings=dataclasses.replace(WebSettings(port=0), **settings),
        health=healthy,
        version="1.2.3",
        clock=SystemClock(),
        logins=Logins(token),
    )


async def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    async with open_web_house(tmp_path) as house:
        taken = house.server.address.port
        with pytest.raises(DoorRefused, match=f"Port {taken} of 127.0.0.1 is in use"):
            WebServer(door_of(house, tmp_path, port=taken))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 - refused
async def test_any_other_bind_than_loopback_is_refused(tmp_path: Path, host: str) -> None:
    async with open_web_house(tmp_path) as house:
        with pytest.raises(DoorRefused, match="not a loopback address"):
            WebServer(door_of(house, tmp_path, host=host))


async def test_a_host_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    async with open_web_house(tmp_path) as house:
        with pytest.raises(DoorRefused, match="not an address to listen on"):
            WebServer(door_of(house, tmp_path, host="no such host"))


@pytest.mark.parametrize("token", ["", " ", "\n"])
async def test_a_blank_token_opens_no_door(tmp_path: Path, token: str) -> None:
    async with open_web_house(tmp_path) as house:
        with pytest.raises(DoorRefused, match="blank"):
            door_of(house, tmp_path, token)


async def test_ready_means_that_requests_are_answered_and_signals_stay_ours(
    tmp_path: Path,
) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    async with open_web_house(tmp_path) as house:
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
        assert house.server.address.url == f"http://127.0.0.1:{house.server.address.port}"
        assert (await house.client.get("/health")).status == 200
        await house.server.stop()
        with pytest.raises(ConnectionError):
            await house.client.get("/health")


async def test_the_port_is_free_again_at_once(tmp_path: Path) -> None:
    async with open_web_house(tmp_path) as house:
        port = house.server.address.port
        assert (await house.client.get("/health")).status == 200
    async with open_web_house(tmp_path, port=port) as house:
        assert house.server.address.port == port
        assert (await house.client.get("/health")).status == 200


async def test_ipv6_loopback_is_a_way_in(tmp_path: Path) -> None:
    async with open_web_house(tmp_path, host="::1") as house:
        port = house.server.address.port
        assert house.server.address.url == f"http://[::1]:{port}"
        sock = socket.socket(socket.AF_INET6)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("::1", port))
        reader, writer = await asyncio.open_connection(sock=sock)
        writer.write(f"GET /health HTTP/1.1\r\nhost: [::1]:{port}\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_cancelled_server_leaves_nothing_behind(tmp_path: Path) -> None:
    async with open_web_house(tmp_path) as house:
        server = WebServer(door_of(house, tmp_path))
        serving = asyncio.create_task(server.serve())
        await server.ready()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        with pytest.raises(ConnectionError):
            await asyncio.open_connection(*server.address)


async def test_a_head_that_never_comes_is_given_up(tmp_path: Path) -> None:
    async with open_web_house(tmp_path, request_seconds=0.2) as house:
        for sent in (b"", b"GET /health HTTP/1.1\r\nhost: "):
            reader, writer = await house.client.connect()
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()
        assert (await house.client.get("/health")).status == 200
