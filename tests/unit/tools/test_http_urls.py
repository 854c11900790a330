"""URLs of web_fetch: one spelling."""

import pytest

from internal.agent.domain.errors import ToolError
from internal.tools.http_urls import PublicUrl

GOOD_URLS = {
    "http://example.com": "http://example.com/",
    "https://Example.COM.:443/A?q=1#frag": "https://example.com/A?q=1",
    "http://example.com:8080/ü?é=%20": "http://example.com:8080/%C3%BC?%C3%A9=%20",
    "http://bücher.example/": "http://xn--bcher-kva.example/",
    "http://a_b.example/": "http://a_b.example/",
    "http://[2606:4700:0::1111]:81/": "http://[2606:4700::1111]:81/",
    "http://1.1.1.1": "http://1.1.1.1/",
    "http://example.com/%2e%2e/'\"<>": "http://example.com/%2e%2e/'%22%3C%3E",
    # read as addresses: the address check refuses them
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
