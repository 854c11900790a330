"""Lark's client is loaded alone, and leaves no trace for others."""

import logging
import subprocess
import sys

import pytest

from internal.channels.lark.sdk import SecretFilter

PROGRAM = """
import asyncio, sys
from internal.channels.lark.sdk import load_websocket_client
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
client = load_websocket_client()
frame = client.Frame()
frame.ParseFromString(client._new_ping_frame(7).SerializeToString())
assert frame.service == 7 and client is load_websocket_client() and client.loop is loop
print(len(sys.modules))
import lark_oapi as lark
from lark_oapi.event.dispatcher_handler import EventDispatcherHandler
assert lark.Client.builder() and EventDispatcherHandler.builder("", "")
assert lark.ws.client is client
loop.close()
"""


@pytest.mark.slow
def test_the_client_is_imported_without_the_rest_models() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1_000  # the whole package has more than 10,000 modules
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("to wss://x/?device_id=1&access_key=abc&ticket=t-1", "device_id=1&access_key=•••"),
        ("app_secret=hush and more", "app_secret=••• and more"),
        ("plain", "plain"),
    ],
)
def test_secrets_in_urls_are_redacted(said: str, seen: str) -> None:
    record = logging.makeLogRecord({"msg": "%s", "args": (said,)})
    assert SecretFilter().filter(record)
    assert seen in record.getMessage()
    assert "abc" not in record.getMessage()
    assert "hush" not in record.getMessage()


def test_records_about_lost_connections_are_dropped() -> None:
    record = logging.makeLogRecord({"msg": "receive message loop exit, err: x"})
    assert not SecretFilter().filter(record)
