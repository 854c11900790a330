"""What stands behind the first frame of a session: it may take a batch to be there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from internal.channels.cli.client import GatewayClient
from internal.i18n.catalog import Language


class ToolItem(NamedTuple):
    """A tool as a list shows it."""

    name: str
    risk: str
    meaning: str


class ReplServices(NamedTuple):
    """The client, and what this process can tell by itself.

    `check_rule` raises ValueError with a sentence for a rule that cannot be used. `decide` makes an
    answer of words to a question, both as JSON, or raises ValueError with a sentence. `read_steps`
    makes steps of lines.
    """

    client: GatewayClient
    language: Language
    tools: Callable[[], Sequence[ToolItem]]
    doctor: Callable[[], Sequence[str]]
    check_rule: Callable[[str, bool], None]
    decide: Callable[[Mapping[str, Any], str], dict[str, Any]]
    read_steps: Callable[[str], Sequence[str]]
