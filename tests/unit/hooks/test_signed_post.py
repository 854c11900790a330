"""Requests that get no response, and the reason that people read."""

import ssl
from pathlib import Path

import pytest

from internal.hooks.answer import HookFailed
from internal.hooks.signed_post import SignedPoster
from internal.observability.clock import SystemClock
from tests.support.certificates import make_authority
from tests.support.raw_server import CLOSE, raw_server


async def failure(url: str) -> str:
    poster = SignedPoster(SystemClock())
    with pytest.raises(HookFailed) as caught:
        await poster.post(url, b"{}", message_id="evt-1", secret=None, timeout_seconds=10)
    await poster.close()
    return str(caught.value)


async def test_the_reason_is_that_of_the_system() -> None:
    async with raw_server(CLOSE) as server:
        address = f"127.0.0.1:{server.port}"
        assert "disconnected without" in await failure(f"http://{address}/hook")
    assert await failure(f"http://{address}/hook") == "cannot be reached: Connection refused"
    assert "Errno" not in await failure("http://no-such-host.invalid/hook")


async def test_a_certificate_that_is_not_trusted_is_the_reason(tmp_path: Path) -> None:
    identity = make_authority(tmp_path, "localhost").server
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(identity.certificate, identity.key)
    async with raw_server(CLOSE, tls=tls) as server:
        assert "certificate verify failed" in await failure(f"https://localhost:{server.port}/hook")
