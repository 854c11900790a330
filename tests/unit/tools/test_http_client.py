"""The HTTP client of the tools against a real server."""

import asyncio
import gzip
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvloop

from internal.agent.domain.errors import ToolError
from internal.tools.http_client import FetchedPage, Fetcher
from internal.tools.http_urls import PublicUrl
from tests.support.http_site import FakeResolver, HttpSite, local_fetcher

CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgCEiFI90HzWPWnPdj
60Y5sEXhgi81ugzuG+Vkg6iPI6ShRANCAASGmQB1j5uwpHIXVDcE/5JTcWJ3YAVR
PNFdRW81uZg7esi660aYzBGarf6lwGnRFS+cJC6fktokLjDgLbVENfc4
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBdTCCARqgAwIBAgIUYFkbXqYvwnMhqgH/1akDyN9KQGIwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJc2l0ZS50ZXN0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAx
MDAwMDAwWjAUMRIwEAYDVQQDDAlzaXRlLnRlc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASGmQB1j5uwpHIXVDcE/5JTcWJ3YAVRPNFdRW81uZg7esi660aYzBGa
rf6lwGnRFS+cJC6fktokLjDgLbVENfc4o0gwRjAUBgNVHREEDTALgglzaXRlLnRl
c3QwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUx8xc+TalFsn8ELvGh23JyBeG
50UwCgYIKoZIzj0EAwIDSQAwRgIhAOsEjJFRRzTQ8c0pTR4668YlApFYkh0uwnjQ
/Kcr0aW6AiEApirsdzSvFADp8GrsTnIOh2Wg8D2/RkPsX2rg9t32yeA=
-----END CERTIFICATE-----
"""
"""For site.test, self-signed, valid until 2120; of no use to anybody."""


async def get(site: HttpSite, path: str = "/", fetcher: Fetcher | None = None) -> FetchedPage:
    url = PublicUrl.parse(f"http://site.test:{site.port}{path}")
    return await (fetcher or local_fetcher()).fetch(url)


async def test_a_request_carries_no_cookie_or_credential(site: HttpSite) -> None:
    site.page("/a?b=1", b"hello")
    page = await get(site, "/a?b=1")
    assert (page.response.status, page.response.body, page.response.truncated) == (
        200,
        b"hello",
        False,
    )
    assert site.asked[0][1] == {
        "Host": f"site.test:{site.port}",
        "User-Agent": "Mozilla/5.0 (compatible; Larkspur)",
        "Accept": "text/html, text/markdown, text/*;q=0.9, application/json;q=0.9, */*;q=0.1",
        "Accept-Encoding": "gzip",
        "Connection": "close",
    }


async def test_a_request_with_a_body_is_posted_with_the_headers_of_the_caller(
    site: HttpSite,
) -> None:
    site.page("/api", b"{}", "application/json")
    url = PublicUrl.parse(f"http://site.test:{site.port}/api?a=b")
    headers = {"Accept": "application/json", "X-Key": "secret"}
    assert (await local_fetcher().send(url, headers, "é".encode())).body == b"{}"
    assert site.bodies == ["é".encode()]
    assert site.asked[0] == (
        "/api?a=b",
        {
            "Host": f"site.test:{site.port}",
            "User-Agent": "Mozilla/5.0 (compatible; Larkspur)",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "Connection": "close",
            "X-Key": "secret",
            "Content-Length": "2",
        },
    )


async def test_no_header_of_the_caller_follows_a_redirect(site: HttpSite) -> None:
    site.redirect("/", "/other")
    url = PublicUrl.parse(f"http://site.test:{site.port}/")
    response = await local_fetcher().send(url, {"X-Key": "secret"})
    assert response.headers["location"] == "/other"
    assert [path for path, _ in site.asked] == ["/"]


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:{}/", "http://localhost:{}/", "http://[::1]:{}/", "http://0.0.0.0:{}/"),
        *("http://[::ffff:127.0.0.1]:{}/", "http://127。0。0。1:{}/", "http://①②⑦.0.0.1:{}/"),
        "http://[::]:{}/",
    ],
)
async def test_no_spelling_of_this_machine_is_fetched(site: HttpSite, url: str) -> None:
    with pytest.raises(ToolError, match="may not be fetched"):
        await Fetcher().fetch(PublicUrl.parse(url.format(site.port)))
    assert site.asked == []


async def test_one_forbidden_address_rejects_the_host(site: HttpSite) -> None:
    names = FakeResolver(site_test=[["93.184.216.34", "127.0.0.1"]])
    with pytest.raises(ToolError, match=r"127\.0\.0\.1 is not a public address"):
        await get(site, fetcher=Fetcher(resolver=names))
    assert site.asked == []


async def test_a_host_is_resolved_once_and_the_checked_address_is_used(site: HttpSite) -> None:
    """DNS rebinding: the second answer would be another address; there is no second question."""
    site.page("/", b"ok")
    names = FakeResolver(site_test=[["127.0.0.1"], ["169.254.169.254"]])
    assert (await get(site, fetcher=local_fetcher(names))).response.body == b"ok"
    assert names.questions == ["site.test"]


async def test_every_hop_is_checked_again(site: HttpSite) -> None:
    """The same name leads elsewhere on the second hop."""
    site.redirect("/", f"http://site.test:{site.port}/secret")
    names = FakeResolver(site_test=[["127.0.0.1"], ["169.254.169.254"]])
    with pytest.raises(ToolError, match=r"169\.254\.169\.254 is never fetched"):
        await get(site, fetcher=local_fetcher(names))
    assert [path for path, _ in site.asked] == ["/"]


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("http://169.254.169.254/latest/meta-data", "redirects to another site"),
        ("//0.0.0.0/", "redirects to another site"),
        ("http://other.test/", "another site: call web_fetch again with http://other.test/"),
        ("http://site.test:1/", "redirects to another site"),
        ("https://site.test/", "redirects to another site"),
        ("http://0xa9fea9fe/", "odd spelling"),
        ("file:///etc/passwd", "only http"),
        ("http://user:password@site.test/", "user name"),
        ("http://[::ffff:169.254.169.254]/", "redirects to another site"),
        ("/a\\b", "backslashes"),
    ],
)
async def test_a_redirect_to_another_site_or_a_forbidden_address_is_rejected(
    site: HttpSite, location: str, says: str
) -> None:
    site.redirect("/", location)
    with pytest.raises(ToolError, match=says):
        await get(site)
    assert [path for path, _ in site.asked] == ["/"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_without_cookies(site: HttpSite, status: int) -> None:
    site.redirect("/", "next/ü", status)
    site.redirect("/next/%C3%BC", f"http://site.test:{site.port}/end", status)
    site.page("/end", b"there")
    page = await get(site)
    assert str(page.url) == f"http://site.test:{site.port}/end"
    assert [path for path, _ in site.asked] == ["/", "/next/%C3%BC", "/end"]
    assert all("Cookie" not in fields for _, fields in site.asked)


async def test_the_number_of_redirects_is_limited(site: HttpSite) -> None:
    site.redirect("/", "/")
    with pytest.raises(ToolError, match="more than 5 redirects"):
        await get(site)
    assert len(site.asked) == 6


async def test_a_body_is_truncated_at_the_limit(site: HttpSite) -> None:
    site.page("/", b"x" * 5_000)
    for limit, cut in ((4_999, True), (5_000, False)):
        answer = (await get(site, fetcher=local_fetcher(max_bytes=limit))).response
        assert (len(answer.body), answer.truncated) == (limit, cut)


async def test_a_compressed_body_is_truncated_at_the_limit(site: HttpSite) -> None:
    site.page("/", gzip.compress(b"\0" * 50_000_000), "text/plain", "Content-Encoding: gzip")
    answer = (await get(site, fetcher=local_fetcher(max_bytes=100_000))).response
    assert (len(answer.body), answer.truncated) == (100_000, True)


async def test_a_compressed_body_is_decompressed(site: HttpSite) -> None:
    site.page("/", gzip.compress(b"hello" * 1_000), "text/plain", "Content-Encoding: gzip")
    answer = (await get(site)).response
    assert (answer.body, answer.truncated) == (b"hello" * 1_000, False)


async def test_members_of_compressed_data_are_joined_and_what_follows_is_ignored(
    site: HttpSite,
) -> None:
    members = b"".join(gzip.compress(b"%d" % number * 9_000) for number in range(9))
    site.page("/", members + bytes(900), "text/plain", "Content-Encoding: x-gzip")
    answer = (await get(site)).response
    assert answer.body == b"".join(b"%d" % number * 9_000 for number in range(9))
    assert not answer.truncated


@pytest.mark.parametrize("kept", [1, 20, 300])
async def test_compressed_data_without_its_end_is_incomplete(site: HttpSite, kept: int) -> None:
    text = " ".join(map(str, range(900))).encode()
    site.page("/", gzip.compress(text)[:kept], "text/plain", "Content-Encoding: gzip")
    answer = (await get(site)).response
    assert text.startswith(answer.body)
    assert answer.truncated
    assert answer.incomplete


@pytest.mark.parametrize("label", ["UTF-8", "none", "aws-chunked", "binary, identity", ""])
async def test_a_label_that_is_no_encoding_is_ignored(site: HttpSite, label: str) -> None:
    site.page("/", b"hello", "text/plain", f"Content-Encoding: {label}")
    answer = (await get(site)).response
    assert (answer.body, answer.truncated) == (b"hello", False)
    site.page("/", gzip.compress(b"hello"), "text/plain", f"Content-Encoding: {label}, gzip")
    assert (await get(site)).response.body == b"hello"


RAW = {
    "until the end": (b"HTTP/1.0 200 OK\r\n\r\nbody", b"body", False),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n",
        b"body",
        False,
    ),
    "cut short": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody", b"body", True),
    "chunks cut short": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
        b"body",
        True,
    ),
    "after a hint": (
        (
            b"HTTP/1.1 103 Early Hints\r\nContent-Encoding: br\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
        ),
        b"body",
        False,
    ),
}


@pytest.mark.parametrize(("raw", "body", "cut"), RAW.values(), ids=RAW)
async def test_every_message_framing_is_supported(
    site: HttpSite, raw: bytes, body: bytes, cut: bool
) -> None:
    site.answers["/"] = raw
    answer = (await get(site)).response
    assert (answer.status, answer.body, answer.truncated) == (200, body, cut)


def test_what_came_before_a_break_is_kept_in_the_event_loop_of_a_gateway() -> None:
    async def fetch_often() -> set[tuple[bytes, bool]]:
        site = HttpSite()
        site.answers["/"] = RAW["cut short"][0]
        async with await asyncio.start_server(site.serve, "127.0.0.1", 0) as server:
            site.port = server.sockets[0].getsockname()[1]
            pages = [asyncio.create_task(get(site)) for _ in range(20)]
            answers = [(await page).response for page in pages]
            return {(answer.body, answer.incomplete) for answer in answers}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(fetch_often()) == {(b"body", True)}


@pytest.mark.parametrize("head", ["HTTP/1.0 200 OK", "HTTP/1.1 200 OK\r\nContent-Length: 9"])
async def test_a_body_is_incomplete_after_a_reset(head: str) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"{head}\r\n\r\nbody".encode())
        option = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
        writer.transport.abort()

    async with await asyncio.start_server(reset, "127.0.0.1", 0) as server:
        url = f"http://site.test:{server.sockets[0].getsockname()[1]}/"
        answer = (await local_fetcher().fetch(PublicUrl.parse(url))).response
    assert (answer.body, answer.truncated, answer.incomplete) == (b"body", True, True)


GARBAGE = {
    "silence": (b"", "without a response"),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", "not HTTP"),
    "half a head": (b"HTTP/1.1 200 OK\r\nA: b", "without a response"),
    "endless head": (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100_000, "too many headers"),
    "another packing": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
        "unrequested content encoding: br",
    ),
    "packed twice": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: 1\r\n\r\nx",
        "unrequested content encoding: gzip, gzip",
    ),
    "broken packing": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbody",
        "cannot be decompressed",
    ),
    "another protocol": (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "another protocol",
    ),
}


@pytest.mark.parametrize(("raw", "says"), GARBAGE.values(), ids=GARBAGE)
async def test_an_invalid_response_is_an_error_with_its_reason(
    site: HttpSite, raw: bytes, says: str
) -> None:
    site.answers["/"] = raw
    with pytest.raises(ToolError, match=says):
        await get(site)


@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"])
async def test_a_server_that_does_not_finish_times_out(site: HttpSite, raw: bytes) -> None:
    site.answers["/hang"] = raw
    with pytest.raises(ToolError, match=r"did not respond in 0\.2 s"):
        await get(site, "/hang", local_fetcher(timeout_seconds=0.2))


async def test_an_unreachable_host_is_an_error_with_its_reason(site: HttpSite) -> None:
    with pytest.raises(ToolError, match=r"there is no host gone\.test"):
        await local_fetcher().fetch(PublicUrl.parse("http://gone.test/"))
    with pytest.raises(ToolError, match=r"127\.0\.0\.1:1 cannot be reached"):
        await local_fetcher().fetch(PublicUrl.parse("http://127.0.0.1:1/"))
    with pytest.raises(ToolError, match=r"there is no host no-such-name\.invalid"):
        await Fetcher().fetch(PublicUrl.parse("http://no-such-name.invalid/"))


async def test_the_next_address_is_tried_when_one_fails(site: HttpSite) -> None:
    site.page("/", b"ok")
    names = FakeResolver(site_test=[["::1", "127.0.0.1"]])
    assert (await get(site, fetcher=local_fetcher(names))).response.body == b"ok"


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[HttpSite]:
    (tmp_path / "site.pem").write_text(CERTIFICATE)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "site.pem")
    site = HttpSite()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    yield site
    server.close()
    await server.wait_closed()


async def test_the_certificate_must_match_the_host_name(secure: HttpSite) -> None:
    trusting = ssl.create_default_context(cadata=CERTIFICATE)
    secure.page("/", b"secret")
    fetcher = local_fetcher(tls=trusting)
    url = f"https://site.test:{secure.port}/"
    assert (await fetcher.fetch(PublicUrl.parse(url))).response.body == b"secret"
    for host in ("other.test", "127.0.0.1"):
        with pytest.raises(ToolError, match=f"the certificate of {host} is not valid"):
            await fetcher.fetch(PublicUrl.parse(f"https://{host}:{secure.port}/"))
    with pytest.raises(ToolError, match="not valid: self-signed certificate"):
        await local_fetcher().fetch(PublicUrl.parse(url))
    assert len(secure.asked) == 1


async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ESMTP\r\n")
    await writer.drain()
    writer.close()


async def test_a_server_without_tls_cannot_be_reached_over_https() -> None:
    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ToolError, match=f"site.test:{port} cannot be reached"):
            await local_fetcher().fetch(PublicUrl.parse(f"https://site.test:{port}/"))
