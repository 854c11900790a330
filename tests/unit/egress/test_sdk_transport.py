"""The transport that SDKs get; its refusals are tested with every client in test_clients."""

import ssl
from pathlib import Path

import httpx2
import pytest

from internal.egress.addresses import AddressCheck
from internal.egress.sdk_transport import CheckedTransport, open_checked_transport
from tests.support.certificates import make_authority
from tests.support.http_site import FakeResolver
from tests.support.raw_server import raw_server, response


async def test_the_next_address_is_tried_when_one_fails() -> None:
    names = FakeResolver(site_test=[["127.0.0.9", "127.0.0.1"]])
    async with (
        raw_server(response()) as server,
        open_checked_transport(private=True, resolver=names) as transport,
        httpx2.AsyncClient(transport=transport) as client,
    ):
        url = f"http://site.test:{server.port}/"
        assert (await client.get(url)).text == "ok"
    assert b"host: site.test" in server.requests[0].lower()


@pytest.mark.needs("openssl")
async def test_certificates_are_verified_against_the_name(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "site.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.server.certificate, authority.server.key)
    trusting = ssl.create_default_context(cafile=authority.ca_file)
    names = FakeResolver(site_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    async with (
        raw_server(response(), tls=tls) as server,
        CheckedTransport(AddressCheck(private=True, resolver=names), trusting) as transport,
        httpx2.AsyncClient(transport=transport) as client,
    ):
        for _ in range(2):
            assert (await client.get(f"https://site.test:{server.port}/")).text == "ok"
            # the connection to the other name, which has the same address, is not used for it
            with pytest.raises(httpx2.ConnectError, match=r"not valid for 'other\.test'"):
                await client.get(f"https://other.test:{server.port}/")
        assert len(server.requests) == 2
