"""A REST request as handlers receive it: authenticated, with validating accessors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from internal.simulators.lark.errors import bad_field
from internal.simulators.lark.model import App, Json
from internal.simulators.lark.rest.form_data import FormField
from internal.simulators.lark.state import LarkState

MAX_UUID_LENGTH = 50


@dataclass(frozen=True, slots=True)
class RestCall:
    """A request of an app. `body` is the JSON object, `form` the multipart fields.

    `query` has the last value of each parameter, `parameters` all values.
    """

    app: App
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Json = field(default_factory=dict)
    form: Mapping[str, FormField] = field(default_factory=dict)
    parameters: Sequence[tuple[str, str]] = ()

    def text(self, name: str, *, default: str | None = None) -> str:
        """Return a string of the body.

        Raises:
            LarkError: It is missing without a default, or not a string.
        """
        value = self.body.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or (default is None and not value):
            raise bad_field(name, f"{name} is required" if value is None else "must be a string")
        return value

    def uuid(self) -> str:
        """Return the uuid, or "".

        Raises:
            LarkError: It has more than 50 characters.
        """
        uuid = self.query.get("uuid") or self.text("uuid", default="")
        if len(uuid) > MAX_UUID_LENGTH:
            raise bad_field("uuid", f"must have at most {MAX_UUID_LENGTH} characters")
        return uuid

    def choice(self, name: str, allowed: frozenset[str], default: str = "") -> str:
        """Return a query parameter that must be one of the allowed values.

        Raises:
            LarkError: It is not.
        """
        value = self.query.get(name, default)
        if value not in allowed:
            raise bad_field(name, f"options: [{', '.join(sorted(allowed))}]")
        return value

    def query_list(self, name: str) -> list[str]:
        """Return all values of a query parameter that may be repeated."""
        return [value for key, value in self.parameters if key == name]

    def number(self, name: str, default: int, most: int) -> int:
        """Return a query parameter that must be an integer from 1 to `most`.

        Raises:
            LarkError: It is not.
        """
        value = self.query.get(name) or str(default)
        if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= most:
            raise bad_field(name, f"must be between 1 and {most}")
        return int(value)

    def page(self, items: list[Any], most: int = 50) -> Json:
        """Return the requested page of a list.

        Raises:
            LarkError: `page_size` or `page_token` is invalid.
        """
        size = self.number("page_size", min(20, most), most)
        token = self.query.get("page_token") or "0"
        if not token.isascii() or not token.isdigit():
            raise bad_field("page_token", "invalid value")
        start = int(token[:9])
        more = start + size < len(items)
        following = str(start + size) if more else ""
        return {"items": items[start : start + size], "has_more": more, "page_token": following}


class BinaryResult(NamedTuple):
    """A response that is not JSON."""

    data: bytes
    media_type: str
    file_name: str


class TopLevelResult(NamedTuple):
    """A response whose fields are next to `code` instead of in `data`."""

    fields: Json


RestHandler = Callable[[LarkState, RestCall], Json | BinaryResult | TopLevelResult]


class RestEndpoint(NamedTuple):
    """A supported call. The app needs one of the `scopes`; with none, every app may use it."""

    method: str
    path: str
    handler: RestHandler
    scopes: frozenset[str] = frozenset()
