"""URLs: the same parts and the same joined URL on every Python version."""

import pytest

from internal.normal_forms.urls import join_url, split_url


@pytest.mark.parametrize(
    ("text", "scheme", "host", "path"),
    [
        ("https://Example.com/a", "https", "example.com", "/a"),
        # 3.11.4 began to remove leading blanks
        ("\x00 \x1fhttps://example.com/", "https", "example.com", "/"),
        ("ht\ntps://exam\tple.com/\ra", "https", "example.com", "/a"),
        ("https://example.com/a ", "https", "example.com", "/a "),
        ("http:////example.com", "http", None, "//example.com"),
        ("http:///example.com", "http", None, "/example.com"),
        ("http:example.com", "http", None, "example.com"),
        ("http://[::1]:80/", "http", "::1", "/"),
        ("http://user:word@[fe80::1%eth0]/", "http", "fe80::1%eth0", "/"),
        ("http://[::ffff:127.0.0.1]/", "http", "::ffff:127.0.0.1", "/"),
        ("http://[::ffff:7f00:1]/", "http", "::ffff:7f00:1", "/"),
        ("", "", None, ""),
    ],
)
def test_the_parts_of_a_url(text: str, scheme: str, host: str | None, path: str) -> None:
    parts = split_url(text)
    assert (parts.scheme, parts.hostname, parts.path) == (scheme, host, path)


@pytest.mark.parametrize(
    "text",
    [
        *("http://[::1", "http://::1]/", "http://[]/", "http://[example.com]/"),
        *("http://[1.2.3.4]/", "http://[v1.a]/", "http://[::1]a/", "http://[::1][::1]/"),
        # accepted before 3.14, with the host ::1
        *("http://example.com[::1]/", "http://example.com:[::1]/", "http://a][::1/"),
        *("http://us[e]r@example.com/", "http://us[::1]er@example.com/", "//[::1]@[::1]x"),
    ],
)
def test_brackets_enclose_an_ipv6_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"brackets do not enclose|is not an IPv6 address"):
        split_url(text)


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        # RFC 3986, 5.4; fragments are left out
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        ("g?y#s", "http://a/b/c/g?y"),
        (";x", "http://a/b/c/;x"),
        ("g;x", "http://a/b/c/g;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("http:g", "http://a/b/c/g"),
        # before 3.14 Python lost the semicolon of the first two, and kept the query for the third
        (";", "http://a/b/c/;"),
        ("g;", "http://a/b/c/g;"),
        ("?", "http://a/b/c/d;p"),
        ("g//h", "http://a/b/c/g//h"),
        ("https://x.example/a?b#c", "https://x.example/a?b#c"),
        ("//x.example:81?b", "http://x.example:81?b"),
        ("//x.example/a/../b", "http://x.example/a/../b"),
    ],
)
def test_a_reference_is_joined_with_its_base(reference: str, joined: str) -> None:
    assert join_url("http://a/b/c/d;p?q", reference) == joined


def test_a_base_without_a_path_is_joined_at_its_root() -> None:
    assert join_url("http://a", "g") == "http://a/g"
    assert join_url("http://a", "?y") == "http://a/?y"
    assert join_url("http://a", "") == "http://a/"


def test_a_reference_that_is_no_url_is_rejected() -> None:
    with pytest.raises(ValueError, match="brackets"):
        join_url("http://a/", "//[::1")
