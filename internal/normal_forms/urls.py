"""URLs taken apart and put together, with the same result on every Python version.

`urllib.parse` changes with patch releases: the brackets that it accepts, the removal of leading
blanks, the result for an empty query or parameter.
"""

import re
from ipaddress import IPv6Address
from urllib.parse import SplitResult, urlsplit

_BLANKS = "".join(map(chr, range(0x21)))
_LINE_BREAKS = str.maketrans("", "", "\t\r\n")
_AUTHORITY = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//([^/?#]*)")
_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::.*)?")
_REFRESH = re.compile(
    r"\s*(\d{1,9})?\d*(?:\.\d*)?\s*[;,]?\s*(?:url\s*=\s*)?(.*)", re.IGNORECASE | re.DOTALL
)


def split_url(text: str) -> SplitResult:
    """Return the parts of a URL. Leading blanks, tabs and line breaks are removed.

    Raises:
        ValueError: brackets contain no IPv6 address or are beside a host, or a host contains
            characters that a resolver reads as delimiters.
    """
    # 3.11.4 began to remove the blanks
    plain = text.lstrip(_BLANKS).translate(_LINE_BREAKS)
    # checked before, since the sentences of Python depend on its version as well
    match = _AUTHORITY.match(plain)
    if match and ("[" in match[1] or "]" in match[1]):
        _check_brackets(match[1])
    return urlsplit(plain)


def _check_brackets(authority: str) -> None:
    """Check that brackets enclose an IPv6 address.

    Python 3.11.4 began to check their content, 3.14 the text beside them: http://example.com[::1]/
    was read as ::1.
    """
    user, _, host = authority.rpartition("@")
    match = _BRACKETED.fullmatch(host)
    if match is None or "[" in user or "]" in user:
        raise ValueError("its brackets do not enclose the host")
    try:
        IPv6Address(match[1])
    except ValueError as error:
        raise ValueError(f"[{match[1]}] is not an IPv6 address") from error


def join_url(base: str, reference: str) -> str:
    """Return the absolute URL of a reference, without a fragment (RFC 3986, section 5.2).

    As in browsers, a reference with the scheme of the base and without a host is relative.

    Args:
        base: a URL with a host.
        reference: the address in a page at `base` or in a redirect from there.

    Raises:
        ValueError: one of them is not a URL.
    """
    start, target = split_url(base), split_url(reference)
    if target.scheme not in {"", start.scheme}:
        return reference
    host, path, query = target.netloc or start.netloc, target.path, target.query
    if not target.netloc:
        if not path and "?" not in reference.partition("#")[0]:
            query = start.query
        if not path:
            path = start.path
        elif not path.startswith("/"):
            path = f"{start.path.rpartition('/')[0]}/{path}"
        path = _remove_dot_segments(path)
    return f"{start.scheme}://{host}{path}" + (f"?{query}" if query else "")


def _remove_dot_segments(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in {".", ".."}:
        kept.append("")
    return f"/{'/'.join(kept)}"


def parse_refresh(value: str) -> tuple[int, str]:
    """Return the seconds and the address of a refresh (`0; url=/next`), "" for the page itself."""
    match = _REFRESH.fullmatch(value)
    if match is None:
        return 0, ""
    address = match[2].strip()
    if address[:1] in {"'", '"'}:
        address = address[1:].partition(address[0])[0]
    return int(match[1] or 0), address
