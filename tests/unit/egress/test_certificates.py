"""Certificate authorities of the system and of an operator; Lark's are tested with Lark."""

import ssl
from pathlib import Path

import httpx2
import pytest

from internal.egress.certificates import system_certificates, system_context
from internal.egress.sdk_transport import open_checked_transport
from internal.hooks.signed_post import SignedPoster
from internal.observability.clock import SystemClock
from tests.support.certificates import make_authority
from tests.support.http_site import FakeResolver
from tests.support.raw_server import raw_server, response


@pytest.mark.needs("openssl")
async def test_an_authority_of_the_environment_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = make_authority(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.server.certificate, authority.server.key)
    assert len(system_context().get_ca_certs()) == 1
    async with raw_server(response(), tls=tls) as server:
        url = f"https://localhost:{server.port}/"
        poster = SignedPoster(SystemClock())
        answer = await poster.post(url, b"{}", message_id="a", secret=None, timeout_seconds=10)
        await poster.close()
        assert answer.body == b"ok"
        names = FakeResolver(localhost=[["127.0.0.1"]])
        async with (
            open_checked_transport(private=True, resolver=names) as transport,
            httpx2.AsyncClient(transport=transport) as client,
        ):
            assert (await client.get(url)).text == "ok"


def test_certificates_are_found_where_openssl_finds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert system_certificates() is True
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    if Path("/etc/ssl/certs/ca-certificates.crt").is_file():
        found = system_certificates()
        assert isinstance(found, ssl.SSLContext)
        assert found.get_ca_certs()
