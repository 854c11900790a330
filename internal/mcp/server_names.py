"""Names of servers, which are a part of the names of their tools."""

import hashlib
import re
import unicodedata

MAX_NAME_CHARS = 40
"""Names of tools have 64 characters at some providers, of which the tool itself needs some."""

_NAME = re.compile(r"[a-z0-9_-]+")
_OTHER = re.compile(r"[^a-z0-9-]+")
_HASH_CHARS = 6


def is_usable(name: str) -> bool:
    """Return True if a server can have this name."""
    # with "__" inside or "_" at the end, tools of two servers could have one name
    return len(name) <= MAX_NAME_CHARS and bool(_NAME.fullmatch(name)) and "__" not in f"{name}_"


def usable_name(written: str) -> str:
    """Return a name for a server as near as possible to the one in a file."""
    plain = unicodedata.normalize("NFKD", written).encode("ascii", "ignore").decode().lower()
    words = [_OTHER.sub("-", each).strip("-") for each in plain.split("_")]
    name = "_".join(filter(None, words))[:MAX_NAME_CHARS].strip("-_")
    return name or f"server-{hashlib.sha256(written.encode()).hexdigest()[:_HASH_CHARS]}"
