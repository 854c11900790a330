"""The models that a server lists, and doubts of one that it does not list. No I/O."""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from internal.config.messages import plain
from internal.llm.lenient_json import decode_json

MAX_MODELS = 2_000
"""At most so many names of a list are used."""
_MAX_NAME_CHARACTERS = 200
_NAME_FIELDS = ("id", "model", "name")
# endpoints that people make at Volcano Engine Ark are models that no list has
_UNLISTED = re.compile(r"ep-[\w-]+", re.ASCII)


def parse_models(body: bytes) -> tuple[str, ...] | None:
    """Return the names in a list of models, None if this is no such list.

    OpenAI and Anthropic send `{"data": [{"id": …}]}`, Ollama `{"models": [{"name": …}]}`, others a
    bare list. Names with control characters, and those too long to be one, are left out.
    """
    try:
        content = decode_json(body)
    except (ValueError, RecursionError):
        return None
    entries = _entries(content)
    if entries is None:
        return None
    names = list(_names(entries))
    if entries and not names:
        return None
    return tuple(dict.fromkeys(names))[:MAX_MODELS]


def doubt_listed_model(model: str, listed: Sequence[str], title: str) -> str:
    """Return a sentence with the nearest names if a server does not list a model, else "".

    A listed name may have a date or a tag that the model's name leaves out, and the other way
    round: `claude-x` is `claude-x-20260101`, `gpt-oss` is `gpt-oss:latest`.
    """
    if not listed or _UNLISTED.fullmatch(model):
        return ""
    marks = "-:@"
    if any(
        model == name
        or (name.startswith(model) and name[len(model)] in marks)
        or (model.startswith(name) and model[len(name)] in marks)
        for name in listed
    ):
        return ""
    near = difflib.get_close_matches(model, listed, n=3, cutoff=0.5)
    hint = f"; near it are {', '.join(near)}." if near else "."
    return f"{title} does not list the model {plain(model)}{hint}"


def _entries(content: Any) -> list[Any] | None:
    match content:
        case list():
            return content
        case {"data": list(entries)} | {"models": list(entries)}:
            return entries
        case _:
            return None


def _names(entries: Sequence[Any]) -> Iterator[str]:
    for entry in entries:
        found = [entry.get(field) for field in _NAME_FIELDS] if isinstance(entry, dict) else [entry]
        name = next((one for one in found if isinstance(one, str) and one.strip()), "")
        name = name.strip().removeprefix("models/")  # as Gemini names them
        if name and name.isprintable() and len(name) <= _MAX_NAME_CHARACTERS:
            yield name
