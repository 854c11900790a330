"""Message content of bots: the JSON in `content`, by type, and its size limits."""

import json
import re
from collections.abc import Callable
from typing import Any

from internal.simulators.lark.errors import TOO_LONG, LarkError, bad_parameter
from internal.simulators.lark.model import Json

MAX_TEXT_BYTES, MAX_RICH_BYTES = 150 * 1024, 30 * 1024
_POST_TAGS = frozenset({"text", "a", "at", "img", "media", "emotion", "hr", "code_block", "md"})
_AT = re.compile(
    r'<at\s+(?:user_id|id|open_id)="?([^">\s]+)"?\s*>(.*?)</at>|<at\s+id=([^>]+)></at>'
)


def read_content(msg_type: str, content: object) -> Json:
    """Parse and check content, except cards and media keys, which need the state.

    Raises:
        LarkError: 230001 with the reason, or 230025 if it is too long.
    """
    if not isinstance(content, str):
        raise bad_parameter("content is not a string")
    check = _CHECKS.get(msg_type)
    if check is None:
        raise bad_parameter(f"invalid msg_type: {msg_type}")
    largest = MAX_TEXT_BYTES if msg_type == "text" else MAX_RICH_BYTES
    if len(content.encode("utf-8", "surrogatepass")) > largest:
        raise LarkError(TOO_LONG, f"The message is too long; at most {largest} bytes.")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise bad_parameter("content is not a string in json format") from error
    if not isinstance(value, dict):
        raise bad_parameter("content is not a json object")
    check(value)
    return value


def _text(value: Json) -> None:
    if not isinstance(value.get("text"), str):
        raise bad_parameter("text is missing")
    if not value["text"]:
        raise bad_parameter("text is empty")


def _post(value: Json) -> None:
    if "post" in value:
        raise bad_parameter("content has an outer post")
    if not value:
        raise bad_parameter("post has no language")
    for language, post in value.items():
        rows = post.get("content") if isinstance(post, dict) else None
        if not re.fullmatch(r"[a-z]{2}_[a-z]{2}", language) or not isinstance(rows, list):
            raise bad_parameter(f"post of {language} has no content")
        for row in rows:
            _row(row)


def _row(row: Any) -> None:
    if not isinstance(row, list):
        raise bad_parameter("a paragraph of the post is not a list")
    for part in row:
        tag = part.get("tag") if isinstance(part, dict) else None
        if not isinstance(tag, str) or tag not in _POST_TAGS:
            raise bad_parameter(f"unknown tag in post: {tag}")
        if tag in {"text", "md", "code_block"} and not isinstance(part.get("text"), str):
            raise bad_parameter(f"a {tag} of the post has no text")


def _key(*names: str) -> Callable[[Json], None]:
    def check(value: Json) -> None:
        for name in names:
            if not isinstance(value.get(name), str) or not value[name]:
                raise bad_parameter(f"{name} is missing")

    return check


def _card(_: Json) -> None:
    """Accept any object: cards are checked by `cards.card_json`."""


_CHECKS: dict[str, Callable[[Json], None]] = {
    "text": _text,
    "post": _post,
    "image": _key("image_key"),
    "file": _key("file_key"),
    "audio": _key("file_key"),
    "media": _key("file_key", "image_key"),
    "sticker": _key("file_key"),
    "share_chat": _key("chat_id"),
    "share_user": _key("user_id"),
    "interactive": _card,
}


def extract_mentions(text: str, name_of: Callable[[str], str | None]) -> tuple[str, list[Json]]:
    """Replace `<at user_id="…">` by keys, as Lark stores texts; return it and the mentions.

    `name_of` returns the name of an open_id or None; tags of unknown ids are kept.
    """
    mentions: list[Json] = []

    def key(found: re.Match[str]) -> str:
        open_id = found[1] or found[3]
        if open_id == "all":
            return "@_all"
        name = name_of(open_id)
        if name is None:
            return found[0]
        mentions.append(make_mention(f"@_user_{len(mentions) + 1}", open_id, name))
        return str(mentions[-1]["key"])

    return _AT.sub(key, text), mentions


def make_mention(key: str, open_id: str, name: str, **more: Any) -> Json:
    """Return a mention in the format of events."""
    return {"key": key, "id": {"open_id": open_id}, "name": name, **more}


def read_post(value: Json) -> Json:
    """Return a post as readers get it: one language, without the language level."""
    post = value.get("zh_cn") or next(iter(value.values()))
    return {"title": post.get("title", ""), "content": post["content"]}
