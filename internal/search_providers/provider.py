"""The port of search providers: from a query to an HTTP request, and from a response to results.

Providers do no I/O. The settings import them, so nothing slow is imported here.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
from pydantic import SecretStr

from internal.agent.domain.errors import ToolError

Recency = Literal["day", "week", "month", "year"]

MAX_ITEMS = 200
"""Maximum number of results read from a response."""

_T = TypeVar("_T")
_NOT_EXPECTED = "the response is not the JSON of its API"


class SearchQuery(msgspec.Struct, frozen=True):
    """A search query. `domain` is a host name in ASCII, "" for the whole web."""

    text: str
    limit: int
    recency: Recency | None = None
    domain: str = ""

    @property
    def text_with_site(self) -> str:
        """The text with the operator `site:`, for providers without a parameter for domains."""
        return f"{self.text} site:{self.domain}" if self.domain else self.text


class SearchResult(msgspec.Struct, frozen=True):
    """A result. `source` is the name of the website, `date` the date of the page's publication.

    Both are "" if unknown. The fields have the provider's values until they are cleaned.
    """

    title: str
    url: str
    snippet: str = ""
    date: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A request to a provider: POST with a body, GET without one."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class SearchProvider(ABC):
    """A search service.

    `key_variable` is the environment variable of its key, None if it needs none.
    `address` is the URL that the paths of its API are below.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    key_variable: ClassVar[str | None]

    address: str = ""
    key: SecretStr | None = None

    @property
    def missing(self) -> str:
        """The reason why the provider cannot be asked, "" if it can."""
        return "" if self.key else f"no API key is set ({self.key_variable})"

    @property
    def refusal_advice(self) -> str:
        """Advice for an answer with status 401 or 403."""
        return f"check its API key ({self.key_variable})"

    @abstractmethod
    def request(self, query: SearchQuery) -> SearchRequest:
        """Return the request for a query. The provider is not `missing` anything."""

    @abstractmethod
    def read(self, body: bytes) -> list[SearchResult]:
        """Return the results in a response with status 200, in their order.

        Raises:
            ToolError: the response does not match the documentation of its API.
        """

    def _post(
        self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> SearchRequest:
        """Return a request with a JSON object; entries without a value are left out."""
        given = {name: value for name, value in body.items() if value not in (None, "")}
        return SearchRequest(
            f"{self.address}{path}",
            {"Accept": "application/json", "Content-Type": "application/json", **headers},
            msgspec.json.encode(given),
        )

    def _secret(self) -> str:
        return self.key.get_secret_value() if self.key else ""


def decode_response(body: bytes, kind: type[_T]) -> _T:
    """Return the JSON of a response.

    Raises:
        ToolError: it is not JSON, or of another type.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ToolError(_NOT_EXPECTED) from error


def convert_items(items: list[Any], kind: type[_T]) -> list[_T]:
    """Return the items of a type; others are left out, as are all items after `MAX_ITEMS`.

    Raises:
        ToolError: there are only others.
    """
    converted = []
    for item in items[:MAX_ITEMS]:
        try:
            converted.append(msgspec.convert(item, kind))
        except msgspec.ValidationError:
            continue
    if items and not converted:
        raise ToolError(_NOT_EXPECTED)
    return converted
