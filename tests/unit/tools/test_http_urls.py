"""URLs and addresses of web_fetch: one spelling, and only permitted networks."""

import pytest

from internal.agent.domain.errors import ToolError
from internal.tools.http_urls import PublicUrl, address_refusal

NEVER = [
    *(
        "0.0.0.0",  # noqa: S104 - an address to refuse
        "0.1.2.3",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    ),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.51.100.1"),
    *("203.0.113.9", "192.88.99.1", "::", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1"),
    *("ff02::1", "fd00:ec2::254", "fd20:ce::254", "2001::1", "2001:0:53aa:64c::1", "2001:10::1"),
    *("2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "3fff::1", "64:ff9b:1::1", "100::1"),
    *("::ffff:169.254.169.254", "::ffff:0.0.0.0", "64:ff9b::169.254.169.254", "::127.0.0.1"),
    *("5f00::1", "4000::1", "", "localhost", "127.1", "0x7f000001", "010.0.0.1"),
]

PRIVATE = [
    *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("100.64.0.1", "100.127.255.255", "198.18.0.1", "198.19.255.255", "::1", "fc00::1"),
    *("fdff::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::192.168.0.1"),
]

PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.32.0.1"),
    *("2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"),
]


@pytest.mark.parametrize("address", NEVER)
def test_metadata_and_reserved_addresses_are_always_refused(address: str) -> None:
    assert address_refusal(address)
    assert address_refusal(address, private=True)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused_unless_allowed(address: str) -> None:
    assert address_refusal(address)
    assert address_refusal(address, private=True) is None


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert address_refusal(address) is None


GOOD_URLS = {
    "http://example.com": "http://example.com/",
    "https://Example.COM.:443/A?q=1#frag": "https://example.com/A?q=1",
    "http://example.com:8080/ü?é=%20": "http://example.com:8080/%C3%BC?%C3%A9=%20",
    "http://bücher.example/": "http://xn--bcher-kva.example/",
    "http://a_b.example/": "http://a_b.example/",
    "http://[2606:4700:0::1111]:81/": "http://[2606:4700::1111]:81/",
    "http://1.1.1.1": "http://1.1.1.1/",
    "http://example.com/%2e%2e/'\"<>": "http://example.com/%2e%2e/'%22%3C%3E",
    # read as what they are: the address check refuses them
    "http://127。0。0。1/": "http://127.0.0.1/",
    "http://①②⑦.⓪.⓪.①/": "http://127.0.0.1/",
    "http://\uff11\uff12\uff17.0.0.1/": "http://127.0.0.1/",
    "http://[::ffff:7f00:1]/": "http://[::ffff:7f00:1]/",
    "http://LOCALHOST/": "http://localhost/",
}


@pytest.mark.parametrize(("text", "read"), GOOD_URLS.items())
def test_a_url_is_normalized_to_one_spelling(text: str, read: str) -> None:
    assert str(PublicUrl.parse(text)) == read
    assert str(PublicUrl.parse(read)) == read


BAD_URLS = [
    *("", "example.com", "//example.com", "http://", "http:///path", "https:example.com"),
    *("ftp://example.com", "file:///etc/passwd", "gopher://x", "javascript:alert(1)", "data:,x"),
    *("http://user@example.com", "http://user:password@example.com", "http://@example.com"),
    *("http://example.com\\@evil.com", "http://evil.com\\.example.com", "http://a b.com"),
    *("http://example.com/a b", "http://example.com/\r\nHost: x", "http://exam\tple.com/"),
    *("http://example.com/\0", "http://example.com:0/", "http://example.com:65536/"),
    *("http://example.com:x/", "http://example.com:80:80/", "http://[::1", "http://[::1%25eth0]/"),
    *("http://[fe80::1%eth0]/", "http://[1.2.3.4]/", "http://[v1.x]/", "http://[]/"),
    *("http://0x7f.1/", "http://0x7f000001/", "http://2130706433/", "http://017700000001/"),
    *("http://0177.0.0.1/", "http://127.1/", "http://127.0.1/", "http://0/", "http://1/"),
    *("http://127.0.0.1.2/", "http://256.1.1.1/", "http://1.1.1.08/", "http://1.2.3.0x/"),
    *("http://127.0.0.0x1/", "http://foo.0x7f/", "http://evil.1/", "http://٣.example.1/"),
    *("http://-a.com/", "http://a-.com/", "http://a..b/", "http://.a/", "http://a!b/"),
    *("http://a,b/", "http://%31%32%37.0.0.1/", "http://example.com%2f@x/", "http://ex%61mple/"),
    *("http://" + "a" * 64 + ".com/", "http://x/" + "a" * 8000, "http://example.com℀/"),
    *("http://\ud800/", "http://a\u200b\u202e..b/", "http://①.①/"),
]


@pytest.mark.parametrize("text", BAD_URLS)
def test_an_ambiguous_or_invalid_url_is_rejected(text: str) -> None:
    with pytest.raises(ToolError):
        PublicUrl.parse(text)
