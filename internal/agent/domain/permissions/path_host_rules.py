"""Rules over places: paths of the workspace and hosts of the network, judged on their text alone.

Where a path or an address really leads is checked by the tool that goes there; a rule only says
which ones need no person. So an allow rule is strict about spelling, a deny rule is generous.
"""

import posixpath
import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from internal.agent.domain.permissions.rules import HostRule, PathRule
from internal.agent.domain.permissions.shell.raw_text import odd_character
from internal.agent.domain.text import is_invisible

_USUAL_PORTS = {"http": 80, "https": 443}
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::(?P<port>\d{1,5}))?"
    r"(?:[/?#][^\\\s]*)?",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def _glob(pattern: str, *, fold: bool) -> re.Pattern[str]:
    pattern = unicodedata.normalize("NFKC", pattern) if fold else pattern
    parts: list[str] = []
    for piece in re.findall(r"\*\*/?|\[[*?]\]|.", normal_path(pattern), re.DOTALL):
        match piece:
            case "**" | "**/":
                parts.append(r"(?s:.*)" if piece == "**" else r"(?:(?s:.*)/)?")
            case "*":
                parts.append(r"[^/]*")
            case "?":
                parts.append(r"[^/]")
            case "[*]" | "[?]":
                parts.append(re.escape(piece[1]))
            case _:
                parts.append(re.escape(piece))
    return re.compile("".join(parts), re.IGNORECASE if fold else re.NOFLAG)


def normal_path(path: str) -> str:
    """A path without `.`, empty segments and `a/..`; lexical, so links are not followed."""
    return posixpath.normpath(re.sub(r"/+", "/", path))


def covers_path(glob: str, path: str) -> bool:
    """Whether an allow glob matches a path. Never a path with `..` or an invisible character.

    An absolute path only matches a glob that is absolute itself.
    """
    if odd_character(path) or "\\" in path or ".." in path.split("/"):
        return False
    if path.startswith("/") and not glob.startswith("/"):
        return False
    return bool(path) and bool(_glob(glob, fold=False).fullmatch(normal_path(path)))


def denies_path(glob: str, path: str, *, below: bool = False) -> bool:
    """Whether a deny glob matches a path in any spelling: `..`, absolute, other case or letters.

    With `below`, also a folder above the denied place, as a search would walk into it.
    """
    plain = _plain(path)
    if plain != path and denies_path(glob, plain, below=below):
        return True
    path = re.sub(
        r"^(?:\.\./|\.\.$)+", "/", normal_path(path.replace("\\", "/"))
    )  # may lead anywhere
    steps = path.split("/")
    tails = ["/".join(steps[start:]) or "/" for start in range(len(steps))]
    if any(_glob(glob, fold=True).fullmatch(tail) for tail in tails):
        return True
    fixed = re.split(r"[*?\[]", glob, maxsplit=1)[0]
    return below and any(_above(tail, normal_path(fixed)) for tail in tails)


def _plain(path: str) -> str:
    """The name that some file systems see: they leave out what is hidden, and fold letters."""
    shown = "".join(char for char in path if char == " " or not is_invisible(char))
    return unicodedata.normalize("NFKC", shown)


def _above(folder: str, place: str) -> bool:
    return folder in {".", "/", ""} or f"{place}/".casefold().startswith(f"{folder}/".casefold())


def suggested_path(tool: str, path: str) -> str:
    """The narrowest rule that allows a tool on this path, or "" if no rule does."""
    glob = normal_path(path)
    text = f"{tool}({glob})"
    sound = not re.search(r"[*?\[\]]", glob) and glob == glob.strip() and not glob.startswith("/")
    return text if sound and covers_path(glob, path) else ""


class UrlSite(NamedTuple):
    """Where a URL leads. `exact` is false for spellings that readers of URLs disagree about.

    Then `hosts` are all the hosts that some reader may see; "" is one that nobody can tell.
    """

    hosts: tuple[str, ...]
    port: int | None
    exact: bool


def read_url(url: str) -> UrlSite:
    """The host of a URL. Never raises."""
    found = _URL.fullmatch(url)
    if found and not odd_character(url):
        scheme, port = found["scheme"].lower(), found["port"]
        usual = not port or int(port) == _USUAL_PORTS[scheme]
        return UrlSite((found["host"].lower(),), None if usual else int(port), exact=True)
    loose = "".join(char for char in url if char > " ")
    readings = (loose, unquote(loose))
    hosts = {_loose_host(text) for text in (*readings, *(r.replace("\\", "/") for r in readings))}
    return UrlSite(tuple(sorted(hosts)), None, exact=False)


def _loose_host(url: str) -> str:
    authority = re.sub(r"^[^:/]*:?/*", "", url)
    host = re.split(r"[/?#]", authority, maxsplit=1)[0].rpartition("@")[2].partition(":")[0]
    try:
        return host.encode("idna").decode().lower().rstrip(".")
    except UnicodeError:
        return ""


def covers_host(rule: HostRule, place: UrlSite) -> bool:
    """Whether an allow rule covers a place; never one that is not exactly spelled."""
    return place.exact and rule.port == place.port and _names_host(rule, place.hosts[0])


def denies_host(rule: HostRule, place: UrlSite) -> bool | None:
    """Whether a deny rule matches a place; None if it may. A rule without a port has every port."""
    if any(_names_host(rule, host) for host in place.hosts):
        return rule.port in {None, place.port} or not place.exact
    return None if "" in place.hosts else False


def _names_host(rule: HostRule, host: str) -> bool:
    return host.endswith(f".{rule.host}") if rule.below else host == rule.host


def suggested_host(place: UrlSite) -> str:
    """The narrowest rule that allows a place, or "" if no rule does."""
    port = f":{place.port}" if place.port is not None else ""
    return f"web_fetch({place.hosts[0]}{port})" if place.exact else ""


def denies_place(rule: PathRule, path: str) -> bool:
    """Whether a deny rule of a file tool matches a path."""
    return denies_path(rule.glob, path, below=rule.tool in {"search_files", "list_dir"})
