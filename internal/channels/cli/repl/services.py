"""Services that a session opens after its first frame is drawn."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from internal.channels.cli.application import InstructionItem, ListedModel, ToolItem, UiChoices
from internal.channels.cli.client import GatewayClient
from internal.i18n.language import Language


class ReplServices(NamedTuple):
    """The client, and functions whose imports are deferred until after the first frame.

    `check_rule` takes a rule and whether it allows; it raises ValueError if the rule is invalid.
    `check_network` raises ValueError if a host is invalid. `decide` parses a text as the answer to
    a question, both as JSON; it raises ValueError. `read_steps` splits a text into the steps of a
    plan. `instructions` returns the instruction files of a folder; it raises ConfigError.
    """

    client: GatewayClient
    ui: UiChoices
    language: Language
    tools: Callable[[], Sequence[ToolItem]]
    instructions: Callable[[Path], Sequence[InstructionItem]]
    models: Callable[[], Sequence[ListedModel]]
    doctor: Callable[[], Sequence[str]]
    check_rule: Callable[[str, bool], None]
    check_network: Callable[[tuple[str, ...]], None]
    decide: Callable[[Mapping[str, Any], str], dict[str, Any]]
    read_steps: Callable[[str], Sequence[str]]
