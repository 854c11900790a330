"""The models that a server lists, and doubts of one that it does not list. No I/O."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from internal.llm.lenient_json import decode_json
from internal.settings.messages import plain

MAX_MODELS = 2_000
"""At most so many names of a list are used."""
_MAX_NAME_CHARACTERS = 200
_NAME_FIELDS = ("id", "model", "name")
# what a server was started with comes before what a model could do: LM Studio, vLLM, OpenRouter and
# Together, Groq, LM Studio, llama.cpp (in `meta`)
_WINDOW_FIELDS = (
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "n_ctx",
    "n_ctx_train",
)
MAX_WINDOW_TOKENS = 100_000_000
# endpoints that people make at Volcano Engine Ark are models that no list has
_UNLISTED = re.compile(r"ep-[\w-]+", re.ASCII)


def parse_models(body: bytes) -> tuple[str, ...] | None:
    """Return the names in a list of models, None if this is no such list.

    OpenAI and Anthropic send `{"data": [{"id": …}]}`, Ollama `{"models": [{"name": …}]}`, others a
    bare list. Names with control characters, and names that are too long, are left out.
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


def parse_windows(body: bytes) -> Mapping[str, int]:
    """Return the context windows in a list of models, in tokens by name, as far as it has them."""
    try:
        entries = _entries(decode_json(body)) or []
    except (ValueError, RecursionError):
        return {}
    found: dict[str, int] = {}
    for entry in entries[:MAX_MODELS]:
        name, window = next(_names([entry]), ""), _window(entry)
        if name and window:
            found.setdefault(name, window)
    return found


def _window(entry: Any) -> int:
    if not isinstance(entry, dict):
        return 0
    meta = entry.get("meta")
    given = {**meta, **entry} if isinstance(meta, dict) else entry
    values = (given.get(field) for field in _WINDOW_FIELDS)
    usable = (each for each in values if type(each) is int and 0 < each <= MAX_WINDOW_TOKENS)
    return next(usable, 0)


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
