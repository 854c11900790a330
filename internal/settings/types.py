"""Types of setting values. Their error messages follow the name of the key."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic import Secret as Hidden

from internal.agent.domain.permissions.rules import RuleError, parse_outside_pattern
from internal.agent.domain.secrets import register_secret
from internal.database_address.address import shown_url
from internal.normal_forms.urls import split_url

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and surrogates
_WORD = re.compile("[!-~]+")
HOST_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""Valid names of hosts."""


Place = tuple[str | int, ...]
"""The path of a value in a file: the keys and the numbers of items that lead to it."""


class ConfigError(Exception):
    """The settings are invalid. The text is a sentence for people (exit code 3).

    `address` is the value of llm.base_url if that is invalid, for `larkspur doctor`.
    """

    def __init__(self, sentence: str = "", *, address: str = "") -> None:
        super().__init__(sentence)
        self.address = address


class Section(BaseModel):
    """A group of keys. Frozen; unknown keys are rejected."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        defer_build=True,  # the schema of all settings contains the schemas of the sections
    )


def _not_a_truth(value: object) -> object:
    # bool is an int in Python, but `port: true` is a mistake
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")  # noqa: TRY004 - pydantic's protocol
    return value


def _one_line(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    if _UNPRINTABLE.search(text):
        raise ValueError("must be one line of text in UTF-8")
    return text


def _secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value().strip()
    if not text:
        raise ValueError("must not be blank")
    if not _WORD.fullmatch(text):
        raise ValueError("must consist of printable ASCII characters without spaces")
    register_secret(text)
    return SecretStr(text)


def web_address(text: str) -> str:
    """Return the URL without a slash at its end.

    Raises:
        ValueError: it is not a URL, or has credentials, a query or a fragment.
    """
    try:
        parts = split_url(text)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # an incomplete IPv6 address, or an invalid port
        parts, usable = split_url(""), None
    if not usable or not _WORD.fullmatch(text):
        raise ValueError("must be a URL such as https://example.org")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user name or a password")
    if parts.query or parts.fragment:
        raise ValueError("must not contain a query or a fragment")
    return text.rstrip("/")


def _origin(text: str) -> str:
    if split_url(text).path:
        raise ValueError("must be an origin without a path, such as https://example.org")
    return text


def matches(pattern: str, expected: str) -> AfterValidator:
    """Return a check that a text has the form of a regular expression as a whole."""
    form = re.compile(pattern)

    def check(text: str) -> str:
        if not form.fullmatch(text):
            raise ValueError(expected)
        return text

    return AfterValidator(check)


def one_of(names: Iterable[str]) -> AfterValidator:
    """Return a check that a text is one of some names."""
    known = tuple(names)

    def check(name: str) -> str:
        if name not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return name

    return AfterValidator(check)


def _outside(path: Path) -> Path:
    try:
        parse_outside_pattern(str(path), str(path))
    except RuleError as error:
        raise ValueError(str(error)) from error
    return path


def _absolute(path: Path) -> Path:
    try:
        path = path.expanduser()
    except RuntimeError:  # an unknown user
        path = Path()
    if not path.is_absolute() or _UNPRINTABLE.search(str(path)):
        raise ValueError("must be an absolute path, or one that starts with ~")
    return path


def _names(value: object) -> str | tuple[str, ...]:
    """Accept a name, names separated by commas, or a list of names; one name stays a text."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ValueError("must be a name or a list of names")
    names = tuple(_one_line(part).strip() for part in parts)
    if not names:
        raise ValueError("must not be an empty list; off stands for none")
    return names if len(names) > 1 else names[0]


Text = Annotated[str, AfterValidator(_one_line)]
Network = Literal["off", "registries", "open"] | tuple[Text, ...]
"""Network of isolated commands without approval: a word, or hosts."""
Names = Annotated[str | tuple[str, ...], BeforeValidator(_names)]
Secret = Annotated[SecretStr, AfterValidator(_secret)]
WebAddress = Annotated[str, AfterValidator(web_address)]
Origin = Annotated[WebAddress, AfterValidator(_origin)]
BucketName = Annotated[
    str,
    matches(
        "[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
        "must be the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens",
    ),
]
KeyPrefix = Annotated[
    str,
    matches(
        "([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?",
        "must consist of letters, digits, dots, hyphens, underscores and slashes,"
        " without a slash at an end",
    ),
]
HostName = Annotated[
    str,
    matches(
        f"({HOST_NAME.pattern})?",
        "must be up to 63 letters, digits, dots, hyphens and underscores, such as worker-1",
    ),
]
OutsidePath = Annotated[Path, AfterValidator(_absolute), AfterValidator(_outside)]
Folder = Annotated[Path, AfterValidator(_absolute)]
File = Annotated[Path, AfterValidator(_absolute)]
Count = Annotated[int, BeforeValidator(_not_a_truth), Field(ge=1)]
RetentionDays = Annotated[int, BeforeValidator(_not_a_truth), Field(ge=0, le=36_500)]
Minutes = Annotated[int, BeforeValidator(_not_a_truth), Field(ge=0, le=1_440)]
Megabytes = Annotated[int, BeforeValidator(_not_a_truth), Field(ge=0, le=1_000_000_000)]
Retries = Annotated[int, BeforeValidator(_not_a_truth), Field(ge=0, le=20)]
Port = Annotated[int, BeforeValidator(_not_a_truth), Field(ge=0, le=65_535)]
Seconds = Annotated[
    float, BeforeValidator(_not_a_truth), Field(gt=0, le=2_592_000, allow_inf_nan=False)
]
Temperature = Annotated[
    float, BeforeValidator(_not_a_truth), Field(ge=0, le=2, allow_inf_nan=False)
]
Share = Annotated[float, BeforeValidator(_not_a_truth), Field(ge=0, le=1, allow_inf_nan=False)]
Dollars = Annotated[float, BeforeValidator(_not_a_truth), Field(ge=0, allow_inf_nan=False)]

DollarLimit = Annotated[
    float, BeforeValidator(_not_a_truth), Field(ge=0, le=1_000_000, allow_inf_nan=False)
]
TokenLimit = Annotated[int, BeforeValidator(_not_a_truth), Field(ge=0)]


class DatabaseUrl(SecretStr):
    """The URL of a database. `str()` of it is masked; `shown` has no password."""

    @property
    def shown(self) -> str:
        """The URL without user, password and parameters."""
        return shown_url(self.get_secret_value())


class SecretEntry(Hidden[dict[str, Any]]):
    """Keys and values that another package checks, and that are never shown: some are secrets."""


_Section = TypeVar("_Section", bound=Section)


def section(kind: type[_Section]) -> _Section:
    """Return a field for a section, which exists also if no key of it is given."""
    field: _Section = Field(default_factory=kind)
    return field


def key(default: Any, explanation: str) -> Any:
    """Return a field with its default and its one-line explanation."""
    return Field(default=default, description=explanation)
