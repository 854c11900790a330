"""One profile file: its keys, and its errors with their line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.text import find_invisible
from internal.settings.messages import complaint, nearest, plain
from internal.settings.types import ConfigError, Count, Dollars, Network, Seconds, Section, Text

if TYPE_CHECKING:
    from internal.config.yaml_document import Document

MAX_INSTRUCTIONS_CHARS = 32_000


def _instructions(text: str) -> str:
    if len(text) > MAX_INSTRUCTIONS_CHARS:
        raise ValueError(f"must have at most {MAX_INSTRUCTIONS_CHARS:,} characters")
    if found := find_invisible(text.replace("\n", "").replace("\t", "")):
        raise ValueError(f"contains an invisible character (U+{ord(found[0]):04X})")
    return text.strip()


def _visible(text: str) -> str:
    if found := find_invisible(text):
        raise ValueError(f"contains an invisible character (U+{ord(found[0]):04X})")
    return text.strip()


Line = Annotated[Text, AfterValidator(_visible), Field(max_length=500)]
Names = tuple[Line, ...]


class ToolChanges(Section):
    """Changes to the tools of the extended profile: additions and removals."""

    add: Names = ()
    remove: Names = ()


class ProfileFile(Section):
    """The keys of a profile file; docs/profiles.md explains each."""

    extends: Line | None = None
    description: Line | None = None
    role: Line | None = None
    goal: Line | None = None
    tone: Line | None = None
    instructions: Annotated[str, AfterValidator(_instructions)] | None = None
    tools: Names | ToolChanges | None = None
    skills: Names | None = None
    model: Line | None = None
    permission_mode: Mode | None = None
    network: Network | None = None
    plan_review: PlanReview | None = None
    max_iterations: Count | None = None
    max_cost: Dollars | None = None
    timeout_seconds: Seconds | None = None
    language: Literal["en", "zh"] | None = None
    keywords: Names | None = None
    delegates: bool | None = None


def read_profile_file(path: Path) -> "tuple[ProfileFile, Document]":
    """Return the keys of a file, and its lines.

    Raises:
        ConfigError: it cannot be read, or something in it is wrong; the sentence says where.
    """
    from internal.config.yaml_document import read_document  # noqa: PLC0415 - yaml imports slowly

    document = read_document(path, str(path))
    try:
        return ProfileFile.model_validate(document.values), document
    except ValidationError as error:
        found = error.errors(include_url=False)
    # of a value that can be of several kinds, the error of the kind that it comes closest to
    first = max((one for one in found if one["loc"][0] == found[0]["loc"][0]), key=_depth)
    keys = [one for one in first["loc"] if "[" not in str(one) and one != "ToolChanges"]
    where = f"{path}:{line_of(document, *keys)}"
    name = plain(".".join(map(str, keys)))
    if first["type"] == "extra_forbidden":
        known = ToolChanges.model_fields if len(keys) > 1 else ProfileFile.model_fields
        hint = nearest(str(keys[-1]), known)
        raise ConfigError(f"{where}: {name} is an unknown key{hint}")
    raise ConfigError(f"{where}: {name} {complaint(first, show=True)}")


def _depth(error: ErrorDetails) -> int:
    return len(error["loc"])


def line_of(document: "Document", *keys: str | int) -> int:
    """Return the line of the longest known beginning of a path of keys."""
    paths = (keys[:count] for count in range(len(keys), -1, -1))
    return next((document.lines[path] for path in paths if path in document.lines), 1)
