"""A REST call as a handler gets it: checked for who asks, its fields read with Lark's refusals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from internal.simulators.lark.errors import bad_field
from internal.simulators.lark.model import App, Json
from internal.simulators.lark.rest.form_data import FormField
from internal.simulators.lark.state import LarkState

MAX_UUID_LENGTH = 50


@dataclass(frozen=True, slots=True)
class RestCall:
    """A call of an app. `body` is the JSON object, `form` what came as multipart."""

    app: App
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Json = field(default_factory=dict)
    form: Mapping[str, FormField] = field(default_factory=dict)

    def text(self, name: str, *, default: str | None = None) -> str:
        """Return a text of the body.

        Raises:
            LarkError: it is missing without a default, or no text.
        """
        value = self.body.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or (default is None and not value):
            raise bad_field(name, f"{name} is required" if value is None else "it is no string")
        return value

    def uuid(self) -> str:
        """Return the uuid, or "".

        Raises:
            LarkError: it has more than 50 characters.
        """
        uuid = self.query.get("uuid") or self.text("uuid", default="")
        if len(uuid) > MAX_UUID_LENGTH:
            raise bad_field("uuid", f"the max length is {MAX_UUID_LENGTH}")
        return uuid

    def choice(self, name: str, allowed: frozenset[str], default: str = "") -> str:
        """Return a word of the query.

        Raises:
            LarkError: it is none of the allowed ones.
        """
        value = self.query.get(name, default)
        if value not in allowed:
            raise bad_field(name, f"options: [{', '.join(sorted(allowed))}]")
        return value

    def number(self, name: str, default: int, most: int) -> int:
        """Return a number of the query, from 1 to `most`.

        Raises:
            LarkError: it is none.
        """
        value = self.query.get(name) or str(default)
        if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= most:
            raise bad_field(name, f"it is not in 1 to {most}")
        return int(value)

    def page(self, items: list[Any], most: int = 50) -> Json:
        """Return the page of a list that is asked for.

        Raises:
            LarkError: `page_size` or `page_token` is none.
        """
        size = self.number("page_size", min(20, most), most)
        token = self.query.get("page_token") or "0"
        if not token.isascii() or not token.isdigit():
            raise bad_field("page_token", "it is invalid")
        start = int(token[:9])
        more = start + size < len(items)
        following = str(start + size) if more else ""
        return {"items": items[start : start + size], "has_more": more, "page_token": following}


class BinaryResult(NamedTuple):
    """An answer that is no JSON."""

    data: bytes
    media_type: str
    file_name: str


class TopLevelResult(NamedTuple):
    """An answer whose fields stand beside `code`, not in `data`."""

    fields: Json


RestHandler = Callable[[LarkState, RestCall], Json | BinaryResult | TopLevelResult]


class RestEndpoint(NamedTuple):
    """A call that the simulator knows."""

    method: str
    path: str
    handler: RestHandler
